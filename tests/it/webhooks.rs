//! Reported ends: to which receiver, how often, signed how, and what receivers cannot do to the server.

use std::time::Duration;

use serde_json::Value;
use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::egress::WebhookPolicy;
use skillbox::engine::{Engine, PageRequest, RunOptions, RunSpec, WebhookSettings};
use skillbox::execution::{Execution, JsonText, Logs};
use skillbox::sandbox::{Completion, Error, Job, ProgramOutput, Report, Sandbox};
use skillbox::skill::Language;
use skillbox::store::{Delivery, DeliveryStatus};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::cli_shell::has_docker;
use crate::receiver::{Answer, PATIENCE, Receiver};
use crate::server::Server;
use crate::world::{World, engine_with_webhooks, instance_in};

/// Fails, and leaves output and logs that are private.
pub(crate) fn script(_: &Job, _: &mut ArtifactTar) -> Result<Report, Error> {
    Ok(Report {
        output: ProgramOutput::Json(JsonText::parse(b"\"the output\"").unwrap()),
        logs: Logs {
            stdout: b"the log".to_vec(),
            ..Logs::default()
        },
        ..Report::bare(Completion::Exited(3))
    })
}

/// Plain HTTP to loopback, and no patience.
pub(crate) fn settings() -> WebhookSettings {
    WebhookSettings {
        policy: WebhookPolicy {
            allow_http: true,
            allow_private: vec!["127.0.0.0/8".parse().unwrap()],
            ports: Vec::new(),
        },
        retries: vec![Duration::from_millis(5); 3],
        attempt_max: Duration::from_secs(5),
        server_url: Some("https://skillbox.example/".to_owned()),
        ..WebhookSettings::default()
    }
}

/// A world, and a sender of its webhooks that runs until it is dropped.
pub(crate) async fn with_webhooks(settings: WebhookSettings) -> (World, AbortOnDropHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let engine = engine_with_webhooks(settings, folder.path(), instance, Sandbox::scripted(script)).await;
    let sender = send_webhooks(&engine);
    (World::of(folder, engine).await, sender)
}

fn send_webhooks(engine: &Engine) -> AbortOnDropHandle<()> {
    let sender = engine.webhooks().sender().unwrap();
    AbortOnDropHandle::new(tokio::spawn(sender.run(CancellationToken::new())))
}

pub(crate) async fn try_run(world: &World, url: &str) -> Result<Execution, skillbox::error::Error> {
    world.runs().run(world.tenant(), asking(url)).await
}

fn asking(url: &str) -> RunSpec {
    RunSpec {
        callback_url: Some(url.to_owned()),
        ..RunSpec::of_code(Language::Python, "1".to_owned())
    }
}

pub(crate) async fn run(world: &World, url: &str) -> Execution {
    try_run(world, url).await.unwrap()
}

/// The webhook of an execution once it is final, or what `until` selects.
async fn delivery(world: &World, of: &Execution, until: impl Fn(&Delivery) -> bool) -> Delivery {
    let found = async {
        loop {
            let found = world.webhooks().of_execution(world.tenant(), of.new.id).await;
            if let Some(delivery) = found.unwrap().filter(&until) {
                return delivery;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

pub(crate) async fn settled(world: &World, of: &Execution) -> Delivery {
    delivery(world, of, |delivery| delivery.next_at.is_none()).await
}

pub(crate) async fn secret(world: &World) -> String {
    let signing = world.webhooks().signing_secret(world.tenant()).await.unwrap();
    signing.secret.reveal().to_string()
}

#[tokio::test]
async fn webhook_is_signed_and_contains_no_program_data() {
    let (world, _sender) = with_webhooks(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(204)]).await;
    let execution = run(&world, &receiver.url()).await;
    let heard = receiver.next().await;
    assert_eq!(heard.line, "POST /hook?token=t HTTP/1.1");
    assert_eq!(heard.headers["host"], format!("127.0.0.1:{}", receiver.port));
    assert_eq!(heard.headers["content-type"], "application/json");
    assert!(heard.headers["user-agent"].starts_with("skillbox/"));
    assert!(heard.is_signed_by(&secret(&world).await));
    let now = jiff::Timestamp::now().as_second();
    let seconds: i64 = heard.headers["webhook-timestamp"].parse().unwrap();
    assert!((now - 30..=now).contains(&seconds));

    let told = heard.json();
    let outcome = execution.outcome.as_ref().unwrap();
    let id = execution.new.id.to_string();
    assert_eq!(told["type"], "execution.finished");
    assert_eq!(told["timestamp"], outcome.finished_at.to_string());
    let data = &told["data"];
    assert_eq!(
        (&data["execution_id"], &data["status"]),
        (&id.as_str().into(), &"failed".into())
    );
    assert_eq!(
        (&data["exit_code"], &data["error"]["code"]),
        (&3.into(), &"exit_code".into())
    );
    assert_eq!(
        data["url"],
        format!("https://skillbox.example/v1/executions/{id}")
    );
    let members: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "execution_id",
        "status",
        "skill",
        "version",
        "error",
        "exit_code",
        "duration_ms",
        "created_at",
        "finished_at",
        "url",
    ];
    assert_eq!(members, expected);
    let text = String::from_utf8(heard.body.clone()).unwrap();
    assert!(
        !text.contains("the output") && !text.contains("the log"),
        "{text}"
    );

    let delivery = settled(&world, &execution).await;
    assert_eq!(
        (delivery.status, delivery.attempts),
        (DeliveryStatus::Delivered, 1)
    );
    assert_eq!((delivery.last_status, delivery.last_error), (Some(204), None));
    assert_eq!(delivery.id.to_string(), heard.id());
    assert!(receiver.is_quiet());
}

///
#[tokio::test]
async fn retries_failed_delivery_with_same_id_and_gives_up() {
    let (world, _sender) = with_webhooks(settings()).await;
    let mut receiver = Receiver::open(&[
        Answer::status(500),
        Answer::text(""),
        Answer::text("SSH-2.0-OpenSSH_9.9\r\n"),
        Answer::status(404),
        Answer::status(200),
    ])
    .await;
    let execution = run(&world, &receiver.url()).await;
    let first = receiver.next().await;
    for _ in 0..3 {
        let again = receiver.next().await;
        assert_eq!((again.id(), &again.body), (first.id(), &first.body));
        assert!(again.is_signed_by(&secret(&world).await));
    }
    let failed = settled(&world, &execution).await;
    assert_eq!((failed.status, failed.attempts), (DeliveryStatus::Failed, 4));
    assert_eq!(failed.last_status, Some(404));
    assert_eq!(failed.last_error.as_deref(), Some("the receiver answered 404"));
    assert!(receiver.is_quiet());

    world
        .webhooks()
        .redeliver(world.tenant(), failed.id)
        .await
        .unwrap();
    assert_eq!(receiver.next().await.id(), first.id());
    let there = settled(&world, &execution).await;
    assert_eq!((there.status, there.attempts), (DeliveryStatus::Delivered, 5));
    let counted = world.engine.metrics_text();
    for (outcome, times) in [("tried_again", 3), ("given_up", 1), ("delivered", 1), ("gone", 0)] {
        let sample = format!("skillbox_webhook_attempts_total{{outcome=\"{outcome}\"}} {times}\n");
        assert!(counted.contains(&sample), "{sample} in\n{counted}");
    }
}

#[tokio::test]
async fn honours_retry_after_of_receiver() {
    let (world, _sender) = with_webhooks(settings()).await;
    for (status, head, seconds) in [
        (503, "retry-after: 1000", 1000),
        (429, "Retry-After: 9999999", 3600),
        (500, "retry-after: 1000", 0),
    ] {
        let answer = format!("HTTP/1.1 {status} As CommandOutput\r\n{head}\r\ncontent-length: 0\r\n\r\n");
        let receiver = Receiver::open(&[Answer::text(&answer), Answer::status(200)]).await;
        let execution = run(&world, &receiver.url()).await;
        let tried = delivery(&world, &execution, |delivery| delivery.last_status.is_some()).await;
        let pause = tried
            .next_at
            .map_or(0, |at| at.duration_since(tried.last_at.unwrap()).as_secs());
        assert!(
            (seconds..=seconds + 60).contains(&pause),
            "{status} {head}: {pause} s"
        );
    }
}

#[tokio::test]
async fn async_execution_sends_webhook() {
    let (world, _sender) = with_webhooks(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let options = RunOptions::default();
    let submitted = world
        .runs()
        .submit(world.tenant(), asking(&receiver.url()), options)
        .await;
    let id = submitted.unwrap().new.id.to_string();
    let told = receiver.next().await.json();
    assert_eq!(
        (&told["data"]["execution_id"], &told["data"]["status"]),
        (&id.as_str().into(), &"failed".into())
    );
}

#[tokio::test]
async fn gone_response_stops_retries() {
    let (world, _sender) = with_webhooks(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(410)]).await;
    let execution = run(&world, &receiver.url()).await;
    let delivery = settled(&world, &execution).await;
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Gone, 1));
    receiver.next().await;
    assert!(receiver.is_quiet());
}

/// F-01: what a process had begun to send when it died is sent by the next.
#[tokio::test]
async fn next_process_sends_deliveries_of_dead_process() {
    let settings = WebhookSettings {
        attempt_max: Duration::from_secs(3),
        ..settings()
    };
    let (world, sender) = with_webhooks(settings.clone()).await;
    let mut receiver = Receiver::open(&[Answer::Never, Answer::status(200)]).await;
    let execution = run(&world, &receiver.url()).await;
    let first = receiver.next().await;
    drop(sender);
    let waiting = delivery(&world, &execution, |_| true).await;
    assert_eq!((waiting.status, waiting.attempts), (DeliveryStatus::Sending, 1));

    let folder = world.folder.path();
    let next = engine_with_webhooks(settings, folder, instance_in(folder), Sandbox::scripted(script)).await;
    let _sender = send_webhooks(&next);
    assert_eq!(receiver.next().await.id(), first.id());
    let there = settled(&world, &execution).await;
    assert_eq!((there.status, there.attempts), (DeliveryStatus::Delivered, 2));
}

#[tokio::test]
async fn replaced_signing_secret_still_signs() {
    let (world, _sender) = with_webhooks(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let old = secret(&world).await;
    assert_eq!(secret(&world).await, old, "it is made once");
    let rotated = world
        .webhooks()
        .rotate_signing_secret(world.tenant())
        .await
        .unwrap();
    let until = rotated.previous_until.unwrap();
    let hours = until.duration_since(jiff::Timestamp::now()).as_hours();
    assert!((23..=24).contains(&hours), "{hours}");
    let new = rotated.secret.reveal().to_string();
    assert_ne!(new, old);
    run(&world, &receiver.url()).await;
    let heard = receiver.next().await;
    assert!(heard.is_signed_by(&new) && heard.is_signed_by(&old));
    let other = skillbox::webhook::SigningSecret::generate().unwrap();
    assert!(!heard.is_signed_by(&other.reveal()));
    assert_eq!(heard.headers["webhook-signature"].split(' ').count(), 2);
    // It is sealed: the database does not hold it.
    for entry in std::fs::read_dir(world.folder.path()).unwrap() {
        if let Ok(bytes) = std::fs::read(entry.unwrap().path()) {
            let part = &new.as_bytes()["whsec_".len()..][..16];
            assert!(memchr::memmem::find(&bytes, part).is_none());
        }
    }
}

/// F-01: a server that is killed between two attempts; the next one has the same settings from the same variables.
#[tokio::test(flavor = "multi_thread")]
async fn killed_server_sends_webhooks_after_restart() {
    if !tokio::task::spawn_blocking(has_docker).await.unwrap() {
        return;
    }
    let mut receiver = Receiver::open(&[Answer::status(500), Answer::status(200)]).await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let start = move || {
        let env = [
            ("SKILLBOX_WEBHOOKS_ALLOW_HTTP", "true"),
            ("SKILLBOX_WEBHOOKS_ALLOW_PRIVATE", "127.0.0.1"),
            ("SKILLBOX_WEBHOOKS_RETRIES", "5s,1s"),
        ];
        Server::start_with(&data, &env)
    };
    let body = serde_json::json!({"code": "6 * 7", "callback_url": receiver.url()});
    let first = tokio::task::spawn_blocking({
        let start = start.clone();
        move || {
            let server = start();
            assert_eq!(server.post_json("/v1/executions", &body).status, 200);
            server
        }
    });
    let server = first.await.unwrap();
    let told = receiver.next().await;
    // One that is killed before it has recorded that is given up only after a while.
    let (server, _) = shown(server, |webhook| webhook["last_status"] == 500).await;
    tokio::task::spawn_blocking(move || server.kill_9())
        .await
        .unwrap();
    let next = tokio::task::spawn_blocking(start).await.unwrap();
    let again = receiver.next().await;
    assert_eq!((again.id(), &again.body), (told.id(), &told.body));
    let webhook = shown(next, |webhook| webhook["status"] == "delivered").await.1;
    assert_eq!(webhook["delivery_id"], told.id());
}

/// The first webhook that a server lists, once it is as `until` says.
async fn shown(server: Server, until: fn(&Value) -> bool) -> (Server, Value) {
    let look = tokio::task::spawn_blocking(move || {
        loop {
            let listed = server.get("/v1/webhooks/deliveries").unwrap().body;
            if until(&listed["items"][0]) {
                return (server, listed["items"][0].clone());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    tokio::time::timeout(PATIENCE, look).await.unwrap().unwrap()
}

/// Other ends are reported too: here by the maintenance of another process.
#[tokio::test]
async fn webhook_reports_lost_execution_as_interrupted() {
    let (world, _sender) = with_webhooks(settings()).await;
    let page = PageRequest { after: None, rows: 9 };
    assert!(
        world
            .webhooks()
            .list(world.tenant(), page)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let execution = run(&world, &receiver.url()).await;
    receiver.next().await;
    // As it stood when its process was killed.
    settled(&world, &execution).await;
    let database = rusqlite::Connection::open(world.folder.path().join("skillbox.db")).unwrap();
    let dead = skillbox::ids::InstanceId::generate().to_string();
    let back = "update executions set status = 'running', finished_at = null, instance = ?1; ";
    database.execute(back, [&dead]).unwrap();
    database
        .execute("update deliveries set status = 'waiting', attempts = 0", [])
        .unwrap();
    world.maintenance().run().await;
    assert_eq!(receiver.next().await.json()["data"]["status"], "interrupted");
}
