//! Programs that will not end, or will not let others end: what becomes of them, and when.

use serde_json::json;
use skillbox::execution::{Outcome, Status};
use skillbox::skill::Language;

use crate::sandbox_oracles::{Attack, Watched};
use crate::world::{in_time, of, output, stdout};

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
async fn killing_everything_reaches_only_the_own_sandbox() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
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
        let outcome = watched.run(way("kill_itself")).await;
        assert_eq!(code(&outcome), (Status::Failed, Some("signal")));
        assert!(outcome.error.unwrap().message.contains("signal 9"));
        assert!(outcome.output.is_some(), "the output was there before");
    };
    let (neighbour, ()) = tokio::join!(neighbour, attacks);
    assert_eq!(output(&neighbour), "well");
    watched.close().await;
}

/// S-26, P16: the end of the main process is the end of all, and what was written until then counts.
#[tokio::test]
async fn a_daemon_dies_with_the_main_process() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    for name in ["daemonise", "close_everything"] {
        in_time(OVERTIME_MS, async || {
            let outcome = watched.run(way(name)).await;
            assert_eq!(code(&outcome), (Status::Success, None), "{name}");
            assert_eq!(output(&outcome), json!({}), "{name}");
            outcome.timings.collect_ms
        })
        .await;
    }
    watched.close().await;
}

/// S-27, R-09, O-20: killed at the deadline; what it had left by then is kept.
#[tokio::test]
async fn nothing_survives_the_deadline() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    for name in [
        "deaf",
        "stopped",
        "stopped_family",
        "sitting_in_vfork",
        "spinning",
    ] {
        in_time(3000.0 + OVERTIME_MS, async || {
            let outcome = watched.run(way(name).seconds(3.0)).await;
            assert_eq!(code(&outcome), (Status::Timeout, Some("timeout")), "{name}");
            assert!(outcome.timings.run_ms > 2900.0, "{name}: {:?}", outcome.timings);
            if name != "spinning" {
                assert_eq!(output(&outcome), json!({}), "{name}");
            }
            outcome.timings.run_ms
        })
        .await;
    }
    watched.close().await;
}

/// with all slots busy.
#[tokio::test]
async fn deadlines_hold_under_load() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
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
async fn a_frozen_sandbox_is_gone_soon_after_its_deadline() {
    // A number that no other sleep on this machine has.
    let duration = format!("6{}.{}", super::BACKEND as u8, std::process::id());
    in_time(3000.0 + OVERTIME_MS, async || {
        let Some(watched) = Watched::on(super::BACKEND).await else {
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

/// S-28, P16.
#[tokio::test]
async fn orphans_are_reaped_and_zombies_count_as_processes() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    assert_eq!(watched.verdicts(way("orphans")).await, json!({}));
    assert_eq!(
        watched.verdicts(way("zombies")).await,
        json!({ "zombies": [true, "EAGAIN"] })
    );
    watched.close().await;
}

/// P14.
#[tokio::test]
async fn one_sandbox_finds_nothing_of_another() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    watched.verdicts(way("pollute")).await;
    let seen = watched.verdicts(way("look_for_pollution")).await;
    // Without a cgroup there are no segments at all.
    let is_watched = std::env::var_os(crate::world::DEGRADED).is_some();
    let segment = if is_watched { "ENOSYS" } else { "ENOENT" };
    assert_eq!(seen, json!({ "left": [], "segment": segment }));
    watched.close().await;
}

/// S-32.
#[tokio::test]
async fn a_crash_leaves_no_core() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let outcome = watched.run(way("crash")).await;
    assert_eq!(code(&outcome), (Status::Failed, Some("signal")));
    let expected = json!({ "child": "SIGSEGV", "core limit": [0, 0], "raised": "ValueError", "cores": [] });
    assert_eq!(output(&outcome), expected);
    watched.close().await;
}

///
#[tokio::test]
async fn a_large_input_blocks_nobody_whether_it_is_read_or_not() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
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

/// O-19: six endings, six reasons.
#[tokio::test]
async fn each_way_to_end_has_a_reason_of_its_own() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let bash = |program: &str| Attack::plain(Language::Bash, program);
    let hungry = "x=y; while :; do x=$x$x; done";
    let node_on_bash = format!("image: {}\n", crate::world::images().bash);
    let endings = [
        (bash("exit 137"), Status::Failed, "exit_code"),
        (
            bash(hungry).front_matter("resources: { memory: 64MiB }\n"),
            Status::Oom,
            "oom",
        ),
        (bash("sleep 60").seconds(0.5), Status::Timeout, "timeout"),
        (bash("kill -KILL $$"), Status::Failed, "signal"),
        (
            Attack::plain(Language::Node, "").front_matter(&node_on_bash),
            Status::Failed,
            "start_failed",
        ),
        (
            bash("truncate -s 11M $SANDBOX_OUTPUT"),
            Status::Failed,
            "output_too_large",
        ),
    ];
    // The native sandbox has the programs of its host, whatever the image.
    let has_images = of(super::BACKEND, true, false);
    let endings = endings
        .into_iter()
        .filter(|(_, _, reason)| has_images || *reason != "start_failed");
    for (attack, status, reason) in endings {
        let outcome = watched.run(attack).await;
        assert_eq!(code(&outcome), (status, Some(reason)), "{:?}", outcome.error);
        assert_eq!(
            outcome.exit_code,
            match reason {
                "exit_code" => Some(137),
                "output_too_large" => Some(0),
                _ => None,
            }
        );
    }
    watched.close().await;
}

/// O-20.
#[tokio::test]
async fn an_output_written_before_the_deadline_is_kept() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let program = "echo started; echo '{\"done\": true}' >$SANDBOX_OUTPUT; while :; do :; done";
    let outcome = watched
        .run(Attack::plain(Language::Bash, program).seconds(1.0))
        .await;
    assert_eq!(code(&outcome), (Status::Timeout, Some("timeout")));
    assert_eq!(
        (output(&outcome), stdout(&outcome)),
        (json!({ "done": true }), "started\n".to_owned())
    );
    watched.close().await;
}
