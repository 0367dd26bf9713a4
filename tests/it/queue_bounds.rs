//! Bounds of tenants and of the whole, under floods: through a real server, on the native backend.

use std::io::Read as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillbox::skill::Language;

use crate::queue::{ask, id_of, publish, show, submit, with_server};
use crate::server::Answer;
use crate::world::archive;

/// one tenant floods; its queue is limited with a retry time, and another tenant is served.
/// `SKILLBOX_TEST_FLOOD` says how many submissions.
#[tokio::test(flavor = "multi_thread")]
async fn submission_flood_is_limited_and_does_not_delay_others() {
    with_server(
        &[("SKILLBOX_CONCURRENCY", "2"), ("SKILLBOX_ASYNC_QUEUE", "50")],
        |server| {
            publish(&server);
            let other = server.key_of("other");
            let submissions: usize =
                std::env::var("SKILLBOX_TEST_FLOOD").map_or(1000, |text| text.parse().unwrap());
            let answers: Vec<Answer> = std::thread::scope(|scope| {
                let clients: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            let asks = (0..submissions / 8)
                                .map(|_| ask(&server, &json!({"mode": "async", "args": ["2"]})));
                            asks.collect::<Vec<_>>()
                        })
                    })
                    .collect();
                for _ in 0..5 {
                    let started = Instant::now();
                    let answer = server.post_json_as(&other, "/v1/executions", &json!({"code": "print(1)"}));
                    assert_eq!(answer.body["status"], "success", "{}", answer.body);
                    // It gets the next slot: it waits for the shorter of two running executions, and runs.
                    assert!(
                        started.elapsed() < Duration::from_secs(20),
                        "{:?}",
                        started.elapsed()
                    );
                }
                clients
                    .into_iter()
                    .flat_map(|client| client.join().unwrap())
                    .collect()
            });
            let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 202).collect();
            assert!(
                refused.len() > submissions / 2,
                "only {} were refused",
                refused.len()
            );
            for answer in refused {
                assert_eq!(
                    (answer.status, &answer.body["code"]),
                    (429, &json!("rate_limited")),
                    "{}",
                    answer.body
                );
                assert!(answer.body["retry_after"].as_u64() > Some(0), "{}", answer.body);
            }
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_has_own_limits() {
    const SETTINGS: &[(&str, &str)] = &[
        ("SKILLBOX_CONCURRENCY", "4"),
        ("SKILLBOX_TENANT_CONCURRENCY", "1"),
        ("SKILLBOX_TENANT_RATE", "6"),
    ];
    with_server(SETTINGS, |server| {
        publish(&server);
        let began = Instant::now();
        let ids: Vec<_> = (0..3).map(|n| submit(&server, "0.3", &json!(n))).collect();
        let running = |id: &String| show(&server, id, "")["status"] == "running";
        while ids
            .iter()
            .any(|id| show(&server, id, "")["finished_at"] == Value::Null)
        {
            let seen: Vec<_> = ids.iter().filter(|id| running(id)).collect();
            // Looked at one after the other: only those that still run have run beside the last.
            let before = seen.split_last().map_or(&[][..], |(_, before)| before);
            assert!(!before.iter().any(|id| running(id)));
        }
        // One more may be asked for every ten seconds.
        let mut more = (0..12).map(|_| ask(&server, &json!({})));
        let refused = more.find(|answer| answer.status != 200).unwrap();
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (429, &json!("rate_limited")),
            "{}",
            refused.body
        );
        let allowed = 6 + began.elapsed().as_secs() / 10;
        let accepted = server.get("/v1/executions?limit=50").unwrap().body["items"].clone();
        let accepted = accepted.as_array().unwrap().len() as u64;
        assert!((6..=allowed).contains(&accepted), "{accepted} of {allowed}");
        let wait = refused.body["retry_after"].as_u64().unwrap();
        assert!((1..=10).contains(&wait), "{wait}");
        let other = server.key_of("other");
        let answer = server.post_json_as(&other, "/v1/executions", &json!({"code": "print(1)"}));
        assert_eq!(answer.status, 200, "another tenant is not counted");
    })
    .await;
}

/// at its limit a tenant gets nothing new, other tenants notice nothing, and deletion frees space.
#[tokio::test(flavor = "multi_thread")]
async fn limits_storage_per_tenant() {
    const SETTINGS: &[(&str, &str)] = &[
        ("SKILLBOX_TENANT_STORAGE", "2Mi"),
        ("SKILLBOX_RETENTION_PER_TENANT", "1"),
    ];
    with_server(SETTINGS, |server| {
        let program = "head -c 3000000 /dev/urandom > \"$SANDBOX_FILES_DIR/large\"";
        server.publish(archive(Language::Bash, "version: 1.0.0\n", program));
        assert_eq!(ask(&server, &json!({})).body["status"], "success");
        for refused in [ask(&server, &json!({})), ask(&server, &json!({"mode": "async"}))] {
            assert_eq!(
                (refused.status, &refused.body["code"]),
                (507, &json!("storage_full")),
                "{}",
                refused.body
            );
        }
        let mut zip = Vec::new();
        archive(Language::Bash, "version: 1.0.1\n", "true")
            .read_to_end(&mut zip)
            .unwrap();
        let refused = server.post("/v1/skills", "application/zip", &zip);
        assert_eq!(refused.status, 507, "{}", refused.body);
        let other = server.key_of("other");
        let small = json!({"code": "print(1)"});
        assert_eq!(server.post_json_as(&other, "/v1/executions", &small).status, 200);
        // Retention keeps one of each tenant; that it frees what is counted the store's contract holds.
    })
    .await;
}

/// C-01: many submissions, and never more at once than there are slots.
#[tokio::test(flavor = "multi_thread")]
async fn never_runs_more_executions_than_slots() {
    with_server(
        &[("SKILLBOX_CONCURRENCY", "3"), ("SKILLBOX_ASYNC_QUEUE", "1000")],
        |server| {
            let program =
                "from=$(date +%s%N); sleep 0.02; echo \"[$from, $(date +%s%N)]\" > \"$SANDBOX_OUTPUT\"";
            server.publish(archive(Language::Bash, "version: 1.0.0\n", program));
            let submit = || id_of(&ask(&server, &json!({"mode": "async"})).body);
            let ids: Vec<String> = std::thread::scope(|scope| {
                let clients: Vec<_> = (0..8)
                    .map(|_| scope.spawn(|| (0..25).map(|_| submit()).collect::<Vec<_>>()))
                    .collect();
                clients
                    .into_iter()
                    .flat_map(|client| client.join().unwrap())
                    .collect()
            });
            let mut moments = Vec::new();
            for id in &ids {
                let ended = show(&server, id, "?wait=60");
                assert_eq!(ended["status"], "success", "{ended}");
                moments.push((ended["output"][0].as_u64().unwrap(), 1));
                moments.push((ended["output"][1].as_u64().unwrap(), -1));
            }
            moments.sort_unstable();
            let mut at_once = 0;
            let most = moments.iter().map(|(_, change)| {
                at_once += change;
                at_once
            });
            assert_eq!(most.max(), Some(3));
        },
    )
    .await;
}
