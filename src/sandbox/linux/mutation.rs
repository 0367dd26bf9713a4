//! Sandboxes whose plan lacks steps, for the test that shows that each step matters. Absent from a shipped binary.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::plan::{self, Bounds, Source, Wanted, Ways};
use super::step::{Plan, Step};
use super::{Native, host};
use crate::execution::ResourceLimits;
use crate::sandbox::Error;
use crate::skill::SkillName;

/// Which steps of the whole plan are left out, by their places.
#[derive(Debug, Default)]
pub(super) struct Removed(Mutex<BTreeSet<usize>>);

impl Removed {
    pub(super) fn set(&self, places: BTreeSet<usize>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = places;
    }

    /// What is left of a part of the plan whose first step has this place in the whole.
    pub(super) fn from(&self, plan: Plan, first: usize) -> Plan {
        let removed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let places = first..;
        let left = places
            .zip(plan.steps)
            .filter(|(place, _)| !removed.contains(place));
        Plan {
            steps: left.map(|(_, step)| step).collect(),
            then: plan.then,
        }
    }
}

impl Native {
    /// Leaves these steps out of the plan of every sandbox made from now on, by their places in [`steps`].
    ///
    /// # Errors
    ///
    /// This host cannot make any sandbox.
    pub async fn remove_steps(&self, places: BTreeSet<usize>) -> Result<(), Error> {
        self.parts().await?.removed.set(places);
        Ok(())
    }
}

/// Each step of the whole plan for root on this host, as JSON, in order.
#[must_use]
pub fn steps(skill: &SkillName, limits: &ResourceLimits) -> Vec<serde_json::Value> {
    let skill = format!("/skills/{skill}");
    let wanted = Wanted {
        files: vec![(&skill, Source::Handed)],
        limits,
        bounds: Bounds::Cgroup,
        ways: Ways::Handed,
    };
    let all: Vec<Step> = [
        plan::before(&host::root(), Ways::Handed).steps,
        plan::after(&wanted).steps,
    ]
    .concat();
    let json = all.into_iter().map(serde_json::to_value);
    json.collect::<Result<_, _>>()
        .expect("a step is a tag and plain values")
}
