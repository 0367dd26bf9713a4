//! Fork bombs beside a neighbour, which no probe sees from inside. All other exhaustion is in `skillbox prove` (R-01 to R-08, R-14).

use skillbox::execution::{Outcome, Status};
use skillbox::skill::Language;

use crate::attempts::in_time;
use crate::sandbox_oracles::{Attack, ObservedWorld};

fn code(outcome: &Outcome) -> (Status, Option<&str>) {
    (
        outcome.status,
        outcome.error.as_ref().map(|error| error.code.as_str()),
    )
}

/// R-01, P8: the deadline ends them within a second, and a neighbour notices nothing.
#[tokio::test]
async fn fork_bomb_ends_at_deadline_and_spares_neighbour() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
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
        || Attack::python(include_str!("../../src/prove/probes/exhaust.py")).input(r#"{"of": "fork_bomb"}"#),
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
