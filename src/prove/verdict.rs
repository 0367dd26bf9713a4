//! Compares outcomes with expectations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::probe::Probe;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expected {
    /// Equal.
    Is(Value),
    /// One of these.
    OneOf(Vec<Value>),
    /// At most this number.
    AtMost(f64),
    /// At least this number.
    AtLeast(f64),
    /// A text that contains this.
    Contains(String),
    /// A list or object that is not empty and contains only this.
    All(Value),
    /// The same with one or more of these.
    AllOneOf(Vec<Value>),
}

impl<'de> Deserialize<'de> for Expected {
    /// Plain values are compared exactly; an object with one of our keywords is a condition.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Some((word, operand)) = single(&value) else {
            return Ok(Self::Is(value));
        };
        let wrong = || serde::de::Error::custom(format!("`{word}` does not take {operand}"));
        let expected = match word {
            "one_of" => operand.as_array().map(|values| Self::OneOf(values.clone())),
            "at_most" => operand.as_f64().map(Self::AtMost),
            "at_least" => operand.as_f64().map(Self::AtLeast),
            "contains" => operand.as_str().map(|text| Self::Contains(text.to_owned())),
            "all_one_of" => operand.as_array().map(|values| Self::AllOneOf(values.clone())),
            "all" => Some(Self::All(operand.clone())),
            _ => return Ok(Self::Is(value)),
        };
        expected.ok_or_else(wrong)
    }
}

fn single(value: &Value) -> Option<(&str, &Value)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    object
        .iter()
        .next()
        .map(|(word, operand)| (word.as_str(), operand))
}

impl Expected {
    fn holds(&self, seen: Option<&Value>) -> bool {
        let Some(seen) = seen else { return false };
        match self {
            Self::Is(value) => seen == value,
            Self::OneOf(values) => values.contains(seen),
            Self::AtMost(most) => seen.as_f64().is_some_and(|number| number <= *most),
            Self::AtLeast(least) => seen.as_f64().is_some_and(|number| number >= *least),
            Self::Contains(text) => seen.as_str().is_some_and(|whole| whole.contains(text)),
            Self::All(value) => are_all(seen, |item| item == value),
            Self::AllOneOf(values) => are_all(seen, |item| values.contains(item)),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Is(value) => value.clone(),
            Self::OneOf(values) => json!({ "one_of": values }),
            Self::AtMost(most) => json!({ "at_most": most }),
            Self::AtLeast(least) => json!({ "at_least": least }),
            Self::Contains(text) => json!({ "contains": text }),
            Self::All(value) => json!({ "all": value }),
            Self::AllOneOf(values) => json!({ "all_one_of": values }),
        }
    }
}

/// Whether a list or object is not empty and each of its values is allowed.
fn are_all(seen: &Value, is_allowed: impl Fn(&Value) -> bool) -> bool {
    match seen {
        Value::Array(items) => !items.is_empty() && items.iter().all(is_allowed),
        Value::Object(items) => !items.is_empty() && items.values().all(is_allowed),
        _ => false,
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Observation {
    Outcome(Value),
    /// It cannot run here, for this reason.
    Unavailable(String),
    /// Not run, because no limit would stop it.
    NotTried,
    /// The engine failed, in this way.
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The promise is kept.
    Kept,
    /// Not checked.
    Skipped,
    /// The promise is only partly kept here, as the operator has accepted.
    Degraded,
    /// The attack hit its own time limit on this slow host, so nothing is known.
    Inconclusive,
    /// The promise is not kept.
    Breach,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// `P1` to `P16`.
    pub promise: String,
    /// Name of the probe.
    pub id: String,
    /// Description of the attack.
    pub name: String,
    pub verdict: Verdict,
    /// Mechanism on this host.
    pub mechanism: String,
    /// Violated expectations, by place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, Value>,
    /// The values at these places.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, Value>,
    /// Why the probe was skipped, or why the promise is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Promises that the degraded form of the native sandbox only keeps partly.
pub(super) const DEGRADED: [&str; 2] = ["P6", "P7"];

pub(super) fn check_probe(probe: &Probe, observation: &Observation, traits: &[String]) -> Finding {
    let mut finding = Finding {
        promise: probe.promise.clone(),
        id: probe.id.clone(),
        name: probe.name.clone(),
        verdict: Verdict::Kept,
        mechanism: probe.mechanism(traits).to_owned(),
        expected: BTreeMap::new(),
        seen: BTreeMap::new(),
        reason: None,
    };
    let mut say = |verdict, reason: &str| {
        finding.verdict = verdict;
        finding.reason = Some(reason.to_owned());
    };
    match observation {
        Observation::Unavailable(reason) => say(Verdict::Skipped, reason),
        Observation::NotTried => say(Verdict::Degraded, "not run: nothing here limits its usage"),
        Observation::Failed(how) => say(Verdict::Breach, how),
        Observation::Outcome(seen) => {
            if let Some(reason) = seen.pointer("/output/skipped").and_then(Value::as_str) {
                say(Verdict::Skipped, reason);
            } else {
                let before = finding.clone();
                compare(probe.expected(traits), seen, &mut finding);
                if finding.verdict == Verdict::Breach
                    && let Some(other) = probe.expected_else(traits)
                {
                    finding = before;
                    compare(other, seen, &mut finding);
                }
            }
        }
    }
    if let Some(why) = probe.weaker(traits)
        && finding.verdict == Verdict::Kept
    {
        // The reduced expectation is met.
        finding.verdict = Verdict::Degraded;
        finding.reason = Some(why.to_owned());
    }
    let is_degraded =
        traits.iter().any(|one| one == "degraded") && DEGRADED.contains(&probe.promise.as_str());
    // Whatever this attack shows: without a cgroup the promise is only partly kept.
    if is_degraded && finding.verdict != Verdict::Skipped {
        finding.verdict = Verdict::Degraded;
        finding
            .reason
            .get_or_insert_with(|| "accepted by sandbox.native.allow_degraded".to_owned());
    }
    finding
}

/// How much slower than usual a host must be, for a late sandbox to be no breach.
const SLOW: f64 = 3.0;

/// A breach that only shows how slow this host is becomes inconclusive: the program hit its own time limit before it could
/// report, or the host missed a time limit, such as that of receiving results.
pub(super) fn on_slow_host(mut finding: Finding, observation: &Observation, slowness: f64) -> Finding {
    let Observation::Outcome(seen) = observation else {
        return finding;
    };
    if finding.verdict != Verdict::Breach || finding.expected.is_empty() {
        return finding;
    }
    let is_missing = |place: &String| {
        ["/status", "/code"].contains(&place.as_str()) || seen.pointer(place).is_none_or(Value::is_null)
    };
    let has_timed_out = seen["status"] == "timeout" && finding.expected.keys().all(is_missing);
    let is_late = slowness >= SLOW
        && (finding.expected.keys().all(|place| place.ends_with("_ms")) || seen["code"] == "sandbox_lost");
    if has_timed_out || is_late {
        finding.verdict = Verdict::Inconclusive;
        finding.reason = Some(if has_timed_out {
            "the attack hit its own time limit; repeat it on a faster or less busy host".to_owned()
        } else {
            format!("this host is {slowness:.0} times slower than usual; repeat it on a faster one")
        });
    }
    finding
}

/// Whether there are breaches, all of them of time limits.
pub(super) fn is_only_late(probes: &[Probe], observation: &Observation, traits: &[String]) -> bool {
    let mut breaches = probes
        .iter()
        .map(|probe| check_probe(probe, observation, traits))
        .filter(|finding| finding.verdict == Verdict::Breach)
        .peekable();
    let is_time = |place: &String| place.ends_with("_ms");
    breaches.peek().is_some()
        && breaches.all(|breach| !breach.expected.is_empty() && breach.expected.keys().all(is_time))
}

fn compare(expected: BTreeMap<String, Expected>, seen: &Value, finding: &mut Finding) {
    for (place, expected) in expected {
        let found = seen.pointer(&place);
        if !expected.holds(found) {
            finding.verdict = Verdict::Breach;
            finding.expected.insert(place.clone(), expected.to_json());
            finding.seen.insert(place, found.cloned().unwrap_or(Value::Null));
        }
    }
    if finding.verdict == Verdict::Breach {
        // How the program ended explains an empty place.
        for place in ["/status", "/message"] {
            if let Some(found) = seen.pointer(place).filter(|found| !found.is_null()) {
                finding
                    .seen
                    .entry(place.to_owned())
                    .or_insert_with(|| found.clone());
            }
        }
    }
}
