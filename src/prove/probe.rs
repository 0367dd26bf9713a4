//! Attacks as data: programs with their inputs, and the expected outcomes by promise.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::verdict::Expected;

/// One data file per kind of attack.
const FILES: [&str; 4] = [
    include_str!("confinement.yaml"),
    include_str!("system_calls.yaml"),
    include_str!("endings.yaml"),
    include_str!("exhaustion.yaml"),
];
/// Differences on gVisor, by the probe's name.
const ON_GVISOR: &str = include_str!("gvisor.yaml");

/// An execution, or a check of the host after all executions, with its probes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attack {
    /// A program of [`super::programs`]; without one, the host is checked after all other attacks.
    pub(super) program: Option<String>,
    /// Its input, in addition to that of every program.
    #[serde(default)]
    pub(super) input: serde_json::Map<String, Value>,
    /// Inputs of an earlier run of the same program.
    pub(super) before: Option<serde_json::Map<String, Value>>,
    /// Lines of the skill's front matter.
    #[serde(default)]
    pub(super) front_matter: Vec<String>,
    /// Files next to the program, by name.
    #[serde(default)]
    pub(super) beside: BTreeMap<String, String>,
    /// Files in the working folder, by name.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Deadline.
    #[serde(default = "thirty")]
    pub(super) seconds: f64,
    /// Not run without limits (the degraded form).
    #[serde(default)]
    pub(super) needs_bounds: bool,
    pub(super) probes: Vec<Probe>,
}

fn thirty() -> f64 {
    30.0
}

/// An expected outcome.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Probe {
    /// The catalogue's id, and a letter if it has several probes.
    pub(super) id: String,
    /// `P1` to `P16`.
    pub(super) promise: String,
    /// Short description of the attack.
    pub(super) name: String,
    /// Mechanism that keeps the promise.
    pub(super) by: Mechanism,
    /// Expected values, by JSON pointer into the outcome.
    pub(super) expect: BTreeMap<String, Expected>,
    /// Different expectations, by backend, `ordinary`, `root` or `degraded`.
    #[serde(default)]
    pub(super) on: BTreeMap<String, BTreeMap<String, Expected>>,
    /// Backends to which it applies; all if absent.
    #[serde(default)]
    pub(super) only: Vec<String>,
    /// From `gvisor.yaml`.
    #[serde(skip)]
    pub(super) on_gvisor: Option<OnGvisor>,
}

/// Differences on gVisor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnGvisor {
    /// Different mechanism.
    by: Option<String>,
    /// Why the promise is only partly kept there; the verdict is then `degraded` at best.
    weaker: Option<String>,
    /// Alternative outcome that is accepted there.
    #[serde(default)]
    expect: BTreeMap<String, Expected>,
}

/// Trait of a runtime that is a kernel in user space.
pub(super) const GVISOR: &str = "gvisor";

/// The same text everywhere, or different ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Mechanism {
    Everywhere(String),
    By(BTreeMap<String, String>),
}

impl Mechanism {
    /// The text of the last of these traits that has one.
    pub(super) fn on(&self, traits: &[String]) -> &str {
        match self {
            Self::Everywhere(words) => words,
            Self::By(words) => {
                let found = traits.iter().rev().find_map(|one| words.get(one));
                found.map_or("", String::as_str)
            }
        }
    }
}

impl Probe {
    /// Expectations for these traits; later ones override.
    pub(super) fn expected(&self, traits: &[String]) -> BTreeMap<String, Expected> {
        let mut expected = self.expect.clone();
        for differing in traits.iter().filter_map(|one| self.on.get(one)) {
            expected.extend(differing.clone());
        }
        expected
    }

    /// The accepted alternative for these traits.
    pub(super) fn expected_else(&self, traits: &[String]) -> Option<BTreeMap<String, Expected>> {
        let other = &self.on_gvisor(traits)?.expect;
        (!other.is_empty()).then(|| other.clone())
    }

    /// The mechanism for these traits.
    pub(super) fn mechanism(&self, traits: &[String]) -> &str {
        let other = self.on_gvisor(traits).and_then(|other| other.by.as_deref());
        other.unwrap_or_else(|| self.by.on(traits))
    }

    /// Why the promise is only partly kept with these traits.
    pub(super) fn weaker(&self, traits: &[String]) -> Option<&str> {
        self.on_gvisor(traits).and_then(|other| other.weaker.as_deref())
    }

    fn on_gvisor(&self, traits: &[String]) -> Option<&OnGvisor> {
        let other = self.on_gvisor.as_ref();
        other.filter(|_| traits.iter().any(|one| one == GVISOR))
    }

    fn says_anything_on(&self, traits: &[String]) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| traits.contains(one))
    }

    fn is_named(&self, name: &str) -> bool {
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        same(&self.promise)
            || same(&self.id)
            || same(self.id.trim_end_matches(|c: char| c.is_ascii_lowercase()))
    }
}

#[derive(Clone, Debug)]
pub struct Selection {
    pub(super) attacks: Vec<Attack>,
}

impl Selection {
    /// The attacks of these promises (`P7`), catalogue ids (`S-10`) or names (`S-10b`); all if empty. Fails on an
    /// unknown name.
    pub fn named(names: &[String]) -> Result<Self, String> {
        let mut attacks = all();
        let known = |name: &String| {
            attacks
                .iter()
                .any(|attack| attack.probes.iter().any(|probe| probe.is_named(name)))
        };
        if let Some(unknown) = names.iter().find(|name| !known(name)) {
            return Err(format!(
                "unknown probe {unknown:?}; name a promise (P1 to P16) or a probe as `skillbox prove` lists it (S-10, S-10b)"
            ));
        }
        for attack in &mut attacks {
            attack
                .probes
                .retain(|probe| names.is_empty() || names.iter().any(|name| probe.is_named(name)));
        }
        attacks.retain(|attack| !attack.probes.is_empty());
        Ok(Self { attacks })
    }

    /// The attacks that apply here.
    pub(super) fn on(&self, traits: &[String]) -> Vec<Attack> {
        let mut attacks = self.attacks.clone();
        for attack in &mut attacks {
            attack.probes.retain(|probe| probe.says_anything_on(traits));
        }
        attacks.retain(|attack| !attack.probes.is_empty());
        attacks
    }
}

fn all() -> Vec<Attack> {
    let mut attacks: Vec<Attack> = FILES.into_iter().flat_map(parse::<Vec<Attack>>).collect();
    let mut on_gvisor: BTreeMap<String, OnGvisor> = parse(ON_GVISOR);
    for probe in attacks.iter_mut().flat_map(|attack| &mut attack.probes) {
        probe.on_gvisor = on_gvisor.remove(&probe.id);
    }
    assert!(on_gvisor.is_empty(), "a test reads the data: {on_gvisor:?}");
    attacks
}

fn parse<T: DeserializeOwned>(text: &str) -> T {
    // Via JSON, to distinguish numbers and texts.
    let tree: Value = serde_saphyr::from_str(text).expect("a test reads the data");
    serde_json::from_value(tree).expect("a test reads the data")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::prove::programs;
    use crate::sandbox::PROMISES;

    /// Issue 3: at least 80, at least two for each promise.
    #[test]
    fn each_promise_has_several_probes_with_unique_names() {
        let probes: Vec<Probe> = all().into_iter().flat_map(|attack| attack.probes).collect();
        assert!(probes.len() >= 80, "{}", probes.len());
        for (promise, _) in PROMISES {
            let tested = probes.iter().filter(|probe| probe.promise == *promise).count();
            assert!(tested >= 2, "{promise}: {tested}");
        }
        let ids: BTreeSet<_> = probes.iter().map(|probe| &probe.id).collect();
        assert_eq!(ids.len(), probes.len());
        for probe in &probes {
            assert!(PROMISES.iter().any(|(promise, _)| *promise == probe.promise));
            assert!(!probe.expect.is_empty(), "{}", probe.id);
            for backend in ["docker", "native"].map(|name| vec![name.to_owned()]) {
                assert!(
                    !probe.says_anything_on(&backend) || !probe.by.on(&backend).is_empty(),
                    "{} has no mechanism on {backend:?}",
                    probe.id
                );
            }
        }
    }

    /// Entries of the catalogue that apply, and are no matter of tests only; the data says why others are not there.
    #[test]
    fn each_applicable_catalogue_entry_has_a_probe() {
        let missing_by_right = [
            "S-08", "S-28", "S-33", "S-34", "S-36", "S-38", "O-10", "O-13", "O-14", "O-15", "O-16", "R-10",
            "R-11", "R-12", "R-13", "R-16", "R-17",
        ];
        let entries = [("S", 39), ("O", 21), ("R", 17)]
            .into_iter()
            .flat_map(|(section, last)| (1..=last).map(move |number| format!("{section}-{number:02}")));
        let attacks = all();
        let tested = |entry: &str| {
            attacks
                .iter()
                .any(|attack| attack.probes.iter().any(|probe| probe.is_named(entry)))
        };
        for entry in entries.filter(|entry| !missing_by_right.contains(&entry.as_str())) {
            assert!(tested(&entry), "{entry}");
        }
        for entry in missing_by_right {
            let said = FILES.iter().any(|text| text.contains(&format!("#   {entry} ")));
            assert!(tested(entry) || said, "nobody says why {entry} has no probe");
        }
    }

    #[test]
    fn probes_and_their_programs_match() {
        let attacks = all();
        for name in attacks.iter().filter_map(|attack| attack.program.as_deref()) {
            assert!(programs::find(name).is_some(), "{name}");
        }
        for (name, _, _) in programs::PROGRAMS {
            let used = |attack: &Attack| attack.program.as_deref() == Some(name);
            assert!(attacks.iter().any(used), "{name}");
        }
    }

    #[test]
    fn probes_are_found_by_promise_entry_and_name() {
        let count = |name: &str| {
            let selection = Selection::named(&[name.to_owned()]).unwrap();
            selection
                .attacks
                .iter()
                .map(|attack| attack.probes.len())
                .sum::<usize>()
        };
        assert!(count("P7") >= 2);
        assert!(count("s-10") > count("S-10b"));
        assert_eq!(count("S-10b"), 1);
        assert!(
            Selection::named(&["S-99".to_owned()])
                .unwrap_err()
                .contains("S-99")
        );
    }
}
