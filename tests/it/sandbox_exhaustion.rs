//! Programs that take all there is: they get their share, and nobody else notices.

use serde_json::json;
use skillbox::execution::{Outcome, Status};
use skillbox::skill::Language;

use crate::sandbox_oracles::{Attack, Watched};
use crate::world::{in_time, of, output};

fn too_much(of: &str) -> Attack {
    Attack::python(include_str!("../../src/prove/probes/exhaust.py")).input(&json!({ "of": of }).to_string())
}

/// With little memory, so that it is soon used up.
fn too_much_of_little(of: &str) -> Attack {
    too_much(of).front_matter("resources: { memory: 96MiB }\n")
}

fn code(outcome: &Outcome) -> (Status, Option<&str>) {
    (
        outcome.status,
        outcome.error.as_ref().map(|error| error.code.as_str()),
    )
}

///
#[tokio::test]
async fn processes_and_threads_end_at_the_limit_together() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    assert_eq!(
        watched.verdicts(too_much("processes")).await,
        json!({ "processes": [true, "EAGAIN"] })
    );
    assert_eq!(
        watched.verdicts(too_much("threads")).await,
        json!({ "threads": [true, "RuntimeError"] })
    );
    watched.close().await;
}

/// R-01, P8: the deadline ends them within a second, and a neighbour notices nothing.
#[tokio::test]
async fn fork_bombs_end_at_the_deadline() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let bombs: [fn() -> Attack; 3] = [
        // A shell that may not fork gives up in the end, so the first one only begins it.
        || Attack::plain(Language::Bash, "(:(){ :|:& };:) & while :; do :; done"),
        || {
            Attack::plain(
                Language::Bash,
                "bomb() { while :; do bomb & done; }; bomb & while :; do :; done",
            )
        },
        || too_much("fork_bomb"),
    ];
    for bomb in bombs {
        in_time(3000.0, async || {
            let neighbour = watched.run(Attack::plain(Language::Bash, "echo 1 >$SANDBOX_OUTPUT"));
            let bomb = watched.run(bomb().seconds(2.0));
            let (outcome, neighbour) = tokio::join!(bomb, neighbour);
            assert_eq!(
                code(&outcome),
                (Status::Timeout, Some("timeout")),
                "{:?}",
                outcome.error
            );
            // Who counts from outside may see a few that have ended and are not reaped yet.
            assert!(outcome.usage.processes_peak <= 128 + 8, "{:?}", outcome.usage);
            assert_eq!(neighbour.status, Status::Success, "{:?}", neighbour.error);
            outcome.timings.run_ms
        })
        .await;
    }
    watched.close().await;
}

/// P6.
#[tokio::test]
async fn memory_of_every_kind_ends_in_oom_inside_only() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    for of in [
        "anonymous",
        "shared",
        "stack",
        "memory_files",
        "system_v",
        "fork_bomb_that_eats",
    ] {
        let outcome = watched.run(too_much_of_little(of).seconds(15.0)).await;
        let expected = (Status::Oom, Some("oom"));
        assert_eq!(
            code(&outcome),
            expected,
            "{of}: {:?} {:?}",
            outcome.error,
            outcome.usage
        );
    }
    watched.close().await;
}

/// shared segments and full scratch stay when the program has gone; the collector gets by with what is left.
#[tokio::test]
async fn memory_that_outlives_a_program_hinders_no_collection() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let outcome = watched.run(too_much_of_little("system_v_and_leave")).await;
    assert_eq!(
        code(&outcome),
        (Status::Oom, Some("oom")),
        "{:?} {:?}",
        outcome.error,
        outcome.usage
    );
    for attack in [
        too_much("scratch_and_leave"),
        too_much_of_little("scratch_and_leave"),
    ] {
        let outcome = watched.run(attack).await;
        assert_eq!(
            code(&outcome),
            (Status::Success, None),
            "{:?} {:?}",
            outcome.error,
            outcome.usage
        );
        assert_eq!((outcome.files.len(), output(&outcome)), (1, json!({})));
    }
    watched.close().await;
}

/// what the kernel holds for a program counts as its memory, or has limits of its own.
#[tokio::test]
async fn pipes_sockets_and_locked_pages_are_bounded() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    for of in ["pipes", "sockets", "locked", "small_maps"] {
        let outcome = watched.run(too_much_of_little(of).seconds(15.0)).await;
        let expected = if of == "locked" {
            (Status::Success, None)
        } else {
            (Status::Oom, Some("oom"))
        };
        assert_eq!(
            code(&outcome),
            expected,
            "{of}: {:?} {:?}",
            outcome.error,
            outcome.usage
        );
        if of == "locked" {
            assert_eq!(
                output(&outcome),
                json!({ "mlock": "ENOMEM", "mlockall": "ENOMEM" })
            );
        }
    }
    watched.close().await;
}

/// R-05, P10.
#[tokio::test]
async fn scratch_ends_at_its_size_and_its_inodes() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let full = json!([
        ["ENOSPC", true, true],
        ["ENOSPC", true, true],
        ["ENOSPC", true, true],
        ["ENOSPC", true, true]
    ]);
    let seen = watched.verdicts(too_much("disk")).await;
    for folder in ["/workspace", "/tmp", "/sandbox/out/files", "/dev/shm", "/root"] {
        assert_eq!(seen[folder], full, "{folder}: {seen:#}");
    }
    let seen = watched.verdicts(too_much("inodes")).await;
    for folder in ["/workspace", "/tmp", "/sandbox/out/files", "/root"] {
        assert_eq!(seen[folder], json!(["ENOSPC", true]), "{folder}: {seen:#}");
    }
    watched.close().await;
}

/// R-06, P7: one core, whoever spins.
#[tokio::test]
async fn sixty_four_spinning_threads_get_one_core() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let outcome = watched.run(too_much("cpu").seconds(3.0)).await;
    assert_eq!(code(&outcome), (Status::Timeout, Some("timeout")));
    assert!(outcome.usage.cpu_ms < 4000, "{:?}", outcome.usage);
    watched.close().await;
}

///
#[tokio::test]
async fn descriptors_end_at_the_limit_in_flight_too() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let seen = watched.verdicts(too_much("descriptors")).await;
    assert_eq!(
        seen,
        json!({ "open": [true, "EMFILE"], "in flight": [true, true], "raised": "ValueError" })
    );
    watched.close().await;
}

///
#[tokio::test]
async fn memory_is_not_extended_by_swap() {
    let Some(watched) = Watched::on(super::BACKEND).await else {
        return;
    };
    let outcome = watched
        .run(too_much("swap").front_matter("resources: { memory: 64MiB }\n"))
        .await;
    assert_eq!(code(&outcome), (Status::Oom, Some("oom")));
    // No cgroup is seen inside the native sandbox; that its swap is bounded shows in the line above alone.
    let seen = of(super::BACKEND, json!({ "limit": true }), json!({}));
    assert_eq!(output(&outcome), seen);
    watched.close().await;
}
