//! Checks of requests, and the bytes that earlier versions stored.

use super::*;

fn file(path: &str) -> InputFile {
    InputFile {
        path: path.to_owned(),
        content: bytes::Bytes::new(),
    }
}

#[test]
fn rejects_files_outside_the_workspace() {
    for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\0b", "a\nb"] {
        let refused = RunSpec {
            files: vec![file(path)],
            ..RunSpec::default()
        }
        .check();
        assert!(refused.is_err(), "{path:?}");
    }
    assert!(
        RunSpec {
            files: vec![file("data/a b.csv")],
            ..RunSpec::default()
        }
        .check()
        .is_ok()
    );
    for files in [vec![file("a"), file("a")], vec![file("a/b/c"), file("a/b")]] {
        assert!(
            RunSpec {
                files,
                ..RunSpec::default()
            }
            .check()
            .is_err()
        );
    }
}

///
#[test]
fn rejects_arguments_with_nul_by_index() {
    let refused = RunSpec {
        args: vec!["a".to_owned(), "b\0".to_owned()],
        ..RunSpec::default()
    }
    .check()
    .unwrap_err();
    assert!(refused.to_string().starts_with("args[1]"), "{refused}");
}

#[test]
fn rejects_input_above_the_limit() {
    let text = format!(
        "\"{}\"",
        "x".repeat(usize::try_from(limits::INPUT_BYTES_MAX).unwrap())
    );
    let input = JsonText::parse(text.as_bytes()).ok();
    let refused = RunSpec {
        input,
        ..RunSpec::default()
    }
    .check()
    .unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge);
}

fn full_request() -> RunRequest {
    RunRequest::from(RunSpec {
        input: JsonText::parse(b"{\"n\":  1e400}").ok(),
        args: vec!["-v".to_owned()],
        files: vec![InputFile {
            path: "a/b".to_owned(),
            content: Bytes::from_static(b"\0\xff"),
        }],
        blobs: vec![Digest::of(b"blob")],
        script: Some("scripts/a.py".to_owned()),
        stdin: Some(Bytes::from_static(b"\xfe")),
        mount_skills: vec!["other@latest".parse().unwrap()],
        requirements: vec!["pandas".to_owned()],
        timeout: Some(Duration::from_millis(1500)),
        callback_url: Some("https://hooks.example/".to_owned()),
        ..RunSpec::of_skill("demo".parse().unwrap(), "1.2.0".parse().unwrap())
    })
}

#[test]
fn pins_the_version_of_a_mounted_skill() {
    let digest = Digest::of(b"then");
    let files = SkillFiles {
        name: "other".parse().unwrap(),
        digest,
        folder: "/cache/other".into(),
    };
    let stored = full_request().to_stored().unwrap();
    let spec = RunSpec::from_stored(&RunSpec::pin_mounts(stored, &[files]).unwrap()).unwrap();
    assert_eq!(spec.mount_skills[0].selector, Selector::Digest(digest));
}

#[test]
fn reads_back_what_was_stored() {
    let stored = full_request().to_stored().unwrap();
    let spec = RunSpec::from_stored(&stored).unwrap();
    assert_eq!(RunRequest::from(spec.clone()).to_stored().unwrap(), stored);
    assert_eq!(spec.input.unwrap().as_str(), "{\"n\":  1e400}");
    assert_eq!(
        (&spec.files[0].content[..], &spec.stdin.unwrap()[..]),
        (&b"\0\xff"[..], &b"\xfe"[..])
    );
}

#[test]
fn rejects_storing_what_cannot_be_found_again() {
    let request = RunRequest {
        blob_contents: vec![tempfile::tempfile().unwrap()],
        ..full_request()
    };
    assert!(request.to_stored().is_err());
    let archive = UnpublishedArchive {
        zip: tempfile::tempfile().unwrap(),
        fallback_name: None,
    };
    let request = RunRequest {
        archive: Some(archive),
        ..RunRequest::default()
    };
    assert!(request.to_stored().is_err());
}

/// One bit for each field; the lowest chooses between code and a skill.
const FIELDS: u32 = 11;

fn request(fields: u32) -> RunRequest {
    let has = |bit: u32| fields & (1 << bit) != 0;
    let mut spec = if has(0) {
        RunSpec::of_skill("team.demo".parse().unwrap(), "1.2.0-rc.1".parse().unwrap())
    } else {
        RunSpec::of_code(Language::Node, "console.log(\"é\\n\")\r\n".to_owned())
    };
    let file = |path: &str, content: &'static [u8]| InputFile {
        path: path.to_owned(),
        content: Bytes::from_static(content),
    };
    if has(1) {
        let odd = "{\"n\":  1e400, \"b\" :[ 1.0,-0 ,9007199254740993.10] ,\"\\u00e9\\/\":\"é\" }";
        spec.input = JsonText::parse(odd.as_bytes()).ok();
    }
    if has(2) {
        spec.args = vec!["-v".to_owned(), "ü \"x\"".to_owned(), String::new()];
    }
    if has(3) {
        spec.files = vec![
            file("b.txt", b"\0\xff"),
            file("a/b", b""),
            file("b.txt", b"later"),
        ];
    }
    if has(4) {
        spec.blobs = vec![Digest::of(b"one"), Digest::of(b"2")];
    }
    if has(5) {
        spec.script = Some("scripts/a.py".to_owned());
    }
    if has(6) {
        spec.stdin = Some(Bytes::from_static(b"\xfe\0text"));
    }
    if has(7) {
        spec.mount_skills = vec!["other@latest".parse().unwrap(), "a.b@1.0.0".parse().unwrap()];
    }
    if has(8) {
        spec.requirements = vec!["pandas>=2".to_owned(), "lodash@^4".to_owned()];
    }
    if has(9) {
        spec.timeout = Some(Duration::from_micros(1_500_999));
    }
    if has(10) {
        spec.callback_url = Some("https://hooks.example/?a=1&b=\"".to_owned());
    }
    spec.into()
}

/// Values that one request cannot show together.
fn special_requests() -> Vec<RunRequest> {
    let mut requests = Vec::new();
    for input in [
        "null",
        " [1,  2]\n",
        "1E+400",
        "{}",
        "\"\\ud83d\\ude00\"",
        "{\"a\":1,\"a\":2}",
    ] {
        let mut request = request(1);
        request.spec.input = JsonText::parse(input.as_bytes()).ok();
        requests.push(request);
    }
    for selector in ["latest", "1.2.0", &Digest::of(b"skill").to_string()] {
        requests.push(RunSpec::of_skill("demo".parse().unwrap(), selector.parse().unwrap()).into());
    }
    for language in [Language::Python, Language::Node, Language::Bash] {
        requests.push(RunSpec::of_code(language, String::new()).into());
    }
    for timeout in [Duration::ZERO, Duration::from_secs(30), Duration::MAX] {
        let mut request = request(0);
        request.spec.timeout = Some(timeout);
        requests.push(request);
    }
    let mut empty_stdin = request(0);
    empty_stdin.spec.stdin = Some(Bytes::new());
    requests.push(empty_stdin);
    requests
}

/// The queue of an older version is read after an upgrade, and these bytes are what an idempotency key stands for.
#[test]
fn writes_the_bytes_of_earlier_versions() {
    let write = |request: &RunRequest| String::from_utf8(request.to_stored().unwrap()).unwrap();
    let all_fields = (1 << FIELDS) - 1;
    let alone = (1..FIELDS).flat_map(|bit| [1 << bit, 1 | 1 << bit]);
    let shown = [0, 1, all_fields - 1, all_fields].into_iter().chain(alone);
    let mut lines: Vec<_> = shown.map(|fields| write(&request(fields))).collect();
    lines.extend(special_requests().iter().map(write));
    let combinations: Vec<_> = (0..=all_fields).map(|fields| write(&request(fields))).collect();
    lines.push(Digest::of(combinations.join("\n").as_bytes()).to_string());
    let golden = include_str!("../../../tests/baseline/queued-requests.txt");
    assert_eq!(lines.join("\n") + "\n", golden);
}

/// A program reads `null` instead of `{}`, also after waiting in the queue.
#[test]
fn queue_keeps_null_input_apart_from_an_absent_one() {
    for input in [None, Some("null"), Some("{}")] {
        let spec = RunSpec {
            input: input.and_then(|text| JsonText::parse(text.as_bytes()).ok()),
            ..RunSpec::of_code(Language::Bash, String::new())
        };
        let read = RunSpec::from_stored(&spec.to_stored().unwrap()).unwrap();
        assert_eq!(read.input.as_ref().map(JsonText::as_str), input);
    }
}
