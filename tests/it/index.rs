//! A package index of the tests: on loopback, over TLS, with the packages that a test adds.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use base64::Engine as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::Digest as _;
use skillbox::egress::NamedBy;
use skillbox::engine::{DependencySettings, Index};

/// A name that only a proxy can resolve to the index.
pub(crate) const ELSEWHERE: &str = "index.invalid";

/// What nothing hashes to.
const NO_HASH: &str = "AAAA";

/// The index; stopped when dropped.
pub(crate) struct OwnIndex {
    port: u16,
    ca: PathBuf,
    files: Arc<Mutex<HashMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
    is_open: Arc<Mutex<bool>>,
    held: Arc<Held>,
}

/// A path whose response is held until `release`.
#[derive(Default)]
struct Held(Mutex<Option<String>>, Condvar);

#[derive(Clone)]
enum Answer {
    Content(Vec<u8>),
    Redirect(String),
}

impl OwnIndex {
    pub(crate) fn open(folder: &Path) -> Self {
        let certified =
            rcgen::generate_simple_self_signed(["127.0.0.1", "localhost", ELSEWHERE].map(str::to_owned))
                .unwrap();
        let ca = folder.join("index-ca.pem");
        std::fs::write(&ca, certified.cert.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certified.cert.der().to_vec())], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let index = Self {
            port: listener.local_addr().unwrap().port(),
            ca,
            files: Arc::default(),
            asked: Arc::default(),
            is_open: Arc::new(Mutex::new(true)),
            held: Arc::default(),
        };
        let (files, asked, is_open) = (index.files.clone(), index.asked.clone(), index.is_open.clone());
        let (config, held) = (Arc::new(config), index.held.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !*is_open.lock().unwrap() {
                    return;
                }
                let (files, asked, config) = (files.clone(), asked.clone(), config.clone());
                let held = held.clone();
                std::thread::spawn(move || serve(stream.unwrap(), config, &held, &files, &asked));
            }
        });
        index
    }

    fn node_url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// Settings that know this index and no other.
    pub(crate) fn settings(&self, folder: &Path) -> DependencySettings {
        let url = |path: &str| format!("https://127.0.0.1:{}{path}", self.port);
        DependencySettings {
            python_index: Index::parse(&url("/simple"), NamedBy::Operator).unwrap(),
            // Node asks for no certificate of a mere address.
            node_registry: Index::parse(&self.node_url("/npm"), NamedBy::Operator).unwrap(),
            hosts: Vec::new(),
            ca_bundle: Some(self.ca.clone()),
            ..DependencySettings::in_folder(folder.join("packages"))
        }
    }

    /// Offers a file of a project, as PEP 503 has it.
    pub(crate) fn offer(&self, project: &str, name: &str, content: Vec<u8>) {
        let page = format!("/simple/{project}/");
        let link = format!("<a href=\"/files/{name}\">{name}</a><br>\n");
        let mut files = self.files.lock().unwrap();
        match files.entry(page).or_insert_with(|| Answer::Content(Vec::new())) {
            Answer::Content(page) => page.extend_from_slice(link.as_bytes()),
            Answer::Redirect(_) => unreachable!("a project's page is content"),
        }
        files.insert(format!("/files/{name}"), Answer::Content(content));
    }

    /// Redirects requests for a file.
    pub(crate) fn redirect(&self, path: &str, to: &str) {
        let to = Answer::Redirect(to.to_owned());
        self.files.lock().unwrap().insert(path.to_owned(), to);
    }

    /// Holds responses for this path until [`release`](Self::release).
    pub(crate) fn hold(&self, path: &str) {
        *self.held.0.lock().unwrap() = Some(path.to_owned());
    }

    pub(crate) fn release(&self) {
        *self.held.0.lock().unwrap() = None;
        self.held.1.notify_all();
    }

    /// The port of loopback that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Offers a wheel with these files.
    pub(crate) fn wheel(&self, project: &str, files: &[(&str, &str)]) {
        self.wheel_with_links(project, files, &[]);
    }

    /// Offers a wheel with these files, and links to these places.
    pub(crate) fn wheel_with_links(&self, project: &str, files: &[(&str, &str)], links: &[(&str, &str)]) {
        let name = format!("{project}-1.0-py3-none-any.whl");
        self.offer(project, &name, wheel(project, files, links));
    }

    /// Offers the pip of this machine, for interpreters that have none; `false` where there is none to be had.
    pub(crate) fn offer_pip(&self) -> bool {
        let Some((name, content)) = pip() else {
            return false;
        };
        self.offer("pip", &name, content);
        true
    }

    /// Offers one version of a Node package with these files, and returns its address and what it must hash to.
    pub(crate) fn node_package(&self, name: &str, version: &str, files: &[(&str, &str)]) -> (String, String) {
        self.node_package_with_links(name, version, files, &[])
    }

    /// The same with links to these places.
    pub(crate) fn node_package_with_links(
        &self,
        name: &str,
        version: &str,
        files: &[(&str, &str)],
        links: &[(&str, &str)],
    ) -> (String, String) {
        let about = serde_json::json!({"name": name, "version": version, "main": "index.js"}).to_string();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(&mut gz);
        let own = [("package.json", about.as_str())];
        let own = own
            .iter()
            .filter(|(path, _)| files.iter().all(|(other, _)| other != path));
        for (path, content) in own.chain(files) {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("package/{path}"), content.as_bytes())
                .unwrap();
        }
        for (path, target) in links {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, format!("package/{path}"), target)
                .unwrap();
        }
        tar.finish().unwrap();
        drop(tar);
        let archive = gz.finish().unwrap();
        let integrity = sha512(&archive);
        (
            self.offer_npm_archive(name, version, archive, &integrity),
            integrity,
        )
    }

    fn offer_npm_archive(&self, name: &str, version: &str, archive: Vec<u8>, integrity: &str) -> String {
        let file = format!("/files/{name}-{version}.tgz");
        let url = self.node_url(&file);
        let dist = serde_json::json!({"tarball": url, "integrity": integrity});
        // npm looks for scripts only where the registry says that there are some.
        let version_about = serde_json::json!({"name": name, "version": version, "main": "index.js",
            "hasInstallScript": true, "dist": dist});
        let mut files = self.files.lock().unwrap();
        let page = files
            .entry(format!("/npm/{name}"))
            .or_insert_with(|| Answer::Content(b"null".to_vec()));
        let Answer::Content(text) = page else {
            unreachable!("a package's page is content");
        };
        let mut about: serde_json::Value = serde_json::from_slice(text).unwrap();
        about["name"] = name.into();
        about["dist-tags"]["latest"] = version.into();
        about["versions"][version] = version_about;
        *text = about.to_string().into_bytes();
        files.insert(file, Answer::Content(archive));
        url
    }

    /// Offers an npm of this machine's registry, for images that have none; `false` where there is none to be had.
    pub(crate) fn offer_npm(&self) -> bool {
        // Of several hashes the weaker ones do not count.
        self.offer_npm_hashed(|right| format!("sha1-{NO_HASH} sha512-{NO_HASH} {right}"))
    }

    /// The same, damaged on its way.
    pub(crate) fn offer_damaged_npm(&self) -> bool {
        self.offer_npm_hashed(|_| format!("sha512-{NO_HASH}"))
    }

    fn offer_npm_hashed(&self, integrity: impl FnOnce(String) -> String) -> bool {
        let Some((name, content)) = npm() else {
            return false;
        };
        let version = name.trim_start_matches("npm-").trim_end_matches(".tgz");
        let integrity = integrity(sha512(&content));
        self.offer_npm_archive("npm", version, content, &integrity);
        true
    }

    /// What was asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How often this file was fetched.
    pub(crate) fn fetched(&self, name: &str) -> usize {
        let path = format!("/files/{name}");
        self.asked().iter().filter(|asked| **asked == path).count()
    }
}

impl Drop for OwnIndex {
    fn drop(&mut self) {
        *self.is_open.lock().unwrap() = false;
        self.release();
        // The accept loop checks the flag on each connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(
    socket: TcpStream,
    config: Arc<ServerConfig>,
    held: &Held,
    files: &Mutex<HashMap<String, Answer>>,
    asked: &Mutex<Vec<String>>,
) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(path.clone());
    let waiting = held.0.lock().unwrap();
    let is_held = |waiting: &mut Option<String>| waiting.as_ref() == Some(&path);
    drop(held.1.wait_while(waiting, is_held).unwrap());
    let answer = files.lock().unwrap().get(&path).cloned();
    let (status, more, content) = match answer {
        Some(Answer::Content(content)) => ("200 OK", String::new(), content),
        Some(Answer::Redirect(to)) => ("302 Found", format!("Location: {to}\r\n"), Vec::new()),
        None => ("404 Not Found", String::new(), Vec::new()),
    };
    let kind = if path.ends_with('/') {
        "text/html"
    } else {
        "application/octet-stream"
    };
    let length = content.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&content));
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// What content must hash to, as npm writes it.
fn sha512(content: &[u8]) -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha512::digest(content));
    format!("sha512-{hash}")
}

/// A wheel with these files.
fn wheel(project: &str, files: &[(&str, &str)], links: &[(&str, &str)]) -> Vec<u8> {
    let info = format!("{project}-1.0.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n");
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut record = String::new();
    let mut add = |zip: &mut zip::ZipWriter<_>, path: &str, content: &str| {
        zip.start_file(path, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
        writeln!(record, "{path},,").unwrap();
    };
    for (path, content) in files {
        add(&mut zip, path, content);
    }
    for (path, target) in links {
        zip.add_symlink(*path, *target, zip::write::SimpleFileOptions::default())
            .unwrap();
    }
    add(&mut zip, &format!("{info}/METADATA"), &metadata);
    let kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    add(&mut zip, &format!("{info}/WHEEL"), kind);
    writeln!(record, "{info}/RECORD,,").unwrap();
    zip.start_file(format!("{info}/RECORD"), zip::write::SimpleFileOptions::default())
        .unwrap();
    zip.write_all(record.as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// The pip that this machine's own index has, fetched once.
fn pip() -> Option<(String, Vec<u8>)> {
    let args = "-m pip download --quiet --no-deps --only-binary=:all: pip --dest";
    fetched_once("pip", "python3", args, "whl")
}

/// The npm that this machine's own registry has, fetched once.
fn npm() -> Option<(String, Vec<u8>)> {
    fetched_once("npm", "npm", "pack --silent npm@10 --pack-destination", "tgz")
}

/// The file that a command leaves in the folder that is its last argument.
fn fetched_once(what: &str, program: &str, args: &str, ending: &str) -> Option<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(what);
    let found = || {
        let entry = std::fs::read_dir(&folder).ok()?.filter_map(Result::ok);
        let file = entry
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|end| end == ending))?;
        let name = file.file_name()?.to_str()?.to_owned();
        Some((name, std::fs::read(file).ok()?))
    };
    found().or_else(|| {
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let fetched = std::process::Command::new(program)
            .args(args.split(' '))
            .arg(fresh.path())
            .status();
        if fetched.is_ok_and(|status| status.success()) {
            // Another test may have been faster.
            let _ = std::fs::rename(fresh.path(), &folder);
        }
        found()
    })
}
