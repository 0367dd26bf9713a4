//! The command line against a server that means harm, and on a terminal that would obey (O-14, W-12).

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use skillbox::ids::{Digest, ExecutionId};

use crate::cli_shell::{CommandOutput, Shell, command_output};
use crate::terminal::on_terminal;

/// Answers each path with what the test gives. Lives as long as the test process.
pub(crate) fn server(answer: impl Fn(&str) -> (&'static str, Vec<u8>) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || serve(stream, &*answer));
        }
    });
    url
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> (&'static str, Vec<u8>)) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (head, body) = answer(path);
    let _ = write!(
        stream,
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&body);
}

pub(crate) fn shell(url: &str) -> Shell {
    Shell::new()
        .with("SKILLBOX_SERVER_URL", url)
        .with("SKILLBOX_API_KEY", "skb_x")
}

const OK: &str = "200 OK\r\ncontent-type: application/json";

fn envelope(files: &Value) -> Value {
    json!({
        "execution_id": ExecutionId::generate(), "status": "success", "skill": "a", "version": "1.0.0", "digest": null,
        "backend": "docker", "backend_reason": "", "degraded": [], "output": null, "results": [], "error": null, "exit_code": 0,
        "logs": {"stdout": "", "stderr": "", "truncated": false}, "files": files, "files_url": null, "files_list": [],
        "files_skipped": [], "files_skipped_total": 0, "output_blobs": [], "duration_ms": 1, "timings": null, "usage": null,
        "created_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z",
    })
}

fn file(path: &str, content: &[u8]) -> Value {
    json!({"path": path, "size": content.len(), "sha256": Digest::of(content), "media_type": "text/plain", "url": "http://127.0.0.1:1/steal"})
}

/// Asks for the files of an execution, which the server announces as `files` and answers with `content`.
fn fetch(files: Value, content: &'static [u8]) -> (CommandOutput, Shell) {
    let url = server(move |path| {
        if path.contains("/files/") {
            ("200 OK", content.to_vec())
        } else {
            (OK, envelope(&files).to_string().into_bytes())
        }
    });
    let shell = shell(&url);
    let said = shell.run(&[
        "exec",
        "files",
        &ExecutionId::generate().to_string(),
        "--out",
        "out/inner",
    ]);
    (said, shell)
}

/// O-14.
#[test]
fn files_from_hostile_server_stay_inside_output_folder() {
    for path in [
        "../evil",
        "../../evil",
        "/tmp/skillbox-evil",
        "a/../../evil",
        "..",
        "",
    ] {
        let (said, shell) = fetch(json!([file("fine.txt", b"x"), file(path, b"x")]), b"x");
        assert_eq!(said.code, 3, "{path}: {}", said.stderr);
        assert!(!shell.folder().join("evil").exists() && !shell.folder().join("out/evil").exists());
        assert!(
            !shell.folder().join("out/inner/fine.txt").exists(),
            "all or nothing"
        );
    }
    assert!(!std::path::Path::new("/tmp/skillbox-evil").exists());
}

/// O-14.
#[test]
fn rejects_files_with_wrong_size_or_content() {
    for (announced, sent) in [(&b"x"[..], &b"xxxxxxxx"[..]), (b"x", b"y"), (b"xx", b"x")] {
        let (said, shell) = fetch(json!([file("a.txt", announced)]), sent);
        assert_ne!(said.code, 0, "{announced:?}");
        assert_eq!(
            std::fs::read_dir(shell.folder().join("out/inner"))
                .unwrap()
                .count(),
            0
        );
    }
    let huge =
        json!([{"path": "a", "size": u64::MAX, "sha256": Digest::of(b""), "media_type": "", "url": null}]);
    assert_eq!(fetch(huge, b"x").0.code, 3);
    let many: Vec<_> = (0..2000).map(|n| file(&n.to_string(), b"x")).collect();
    assert_eq!(fetch(many.into(), b"x").0.code, 3);
}

/// O-14.
#[test]
fn does_not_unpack_hostile_archive() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("SKILL.md", options).unwrap();
    zip.start_file("../../evil", options).unwrap();
    let archive = zip.finish().unwrap().into_inner();
    let url = server(move |_| ("200 OK", archive.clone()));
    let shell = shell(&url);
    let said = shell.run(&["skill", "pull", "a", "--unpack", "un"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(!shell.folder().join("evil").exists() && !shell.folder().join("un").exists());
}

#[test]
fn does_not_follow_redirects_with_api_key() {
    let followed = Arc::new(AtomicBool::new(false));
    let witness = Arc::clone(&followed);
    let elsewhere = server(move |_| {
        witness.store(true, Ordering::SeqCst);
        (OK, listing())
    });
    let head: &'static str = format!("302 Found\r\nlocation: {elsewhere}/steal").leak();
    let said = shell(&server(move |_| (head, Vec::new()))).run(&["skill", "list"]);
    assert_eq!(said.code, 69, "{}", said.stderr);
    assert!(!followed.load(Ordering::SeqCst));
}

#[test]
fn reports_invalid_server_responses() {
    for body in [&b""[..], b"<html>", b"[]", b"{\"items\": 1}"] {
        let said = shell(&server(move |_| (OK, body.to_vec()))).run(&["skill", "list"]);
        assert_eq!(said.code, 69, "{}", said.stderr);
    }
    let said = shell(&server(|_| ("500 Oops", b"\x1b[31mno json".to_vec()))).run(&["skill", "list"]);
    assert_eq!(said.code, 69, "{}", said.stderr);
}

const ATTACK: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}gnp.exe\u{2066}\u{e0041}\r\u{8}";

fn listing() -> Vec<u8> {
    let skill = json!({
        "name": "a", "version": "1.0.0", "digest": Digest::of(b""), "description": ATTACK, "language": "bash", "archive_bytes": 1,
        "unpacked_bytes": 1, "files": 1, "created_at": "2026-01-01T00:00:00Z",
    });
    json!({"items": [skill], "next_page_token": null})
        .to_string()
        .into_bytes()
}

fn problem() -> Vec<u8> {
    let detail = format!("no {ATTACK}");
    json!({
        "type": "", "title": "", "status": 404, "detail": detail, "code": "not_found", "request_id": "", "retryable": false,
    })
    .to_string()
    .into_bytes()
}

/// What is left when our own colours and the terminal's line ends are taken away.
fn acts(sent: &str) -> Vec<char> {
    let mut plain = sent.replace("\r\n", "\n");
    for own in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m"] {
        plain = plain.replace(own, "");
    }
    plain
        .chars()
        .filter(|c| *c != '\n' && skillbox::skill::hidden_character(&c.to_string()).is_some() || *c == '\r')
        .collect()
}

/// W-12.
#[test]
fn escapes_control_characters_on_terminal() {
    let url = server(|path| {
        if path.starts_with("/v1/skills/") {
            ("404 Not Found", problem())
        } else {
            (OK, listing())
        }
    });
    let shell = shell(&url);
    for format in ["table", "json", "yaml"] {
        let sent = on_terminal(&shell, &["skill", "list", "--format", format]);
        assert!(sent.contains("gnp.exe"), "{format}: {sent:?}");
        assert_eq!(acts(&sent), [' '; 0], "{format}: {sent:?}");
    }
    let sent = on_terminal(&shell, &["skill", "show", "a"]);
    assert!(sent.contains("error:"), "{sent:?}");
    assert_eq!(acts(&sent), [' '; 0], "{sent:?}");
}

/// W-12: `--raw` lets it through, and so does a pipe, since a program reads there.
#[test]
fn raw_and_piped_output_is_unchanged() {
    let url = server(|_| (OK, listing()));
    let shell = shell(&url);
    let sent = on_terminal(&shell, &["skill", "list", "--format", "yaml", "--raw"]);
    assert!(sent.contains('\u{202e}'), "{sent:?}");
    let piped = command_output(
        shell
            .command(&["skill", "list", "--format", "json"])
            .output()
            .unwrap(),
    );
    let value: Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!(value[0]["description"], ATTACK);
}
