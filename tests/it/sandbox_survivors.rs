//! Programs that outlive their deadline or attack neighbours, seen from outside. The rest is in `skillbox prove` (S-25 to S-28, S-32).

use serde_json::json;
use skillbox::execution::{Outcome, Status};
use skillbox::skill::Language;

use crate::attempts::in_time;
use crate::outcomes::output;
use crate::sandbox_oracles::{Attack, ObservedWorld};
use crate::world::Backend;

/// P8 allows one second from the deadline.
const OVERTIME_MS: f64 = 1000.0;

fn way(name: &str) -> Attack {
    Attack::python(include_str!("../../src/prove/probes/survivors.py"))
        .input(&json!({ "way": name }).to_string())
}

fn code(outcome: &Outcome) -> (Status, Option<&str>) {
    (
        outcome.status,
        outcome.error.as_ref().map(|error| error.code.as_str()),
    )
}

/// S-25: a neighbour that runs all the while notices nothing.
#[tokio::test]
async fn kill_of_every_process_stays_inside_its_sandbox() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let neighbour = watched.run(Attack::plain(
        Language::Bash,
        "sleep 2; echo '\"well\"' >$SANDBOX_OUTPUT",
    ));
    let attacks = async {
        let seen = watched.verdicts(way("kill_everything")).await;
        let expected = json!({
            "first process": ["ok"], "everybody": "ok", "own child": 9, "stop the first": ["ok", "ok"], "queued": "EPERM",
        });
        assert_eq!(seen, expected);
    };
    let (neighbour, ()) = tokio::join!(neighbour, attacks);
    assert_eq!(output(&neighbour), "well");
    watched.close().await;
}

/// with all slots busy.
#[tokio::test]
async fn deadlines_hold_under_load() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let spin = || watched.run(Attack::plain(Language::Bash, "while :; do :; done").seconds(1.5));
    in_time(1500.0 + OVERTIME_MS, async || {
        let outcomes = futures::future::join_all((0..8).map(|_| spin())).await;
        let took = outcomes.iter().map(|outcome| {
            assert_eq!(code(outcome), (Status::Timeout, Some("timeout")));
            outcome.timings.run_ms
        });
        took.fold(0.0, f64::max)
    })
    .await;
    watched.close().await;
}

/// P8: where the first process cannot keep the deadline, the engine ends it all in time.
#[tokio::test]
async fn frozen_sandbox_is_removed_within_one_second_of_deadline() {
    // A number that no other sleep on this machine has.
    let duration = format!("6{}.{}", super::BACKEND as u8, std::process::id());
    in_time(3000.0 + OVERTIME_MS, async || {
        let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
            return 0.0;
        };
        let sleeping = Attack::plain(Language::Bash, &format!("echo up; sleep {duration}")).seconds(3.0);
        let (outcome, lived) = tokio::join!(watched.run(sleeping), watched.freeze(&duration));
        assert_eq!(code(&outcome), (Status::Timeout, Some("timeout")));
        assert!(outcome.logs.truncated(), "what was not heard is not said");
        watched.close().await;
        outcome.timings.run_ms.max(lived.as_secs_f64() * 1000.0)
    })
    .await;
}

///
#[tokio::test]
async fn large_input_is_delivered_whether_read_or_not() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let padding = "x".repeat(9 * 1024 * 1024);
    for name in ["read_all_input", "ignore_input"] {
        let input = json!({ "way": name, "padding": padding }).to_string();
        let size = input.len();
        let seen = watched.verdicts(way(name).input(&input)).await;
        if name == "read_all_input" {
            assert_eq!(seen, json!({ "read": size, "then": "" }));
        }
    }
    watched.close().await;
}

/// O-19: an interpreter that the image lacks is reported as such. Native sandboxes have the programs of their host.
#[tokio::test]
async fn reports_start_failure_of_missing_interpreter() {
    if super::BACKEND == Backend::Native {
        return;
    }
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let image = format!("image: {}\n", crate::world::images().bash);
    let node_without_node = Attack::plain(Language::Node, "").front_matter(&image);
    let outcome = watched.run(node_without_node).await;
    assert_eq!(code(&outcome), (Status::Failed, Some("start_failed")));
    assert_eq!(outcome.exit_code, None);
    watched.close().await;
}
