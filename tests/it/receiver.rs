//! A webhook receiver with scripted responses that passes each delivery to the test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A receiver on a free port of loopback; stopped when dropped.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    received: mpsc::UnboundedReceiver<ReceivedRequest>,
    task: tokio::task::JoinHandle<()>,
}

/// One request.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What it answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// This, byte for byte.
    Bytes(Vec<u8>),
    /// This, and then the same piece for ever.
    Endless(&'static str, &'static str),
    /// Nothing, and the connection stays open.
    Never,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self::text(&format!(
            "HTTP/1.1 {status} As CommandOutput\r\ncontent-length: 2\r\n\r\nok"
        ))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

impl Receiver {
    /// Answers the first request with the first of `answers` and so on, and all that follow with the last.
    pub(crate) async fn open(answers: &[Answer]) -> Self {
        Self::over(answers, None).await
    }

    /// The same over TLS; also returns the certificate that it is to be believed by.
    pub(crate) async fn open_tls(answers: &[Answer], names: &[&str]) -> (Self, String) {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certified.cert.der().to_vec())], key)
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        (Self::over(answers, Some(acceptor)).await, certified.cert.pem())
    }

    async fn over(answers: &[Answer], tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (told, received) = mpsc::unbounded_channel();
        let (answers, count) = (answers.to_vec(), AtomicUsize::new(0));
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let place = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                let (answer, told, tls) = (answers[place].clone(), told.clone(), tls.clone());
                open.spawn(async move {
                    match tls {
                        None => serve(stream, answer, told).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, answer, told).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { port, received, task }
    }

    /// Its URL, over plain HTTP.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?token=t", self.port)
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> ReceivedRequest {
        let next = tokio::time::timeout(PATIENCE, self.received.recv()).await;
        next.expect("something comes").unwrap()
    }

    /// Whether every request that came was checked.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.received.try_recv().is_err()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answer: Answer,
    told: mpsc::UnboundedSender<ReceivedRequest>,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    let _ = told.send(ReceivedRequest { line, headers, body });
    match answer {
        Answer::Bytes(bytes) => stream.write_all(&bytes).await.ok()?,
        Answer::Endless(head, piece) => {
            stream.write_all(head.as_bytes()).await.ok()?;
            loop {
                stream.write_all(piece.as_bytes()).await.ok()?;
            }
        }
        Answer::Never => {}
    }
    // Until the other side has seen enough.
    let _ = stream.read_u8().await;
    Some(())
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Whether one of its signatures is by `secret`: as <https://www.standardwebhooks.com> has it, and none of our own code.
    pub(crate) fn is_signed_by(&self, secret: &str) -> bool {
        let base64 = base64::engine::general_purpose::STANDARD;
        let key = base64.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let seconds = &self.headers["webhook-timestamp"];
        let signed = [format!("{}.{seconds}.", self.id()).as_bytes(), &self.body].concat();
        let expected = format!("v1,{}", base64.encode(hmac_sha256(&key, &signed)));
        let signatures = self.headers["webhook-signature"].split(' ');
        signatures.filter(|one| **one == expected).count() == 1
    }
}

/// RFC 2104, for keys of at most one block.
fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], text].concat());
    Sha256::digest([&pad(0x5c)[..], &inner].concat()).into()
}
