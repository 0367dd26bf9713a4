//! Each kind of expectation can fail, and fails for the right reason.

use serde_json::{Value, json};

use super::probe::{Attack, Probe};
use super::report::Tally;
use super::verdict::{self, Observation, Verdict, check_probe, on_slow_host};

fn probe(text: &Value) -> Probe {
    serde_json::from_value(text.clone()).unwrap()
}

fn on(traits: &[&str]) -> Vec<String> {
    traits.iter().map(|one| (*one).to_owned()).collect()
}

fn memory() -> Probe {
    probe(&json!({
        "id": "R-03", "promise": "P6", "name": "memory", "by": { "docker": "a", "native": "b" },
        "expect": { "/status": "oom", "/share": { "at_most": 1.0 } },
        "on": { "ordinary": { "/status": { "one_of": ["oom", "failed"] } } },
    }))
}

fn memory_on_gvisor(other: &Value) -> Probe {
    Probe {
        on_gvisor: serde_json::from_value(other.clone()).unwrap(),
        ..memory()
    }
}

#[test]
fn unexpected_result_is_a_breach_that_shows_both() {
    let seen = |value| Observation::Outcome(value);
    let fine = check_probe(
        &memory(),
        &seen(json!({ "status": "oom", "share": 1 })),
        &on(&["docker"]),
    );
    assert_eq!((fine.verdict, fine.mechanism.as_str()), (Verdict::Kept, "a"));
    assert!(fine.expected.is_empty() && fine.seen.is_empty());
    for (wrong, place) in [
        (json!({ "status": "success", "share": 0.5 }), "/status"),
        (json!({ "status": "oom", "share": 1.01 }), "/share"),
        (json!({ "status": "oom" }), "/share"),
        (json!({ "status": "oom", "share": "1" }), "/share"),
        (json!({ "refused": "invalid" }), "/status"),
        (Value::Null, "/status"),
    ] {
        let found = check_probe(&memory(), &seen(wrong.clone()), &on(&["docker"]));
        assert_eq!(found.verdict, Verdict::Breach, "{wrong}");
        assert!(
            found.expected.contains_key(place) && found.seen.contains_key(place),
            "{found:?}"
        );
    }
}

#[test]
fn each_part_of_an_expectation_can_fail() {
    let judged = |expected: Value, seen: Value| {
        let probe = probe(
            &json!({ "id": "x", "promise": "P1", "name": "x", "by": "x", "expect": { "/x": expected } }),
        );
        check_probe(
            &probe,
            &Observation::Outcome(json!({ "x": seen })),
            &on(&["docker"]),
        )
        .verdict
            == Verdict::Kept
    };
    for (expected, holds, fails) in [
        (json!([]), json!([]), json!(["bpf"])),
        (json!({}), json!({}), json!({ "bpf": "EINVAL" })),
        (json!({ "one_of": [1, 2] }), json!(2), json!(3)),
        (json!({ "at_most": 2 }), json!(2), json!(2.1)),
        (json!({ "at_least": 2 }), json!(2), json!(1)),
        (
            json!({ "contains": "link" }),
            json!("it is a link"),
            json!("it is a file"),
        ),
        (
            json!({ "all": "ok" }),
            json!({ "a": "ok" }),
            json!({ "a": "ok", "b": "EPERM" }),
        ),
        (json!({ "all": "ok" }), json!(["ok"]), json!([])),
        (
            json!({ "all_one_of": ["ok", "EROFS"] }),
            json!(["EROFS", "ok"]),
            json!(["ok", "EPERM"]),
        ),
        (
            json!({ "UNIX": "ok" }),
            json!({ "UNIX": "ok" }),
            json!({ "UNIX": "EPERM" }),
        ),
    ] {
        assert!(judged(expected.clone(), holds), "{expected}");
        assert!(!judged(expected.clone(), fails), "{expected}");
    }
}

#[test]
fn only_declared_backends_may_differ() {
    let failed = Observation::Outcome(json!({ "status": "failed", "share": 0 }));
    let judged = |traits: &[&str]| check_probe(&memory(), &failed, &on(traits));
    assert_eq!(judged(&["native", "ordinary"]).verdict, Verdict::Kept);
    assert_eq!(judged(&["docker"]).verdict, Verdict::Breach);
    assert_eq!(judged(&["native"]).verdict, Verdict::Breach);
}

#[test]
fn gvisor_result_counts_on_gvisor_only() {
    let probe = memory_on_gvisor(&json!({ "by": "c", "expect": { "/status": "interrupted" } }));
    let judged = |status: &str, traits: &[&str]| {
        let seen = Observation::Outcome(json!({ "status": status, "share": 0 }));
        let finding = check_probe(&probe, &seen, &on(traits));
        (finding.verdict, finding.mechanism)
    };
    let gvisor = ["docker", "gvisor"];
    assert_eq!(judged("interrupted", &gvisor), (Verdict::Kept, "c".to_owned()));
    assert_eq!(judged("oom", &gvisor).0, Verdict::Kept);
    assert_eq!(judged("success", &gvisor).0, Verdict::Breach);
    for elsewhere in ["docker", "native"] {
        assert_eq!(judged("interrupted", &[elsewhere]).0, Verdict::Breach);
    }
}

/// Less than the promise is never `kept`, and less than even that is a breach.
#[test]
fn gvisor_weakness_is_degraded_with_reason_or_a_breach() {
    let probe = memory_on_gvisor(&json!({ "weaker": "why", "expect": { "/status": "interrupted" } }));
    let judged = |observation: Observation, traits: &[&str]| {
        let finding = check_probe(&probe, &observation, &on(traits));
        (finding.verdict, finding.reason)
    };
    let seen = |status: &str| Observation::Outcome(json!({ "status": status, "share": 0 }));
    let gvisor = ["docker", "gvisor"];
    assert_eq!(
        judged(seen("interrupted"), &gvisor),
        (Verdict::Degraded, Some("why".to_owned()))
    );
    assert_eq!(judged(seen("success"), &gvisor).0, Verdict::Breach);
    // No proof that it is always so.
    assert_eq!(judged(seen("oom"), &gvisor).0, Verdict::Degraded);
    assert_eq!(
        judged(Observation::Failed("how".to_owned()), &gvisor).0,
        Verdict::Breach
    );
    assert_eq!(judged(seen("interrupted"), &["docker"]).0, Verdict::Breach);
    assert_eq!(judged(seen("oom"), &["docker"]), (Verdict::Kept, None));
}

/// A probe is repeated only if the host was too slow.
#[test]
fn retries_only_timeouts() {
    let ends = probe(&json!({ "id": "a", "promise": "P8", "name": "a", "by": "a",
        "expect": { "/status": "timeout", "/past_deadline_ms": { "at_most": 1000 } } }));
    let leaves = probe(&json!({ "id": "b", "promise": "P15", "name": "b", "by": "b",
        "expect": { "/left": [] } }));
    for (status, past, left, is_only_late) in [
        ("timeout", json!(1200), json!([]), true),
        ("timeout", json!(900), json!([]), false),
        ("success", json!(1200), json!([]), false),
        ("timeout", json!(1200), json!(["a process"]), false),
    ] {
        let seen = Observation::Outcome(json!({ "status": status, "past_deadline_ms": past, "left": left }));
        let probes = [ends.clone(), leaves.clone()];
        let judged = verdict::is_only_late(&probes, &seen, &on(&["native"]));
        assert_eq!(judged, is_only_late, "{seen:?}");
    }
    let broke = Observation::Failed("it did not end".to_owned());
    assert!(!verdict::is_only_late(&[ends], &broke, &on(&["native"])));
}

#[test]
fn engine_failure_is_a_breach_and_missing_program_is_skipped() {
    let broke = check_probe(
        &memory(),
        &Observation::Failed("the engine failed".to_owned()),
        &on(&["docker"]),
    );
    assert_eq!(
        (broke.verdict, broke.reason.as_deref()),
        (Verdict::Breach, Some("the engine failed"))
    );
    let untried = check_probe(
        &memory(),
        &Observation::Unavailable("no python3".to_owned()),
        &on(&["native"]),
    );
    assert_eq!(
        (untried.verdict, untried.reason.as_deref()),
        (Verdict::Skipped, Some("no python3"))
    );
    let declined = Observation::Outcome(json!({ "output": { "skipped": "not this machine" } }));
    assert_eq!(
        check_probe(&memory(), &declined, &on(&["native"])).verdict,
        Verdict::Skipped
    );
}

/// The degraded form excuses P6 and P7, held or not, and nothing else.
#[test]
fn missing_cgroups_degrade_two_promises_only() {
    let traits = on(&["native", "ordinary", "degraded"]);
    for observation in [
        Observation::Outcome(json!({ "status": "success", "share": 9 })),
        Observation::Outcome(json!({ "status": "oom", "share": 1 })),
        Observation::NotTried,
    ] {
        assert_eq!(
            check_probe(&memory(), &observation, &traits).verdict,
            Verdict::Degraded,
            "{observation:?}"
        );
    }
    let other = Probe {
        promise: "P5".to_owned(),
        ..memory()
    };
    let breach = check_probe(
        &other,
        &Observation::Outcome(json!({ "status": "success" })),
        &traits,
    );
    assert_eq!(breach.verdict, Verdict::Breach);
}

#[test]
fn worst_verdict_counts_and_silence_is_a_breach() {
    let tally = |kept, degraded, breach, skipped| Tally {
        inconclusive: 0,
        kept,
        degraded,
        breach,
        skipped,
    };
    assert_eq!(tally(99, 2, 1, 3).verdict(), Verdict::Breach);
    assert_eq!(tally(99, 2, 0, 3).verdict(), Verdict::Degraded);
    assert_eq!(tally(99, 0, 0, 3).verdict(), Verdict::Kept);
    assert_eq!(tally(0, 0, 0, 3).verdict(), Verdict::Skipped);
}

/// An attack that hit its own time limit says nothing; what it reported before counts.
#[test]
fn time_limit_of_an_attack_is_inconclusive_and_lateness_only_on_a_slow_host() {
    let verdict = |probe: &Probe, seen: Value, slowness| {
        let observation = Observation::Outcome(seen);
        let finding = check_probe(probe, &observation, &on(&["docker"]));
        on_slow_host(finding, &observation, slowness).verdict
    };
    let timed_out = json!({ "status": "timeout" });
    assert_eq!(verdict(&memory(), timed_out, 1.0), Verdict::Inconclusive);
    let page_tables = probe(&json!({
        "id": "R-04g", "promise": "P6", "name": "memory", "by": "a", "expect": { "/status": "oom", "/code": "oom" },
    }));
    let slow = json!({ "status": "timeout", "code": "timeout" });
    assert_eq!(verdict(&page_tables, slow, 1.0), Verdict::Inconclusive);
    let told = json!({ "status": "timeout", "share": 2.0 });
    assert_eq!(verdict(&memory(), told, 1.0), Verdict::Breach);
    assert_eq!(
        verdict(&memory(), json!({ "status": "success" }), 9.0),
        Verdict::Breach
    );
    let lost = json!({ "status": "interrupted", "code": "sandbox_lost" });
    assert_eq!(verdict(&memory(), lost.clone(), 1.0), Verdict::Breach);
    assert_eq!(verdict(&memory(), lost, 9.0), Verdict::Inconclusive);
    let deadline = probe(&json!({
        "id": "R-01", "promise": "P8", "name": "deadline", "by": "a",
        "expect": { "/status": "timeout", "/past_deadline_ms": { "at_most": 1000 } },
    }));
    let late = || json!({ "status": "timeout", "past_deadline_ms": 1500 });
    assert_eq!(verdict(&deadline, late(), 1.0), Verdict::Breach);
    assert_eq!(verdict(&deadline, late(), 4.0), Verdict::Inconclusive);
}

/// An attack that misspells a key is refused, not run without it.
#[test]
fn rejects_probe_data_with_unknown_key() {
    let attack = json!({ "program": "x", "secons": 1, "probes": [] });
    assert!(serde_json::from_value::<Attack>(attack).is_err());
}
