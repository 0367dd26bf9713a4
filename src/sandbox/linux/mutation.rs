//! For tests: sandboxes without some steps of their plan, to show that each step is necessary, and processes in a
//! cgroup without limits.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::cgroup::Cell;
use super::identity::{Identity, Privilege};
use super::plan::{self, LimitMechanism, MountAccess, MountSource, SandboxInput};
use super::plan_host;
use super::spawn::{BlankProcess, Spawner};
use super::step::{SetupPlan, Step};
use super::{Native, host};
use crate::execution::ResourceLimits;
use crate::sandbox::Error;
use crate::skill::SkillName;

/// Omitted steps, by index in the complete plan.
#[derive(Debug, Default)]
pub(super) struct Removed(Mutex<BTreeSet<usize>>);

impl Removed {
    pub(super) fn set(&self, places: BTreeSet<usize>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = places;
    }

    /// The remaining steps of a part of the plan whose first step has this index.
    pub(super) fn from(&self, plan: SetupPlan, first: usize) -> SetupPlan {
        let removed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let places = first..;
        let left = places
            .zip(plan.steps)
            .filter(|(place, _)| !removed.contains(place));
        SetupPlan {
            steps: left.map(|(_, step)| step).collect(),
            then: plan.then,
        }
    }
}

impl Native {
    /// Omits these steps from the plan of every later sandbox. Fails if this host cannot create sandboxes.
    pub async fn remove_steps(&self, places: BTreeSet<usize>) -> Result<(), Error> {
        self.factory().await?.removed.set(places);
        Ok(())
    }
}

#[derive(Debug)]
pub struct TestSpawner {
    spawner: Spawner,
    privilege: Privilege,
}

/// A blank process, killed when dropped.
#[derive(Debug)]
pub struct TestProcess(BlankProcess);

impl TestSpawner {
    /// With `program` as the first process. Fails if this host cannot create sandboxes.
    pub fn open(program: &Path) -> io::Result<Self> {
        let privilege = Privilege::of_this_process().map_err(io::Error::other)?;
        Ok(Self {
            spawner: Spawner::start(program)?,
            privilege,
        })
    }

    /// Forks a blank process, in a cgroup of version 2 that is removed with it, or in none.
    pub fn fork(&self, cgroup: Option<&Path>) -> io::Result<TestProcess> {
        let identity = Identity::claim(self.privilege)?;
        self.spawner
            .make(identity, cgroup.map(Cell::unbounded))
            .map(TestProcess)
    }

    #[must_use]
    pub fn zygote(&self) -> Option<u32> {
        self.spawner.zygote_id()
    }
}

impl TestProcess {
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.body.id.as_raw_nonzero().get().unsigned_abs()
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }
}

/// The steps of the complete plan for root on this host, as JSON.
#[must_use]
pub fn steps(skill: &SkillName, limits: &ResourceLimits) -> Vec<serde_json::Value> {
    let skill = format!("/skills/{skill}");
    let host = host::root(&[]);
    let input = SandboxInput {
        files: vec![(&skill, MountSource::Passed)],
        limits,
        bounds: LimitMechanism::Cgroup,
        ways: MountAccess::Passed,
    };
    let all: Vec<Step> = [
        plan_host::before_run(&host, MountAccess::Passed),
        plan::run_plan(&input).steps,
    ]
    .concat();
    let json = all.into_iter().map(serde_json::to_value);
    json.collect::<Result<_, _>>()
        .expect("a step is a tag and plain values")
}
