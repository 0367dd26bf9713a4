//! Hostile receivers: no private address is reached through them, and no other receiver is delayed.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use skillbox::egress::{Resolver, WebhookPolicy};
use skillbox::engine::WebhookSettings;
use skillbox::error::Code;
use skillbox::limits;
use skillbox::sandbox::Sandbox;
use skillbox::store::DeliveryStatus;

use crate::cli_shell::has_docker;
use crate::receiver::{Answer, Receiver};
use crate::server::Server;
use crate::webhooks::{run, script, secret, settings, settled, try_run, with_webhooks};
use crate::world::{engine_with_webhooks, instance_in};

/// refused at once, by name, and nothing is recorded.
#[tokio::test]
async fn rejects_request_with_forbidden_webhook_url() {
    let (world, _sender) = with_webhooks(WebhookSettings::default()).await;
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
            refused.to_string().starts_with("callback_url: "),
            "{url}: {refused}"
        );
    }
    assert!(world.has_recorded_nothing().await);
}

/// Number of look-ups of `rebinding.example`.
static ASKED: AtomicU32 = AtomicU32::new(0);

fn resolver(name: &str) -> Vec<IpAddr> {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    match name {
        "private.example" => vec![address("127.0.0.1")],
        "both.example" => vec![address("192.0.2.1"), address("127.0.0.1")],
        "mapped.example" => vec![address("::ffff:127.0.0.1")],
        // The second look-up returns another address.
        "rebinding.example" if ASKED.fetch_add(1, Ordering::SeqCst) == 0 => vec![address("127.0.0.2")],
        "rebinding.example" => vec![address("127.0.0.1")],
        _ => Vec::new(),
    }
}

/// what was accepted by its name is judged by its address when it is dialled, every address, and nothing is sent.
#[tokio::test]
async fn does_not_deliver_to_name_with_private_address() {
    let (world, _sender) = with_webhooks(WebhookSettings {
        policy: WebhookPolicy {
            allow_http: true,
            ..WebhookPolicy::default()
        },
        resolver: Resolver::Scripted(resolver),
        retries: Vec::new(),
        ..settings()
    })
    .await;
    let mut receiver = Receiver::open(&[Answer::status(200)]).await;
    for (name, why) in [
        ("private.example", "not public"),
        ("both.example", "not public"),
        ("mapped.example", "not public"),
        ("nowhere.example", "does not resolve"),
    ] {
        let execution = run(&world, &format!("http://{name}:{}/", receiver.port)).await;
        let failed = settled(&world, &execution).await;
        let error = failed.last_error.unwrap();
        assert!(error.contains(why), "{name}: {error}");
        // the address behind the name is private.
        assert!(!error.contains("127.0.0.1"), "{error}");
    }
    assert!(receiver.is_quiet());
}

/// the checked address is dialled, and the name is resolved once.
#[tokio::test]
async fn resolves_name_once_per_attempt() {
    let mut settings = settings();
    // Of both addresses only the first is allowed.
    settings.policy.allow_private = vec!["127.0.0.2".parse().unwrap()];
    settings.resolver = Resolver::Scripted(resolver);
    settings.retries.clear();
    let (world, _sender) = with_webhooks(settings).await;
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
async fn does_not_follow_redirects() {
    let (world, _sender) = with_webhooks(settings()).await;
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

/// none takes longer than its limit, and the body of a success is ignored.
#[tokio::test]
async fn limits_time_and_size_of_responses() {
    let (world, _sender) = with_webhooks(WebhookSettings {
        retries: Vec::new(),
        attempt_max: Duration::from_secs(2),
        ..settings()
    })
    .await;
    const ENDLESS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (answer, error) in [
        (Answer::Never, Some("did not respond in time")),
        (
            Answer::text("HTTP/1.1 200 OK\r\nx: "),
            Some("did not respond in time"),
        ),
        (
            Answer::Endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
            Some("did not respond in time"),
        ),
        (
            Answer::Endless("HTTP/1.1 200 OK\r\n", "x: y\r\n"),
            Some("headers of the receiver's response are too large"),
        ),
        (
            Answer::Endless(
                "HTTP/1.1 200 OK
x: ",
                "xxxxxxxx",
            ),
            Some("headers of the receiver's response are too large"),
        ),
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
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        let said = delivery.last_error.unwrap_or_default();
        assert_eq!(
            delivery.status == DeliveryStatus::Delivered,
            error.is_none(),
            "{said}"
        );
        assert!(said.contains(error.unwrap_or_default()), "{said}");
    }
}

/// with any number waiting for a silent receiver, executions end and other receivers are told at once.
#[tokio::test]
async fn silent_receiver_does_not_delay_other_deliveries() {
    let (world, _sender) = with_webhooks(WebhookSettings {
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

#[tokio::test]
async fn verifies_certificate_of_receiver() {
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
    let (world, _sender) = with_webhooks(unbelieving).await;
    let execution = run(&world, &url).await;
    let refused = settled(&world, &execution).await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the receiver's certificate is not trusted")
    );
    assert!(receiver.is_quiet());

    let (world, _sender) = with_webhooks(believing.clone()).await;
    let execution = run(&world, &url).await;
    assert!(receiver.next().await.is_signed_by(&secret(&world).await));
    assert_eq!(
        settled(&world, &execution).await.status,
        DeliveryStatus::Delivered
    );

    // Another name than the certificate's.
    let (world, _sender) = with_webhooks(WebhookSettings {
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
async fn rejects_ca_bundle_without_certificates_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "nothing").unwrap();
    let settings = WebhookSettings {
        ca_bundle: Some(file),
        ..settings()
    };
    let instance = instance_in(folder.path());
    let engine = engine_with_webhooks(settings, folder.path(), instance, Sandbox::scripted(script)).await;
    let refused = engine.webhooks().sender().unwrap_err();
    assert!(refused.to_string().contains("webhooks.ca_bundle"), "{refused}");
}

/// over HTTP and HTTPS, in a real server process.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_ignore_proxy_variables() {
    if !tokio::task::spawn_blocking(has_docker).await.unwrap() {
        return;
    }
    let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let proxy = format!("http://{}", canary.local_addr().unwrap());
    let ok = [Answer::status(200)];
    let mut plain = Receiver::open(&ok).await;
    let (mut encrypted, certificate) = Receiver::open_tls(&ok, &["127.0.0.1"]).await;
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, certificate).unwrap();
    let data = folder.path().join("data");
    let urls = [plain.url(), format!("https://127.0.0.1:{}/hook", encrypted.port)];
    let running = tokio::task::spawn_blocking(move || {
        let mut env = vec![
            ("SKILLBOX_WEBHOOKS_ALLOW_HTTP", "true"),
            ("SKILLBOX_WEBHOOKS_ALLOW_PRIVATE", "127.0.0.1"),
            ("SKILLBOX_WEBHOOKS_CA_BUNDLE", ca.to_str().unwrap()),
            ("NO_PROXY", ""),
            ("no_proxy", ""),
        ];
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            env.push((name, &proxy));
        }
        let server = Server::start_with(&data, &env);
        for url in urls {
            let body = serde_json::json!({"code": "6 * 7", "callback_url": url});
            assert_eq!(server.post_json("/v1/executions", &body).status, 200);
        }
        server
    });
    let server = running.await.unwrap();
    plain.next().await;
    encrypted.next().await;
    let untouched = canary.accept().unwrap_err();
    assert_eq!(untouched.kind(), std::io::ErrorKind::WouldBlock);
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
}
