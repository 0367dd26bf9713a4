//! Ends that are told: to whom, how often, signed by what, and what receivers cannot do to us.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::engine::{Ask, CalledCode, Engine, PageRequest, Resolver, RunRequest, WebhookSettings, What};
use skillbox::error::Code;
use skillbox::execution::{Execution, JsonText, Logs, Shown, Usage};
use skillbox::limits;
use skillbox::sandbox::{End, Error, Job, Output, Report, Sandbox};
use skillbox::skill::Language;
use skillbox::store::{Delivery, DeliveryStatus};
use skillbox::webhook::Policy;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::receiver::{Answer, PATIENCE, Receiver};
use crate::world::{World, engine_that_tells, instance_in};

/// Fails, and leaves output and logs that are nobody else's business.
fn script(_: &Job, _: &mut ArtifactTar) -> Result<Report, Error> {
    Ok(Report {
        end: End::Exited(3),
        output: Output::Json(JsonText::parse(b"\"the output\"").unwrap()),
        shown: Shown::default(),
        logs: Logs {
            stdout: b"the log".to_vec(),
            ..Logs::default()
        },
        files: Vec::new(),
        skipped: Vec::new(),
        skipped_total: 0,
        blobs: Vec::new(),
        complete: true,
        usage: Usage::default(),
        sandbox_time: Duration::from_millis(1),
        run_time: Duration::from_millis(2),
        collect_time: Duration::from_millis(3),
        warm: false,
    })
}

/// Plain HTTP to loopback, and no patience.
fn settings() -> WebhookSettings {
    WebhookSettings {
        policy: Policy {
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

/// A world and, as long as the second lives, somebody who sends its webhooks.
async fn telling(settings: WebhookSettings) -> (World, AbortOnDropHandle<()>) {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let engine = engine_that_tells(settings, folder.path(), instance, Sandbox::scripted(script)).await;
    let courier = courier(&engine);
    (World::of(folder, engine).await, courier)
}

fn courier(engine: &Engine) -> AbortOnDropHandle<()> {
    let courier = engine.courier().unwrap();
    AbortOnDropHandle::new(tokio::spawn(courier.deliver(CancellationToken::new())))
}

async fn try_run(world: &World, url: &str) -> Result<Execution, skillbox::error::Error> {
    let request = RunRequest {
        what: What::Code(CalledCode {
            text: "1".to_owned(),
            language: Language::Python,
        }),
        ask: Ask {
            callback_url: Some(url.to_owned()),
            ..Ask::default()
        },
        progress: None,
    };
    world.engine.run(&world.admin, request).await
}

async fn run(world: &World, url: &str) -> Execution {
    try_run(world, url).await.unwrap()
}

/// The webhook of an execution once nothing more is to come, or what `until` looks for.
async fn delivery(world: &World, of: &Execution, until: impl Fn(&Delivery) -> bool) -> Delivery {
    let found = async {
        loop {
            let found = world.engine.delivery_of(&world.admin, of.new.id).await;
            if let Some(delivery) = found.unwrap().filter(&until) {
                return delivery;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap()
}

async fn settled(world: &World, of: &Execution) -> Delivery {
    delivery(world, of, |delivery| delivery.next_at.is_none()).await
}

async fn secret(world: &World) -> String {
    let signing = world.engine.signing_secret(&world.admin).await.unwrap();
    signing.secret.reveal().to_string()
}

#[tokio::test]
async fn an_end_is_told_signed_and_without_what_the_program_left() {
    let (world, _courier) = telling(settings()).await;
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
async fn what_fails_is_tried_again_under_the_same_id_and_given_up_at_last() {
    let (world, _courier) = telling(settings()).await;
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

    world.engine.redeliver(&world.admin, failed.id).await.unwrap();
    assert_eq!(receiver.next().await.id(), first.id());
    let there = settled(&world, &execution).await;
    assert_eq!((there.status, there.attempts), (DeliveryStatus::Delivered, 5));
}

#[tokio::test]
async fn who_wants_no_more_gets_no_more() {
    let (world, _courier) = telling(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(410)]).await;
    let execution = run(&world, &receiver.url()).await;
    let delivery = settled(&world, &execution).await;
    assert_eq!((delivery.status, delivery.attempts), (DeliveryStatus::Gone, 1));
    receiver.next().await;
    assert!(receiver.is_quiet());
}

/// refused at once, by name, and nothing is recorded.
#[tokio::test]
async fn an_address_that_is_not_to_be_told_is_refused_with_the_request() {
    let (world, _courier) = telling(WebhookSettings::default()).await;
    for url in [
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "http://hooks.example/",
        "https://127.0.0.1/",
        "https://localhost./",
        "https://0/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://[::1]/",
        "https://[::]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.64.0.1/",
        "https://10.0.0.1/",
        "https://user@hooks.example/",
        "https://hooks.example:22/",
        "https://hooks.example:2375/",
        "https://hooks.example:5432/",
    ] {
        let refused = try_run(&world, url).await.unwrap_err();
        assert_eq!(refused.code(), Code::Invalid, "{url}");
        assert!(
            refused.to_string().starts_with("callback_url "),
            "{url}: {refused}"
        );
    }
    assert!(world.has_recorded_nothing().await);
}

/// What the names of the next test lead to, and how often somebody asked.
static ASKED: AtomicU32 = AtomicU32::new(0);

fn resolver(name: &str) -> Vec<IpAddr> {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    match name {
        "private.example" => vec![address("127.0.0.1")],
        "both.example" => vec![address("192.0.2.1"), address("127.0.0.1")],
        "mapped.example" => vec![address("::ffff:127.0.0.1")],
        // First here, then there: whoever asks twice is led away.
        "rebinding.example" if ASKED.fetch_add(1, Ordering::SeqCst) == 0 => vec![address("127.0.0.2")],
        "rebinding.example" => vec![address("127.0.0.1")],
        _ => Vec::new(),
    }
}

/// what was accepted by its name is judged by its address when it is dialled, every address, and nothing is sent.
#[tokio::test]
async fn a_name_that_leads_into_a_private_network_is_not_told() {
    let (world, _courier) = telling(WebhookSettings {
        policy: Policy {
            allow_http: true,
            ..Policy::default()
        },
        resolver: Resolver::Scripted(resolver),
        retries: Vec::new(),
        ..settings()
    })
    .await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    for (name, why) in [
        ("private.example", "not of the Internet"),
        ("both.example", "not of the Internet"),
        ("mapped.example", "not of the Internet"),
        ("nowhere.example", "does not resolve"),
    ] {
        let execution = run(&world, &format!("http://{name}:{}/", receiver.port)).await;
        let failed = settled(&world, &execution).await;
        let error = failed.last_error.unwrap();
        assert!(error.contains(why), "{name}: {error}");
        // what the name leads to is nobody's business.
        assert!(!error.contains("127.0.0.1"), "{error}");
    }
    assert!(receiver.is_quiet());
}

/// the address that was judged is the one that is dialled, and the name is asked for once.
#[tokio::test]
async fn a_name_is_resolved_once_for_each_attempt() {
    let mut settings = settings();
    // Of both addresses only the first is allowed.
    settings.policy.allow_private = vec!["127.0.0.2".parse().unwrap()];
    settings.resolver = Resolver::Scripted(resolver);
    settings.retries.clear();
    let (world, _courier) = telling(settings).await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let execution = run(&world, &format!("http://rebinding.example:{}/", receiver.port)).await;
    let failed = settled(&world, &execution).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    // It was dialled there, where nobody listens.
    assert_eq!(
        failed.last_error.as_deref(),
        Some("the receiver cannot be reached")
    );
    assert!(receiver.is_quiet());
}

///
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (world, _courier) = telling(settings()).await;
    let mut inside = Receiver::open(&[Answer::status(200)]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!(
            "HTTP/1.1 {status} Go\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
            inside.url()
        );
        let receiver = Receiver::open(&[Answer::text(&location)]).await;
        let execution = run(&world, &receiver.url()).await;
        let failed = settled(&world, &execution).await;
        assert_eq!(failed.last_status, Some(status));
        let error = failed.last_error.unwrap();
        assert!(error.contains("redirects are not followed"), "{error}");
    }
    assert!(inside.is_quiet());
}

/// none of them takes longer than it may, and what a success says besides is not looked at.
#[tokio::test]
async fn no_answer_takes_long_or_much() {
    let (world, _courier) = telling(WebhookSettings {
        retries: Vec::new(),
        attempt_max: Duration::from_millis(700),
        ..settings()
    })
    .await;
    const ENDLESS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let long_line = Answer::text(&format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(10 << 20)));
    for (answer, error) in [
        (Answer::Never, Some("took too long")),
        (Answer::text("HTTP/1.1 200 OK\r\nx: "), Some("took too long")),
        (
            Answer::Endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
            Some("took too long"),
        ),
        (
            Answer::Endless("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
            Some("head that is too large"),
        ),
        (long_line, Some("head that is too large")),
        (Answer::Endless(ENDLESS, "1\r\nx\r\n"), None),
        (
            Answer::text("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx"),
            None,
        ),
        (Answer::text("HTTP/1.1 204 No\r\n\r\n"), None),
    ] {
        let receiver = Receiver::open(std::slice::from_ref(&answer)).await;
        let begun = std::time::Instant::now();
        let execution = run(&world, &receiver.url()).await;
        let delivery = settled(&world, &execution).await;
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
        let said = delivery.last_error.unwrap_or_default();
        assert_eq!(
            delivery.status == DeliveryStatus::Delivered,
            error.is_none(),
            "{said}"
        );
        assert!(said.contains(error.unwrap_or_default()), "{said}");
    }
}

/// however many wait for one that never answers, executions end and others are told at once.
#[tokio::test]
async fn a_receiver_that_never_answers_holds_up_nobody() {
    let (world, _courier) = telling(WebhookSettings {
        attempt_max: Duration::from_secs(60),
        resolver: Resolver::Scripted(|_| vec![IpAddr::from([127, 0, 0, 1])]),
        ..settings()
    })
    .await;
    let mut stuck = Receiver::open(&[Answer::Never]).await;
    let mut well = Receiver::open(&[Answer::status(200)]).await;
    for _ in 0..3 * limits::DELIVERIES_TO_HOST_AT_ONCE {
        run(&world, &stuck.url()).await;
    }
    for _ in 0..limits::DELIVERIES_TO_HOST_AT_ONCE {
        stuck.next().await;
    }
    let execution = run(&world, &format!("http://well.example:{}/", well.port)).await;
    well.next().await;
    assert_eq!(
        settled(&world, &execution).await.status,
        DeliveryStatus::Delivered
    );
    assert!(stuck.is_quiet());
}

/// F-01: what a process had begun to send when it died is sent by the next.
#[tokio::test]
async fn what_a_dead_process_was_sending_is_sent_by_the_next() {
    let settings = WebhookSettings {
        attempt_max: Duration::from_millis(400),
        ..settings()
    };
    let (world, courier) = telling(settings.clone()).await;
    let mut receiver = Receiver::open(&[Answer::Never, Answer::status(200)]).await;
    let execution = run(&world, &receiver.url()).await;
    let first = receiver.next().await;
    drop(courier);
    let waiting = delivery(&world, &execution, |_| true).await;
    assert_eq!((waiting.status, waiting.attempts), (DeliveryStatus::Sending, 1));

    let folder = world.folder.path();
    let next = engine_that_tells(settings, folder, instance_in(folder), Sandbox::scripted(script)).await;
    let _courier = self::courier(&next);
    assert_eq!(receiver.next().await.id(), first.id());
    let there = settled(&world, &execution).await;
    assert_eq!((there.status, there.attempts), (DeliveryStatus::Delivered, 2));
}

#[tokio::test]
async fn a_secret_that_was_replaced_signs_too() {
    let (world, _courier) = telling(settings()).await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    let old = secret(&world).await;
    assert_eq!(secret(&world).await, old, "it is made once");
    let rotated = world.engine.rotate_signing_secret(&world.admin).await.unwrap();
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

#[tokio::test]
async fn a_receiver_is_believed_by_its_certificate_alone() {
    let ok = [Answer::status(200)];
    let (mut receiver, certificate) = Receiver::open_tls(&ok, &["127.0.0.1", "hooks.example"]).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();
    let unbelieving = WebhookSettings {
        retries: Vec::new(),
        ..settings()
    };
    let believing = WebhookSettings {
        ca_bundle: Some(ca),
        ..unbelieving.clone()
    };
    let url = format!("https://127.0.0.1:{}/hook", receiver.port);
    let (world, _courier) = telling(unbelieving).await;
    let execution = run(&world, &url).await;
    let refused = settled(&world, &execution).await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the receiver's certificate is not believed")
    );
    assert!(receiver.is_quiet());

    let (world, _courier) = telling(believing.clone()).await;
    let execution = run(&world, &url).await;
    assert!(receiver.next().await.is_signed_by(&secret(&world).await));
    assert_eq!(
        settled(&world, &execution).await.status,
        DeliveryStatus::Delivered
    );

    // Another name than the certificate's.
    let (world, _courier) = telling(WebhookSettings {
        resolver: Resolver::Scripted(|_| vec![IpAddr::from([127, 0, 0, 1])]),
        ..believing
    })
    .await;
    for (name, status) in [
        ("hooks.example", DeliveryStatus::Delivered),
        ("evil.example", DeliveryStatus::Failed),
    ] {
        let execution = run(&world, &format!("https://{name}:{}/", receiver.port)).await;
        assert_eq!(settled(&world, &execution).await.status, status, "{name}");
    }
    assert_eq!(
        receiver.next().await.headers["host"],
        format!("hooks.example:{}", receiver.port)
    );
    assert!(receiver.is_quiet());
}

#[tokio::test]
async fn a_file_without_authorities_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "nothing").unwrap();
    let settings = WebhookSettings {
        ca_bundle: Some(file),
        ..settings()
    };
    let instance = instance_in(folder.path());
    let engine = engine_that_tells(settings, folder.path(), instance, Sandbox::scripted(script)).await;
    let refused = engine.courier().unwrap_err();
    assert!(refused.to_string().contains("webhooks.ca_bundle"), "{refused}");
}

/// What ends otherwise is told, too: here by the upkeep of another process.
#[tokio::test]
async fn an_execution_whose_process_died_is_told_as_interrupted() {
    let (world, _courier) = telling(settings()).await;
    let page = PageRequest { after: None, rows: 9 };
    assert!(
        world
            .engine
            .deliveries(&world.admin, page)
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
    world.engine.upkeep_round().await;
    assert_eq!(receiver.next().await.json()["data"]["status"], "interrupted");
}
