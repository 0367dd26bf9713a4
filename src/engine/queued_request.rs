//! A request as it is kept until its turn comes, and told from others.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::{Ask, AskedBlob, CalledCode, What};
use crate::error::Error;
use crate::execution::JsonText;
use crate::ids::Digest;
use crate::sandbox::{InputFile, SkillFiles};
use crate::skill::{Language, Selector, SkillRef};

/// Everything that a request says, in an order that is always the same.
#[derive(Serialize, Deserialize)]
struct Stored {
    skill: Option<SkillRef>,
    code: Option<String>,
    language: Option<Language>,
    input: Option<JsonText>,
    args: Vec<String>,
    /// Path to base64.
    files: BTreeMap<String, String>,
    blobs: Vec<Digest>,
    script: Option<String>,
    /// Base64.
    stdin: Option<String>,
    mount_skills: Vec<SkillRef>,
    requirements: Vec<String>,
    timeout_ms: Option<u64>,
    callback_url: Option<String>,
}

/// Writes down what is asked for. Only what a server can find again later can be kept.
pub(super) fn write(what: &What, ask: &Ask) -> Result<Vec<u8>, Error> {
    let (skill, code) = match what {
        What::Skill { name, selector } => {
            let (name, selector) = (name.clone(), selector.clone());
            (Some(SkillRef { name, selector }), None)
        }
        What::Code(code) => (None, Some(code)),
        What::Archive { .. } => return Err(not_kept("an archive that is not published")),
    };
    let blobs = ask.blobs.iter().map(|blob| match blob {
        AskedBlob::Kept(digest) => Ok(*digest),
        AskedBlob::Content(_) => Err(not_kept("a blob that is not kept")),
    });
    let files = ask.files.iter();
    let stored = Stored {
        skill,
        code: code.map(|code| code.text.clone()),
        language: code.map(|code| code.language),
        input: ask.input.clone(),
        args: ask.args.clone(),
        files: files
            .map(|file| (file.path.clone(), BASE64_STANDARD.encode(&file.content)))
            .collect(),
        blobs: blobs.collect::<Result<_, _>>()?,
        script: ask.script.clone(),
        stdin: ask.stdin.as_ref().map(|stdin| BASE64_STANDARD.encode(stdin)),
        mount_skills: ask.mount_skills.clone(),
        requirements: ask.requirements.clone(),
        timeout_ms: ask
            .timeout
            .map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        callback_url: ask.callback_url.clone(),
    };
    serde_json::to_vec(&stored).map_err(Error::internal)
}

/// The same with the versions of mounted skills that are meant now.
pub(super) fn pinned(written: Vec<u8>, mounted: &[SkillFiles]) -> Result<Vec<u8>, Error> {
    if mounted.is_empty() {
        return Ok(written);
    }
    let mut stored: Stored = serde_json::from_slice(&written).map_err(Error::internal)?;
    for mount in &mut stored.mount_skills {
        if let Some(files) = mounted.iter().find(|files| files.name == mount.name) {
            mount.selector = Selector::Digest(files.digest);
        }
    }
    serde_json::to_vec(&stored).map_err(Error::internal)
}

/// Reads back what was written.
pub(super) fn read(bytes: &[u8]) -> Result<(What, Ask), Error> {
    let stored: Stored = serde_json::from_slice(bytes).map_err(Error::internal)?;
    let decoded = |text: &String| BASE64_STANDARD.decode(text).map(Bytes::from);
    let what = match (stored.skill, stored.code) {
        (Some(SkillRef { name, selector }), _) => What::Skill { name, selector },
        (None, code) => What::Code(CalledCode {
            text: code.unwrap_or_default(),
            language: stored.language.unwrap_or(Language::Python),
        }),
    };
    let files = stored.files.iter().map(|(path, content)| {
        Ok(InputFile {
            path: path.clone(),
            content: decoded(content)?,
        })
    });
    let files: Result<Vec<_>, base64::DecodeError> = files.collect();
    let stdin = stored.stdin.as_ref().map(decoded).transpose();
    let ask = Ask {
        input: stored.input,
        args: stored.args,
        files: files.map_err(Error::internal)?,
        blobs: stored.blobs.into_iter().map(AskedBlob::Kept).collect(),
        script: stored.script,
        stdin: stdin.map_err(Error::internal)?,
        mount_skills: stored.mount_skills,
        requirements: stored.requirements,
        timeout: stored.timeout_ms.map(Duration::from_millis),
        callback_url: stored.callback_url,
    };
    Ok((what, ask))
}

fn not_kept(what: &str) -> Error {
    Error::invalid(format!(
        "{what} cannot wait in the queue; run it without `mode: async`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> (What, Ask) {
        let what = What::Skill {
            name: "demo".parse().unwrap(),
            selector: "1.2.0".parse().unwrap(),
        };
        let ask = Ask {
            input: JsonText::parse(b"{\"n\":  1e400}").ok(),
            args: vec!["-v".to_owned()],
            files: vec![InputFile {
                path: "a/b".to_owned(),
                content: Bytes::from_static(b"\0\xff"),
            }],
            blobs: vec![AskedBlob::Kept(Digest::of(b"blob"))],
            script: Some("scripts/a.py".to_owned()),
            stdin: Some(Bytes::from_static(b"\xfe")),
            mount_skills: vec!["other@latest".parse().unwrap()],
            requirements: vec!["pandas".to_owned()],
            timeout: Some(Duration::from_millis(1500)),
            callback_url: Some("https://hooks.example/".to_owned()),
        };
        (what, ask)
    }

    #[test]
    fn a_mounted_skill_stays_the_one_that_was_meant() {
        let (what, ask) = asked();
        let digest = Digest::of(b"then");
        let files = SkillFiles {
            name: "other".parse().unwrap(),
            digest,
            folder: "/cache/other".into(),
        };
        let (_, ask) = read(&pinned(write(&what, &ask).unwrap(), &[files]).unwrap()).unwrap();
        assert_eq!(ask.mount_skills[0].selector, Selector::Digest(digest));
    }

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let (what, ask) = asked();
        let kept = write(&what, &ask).unwrap();
        let (again, ask) = read(&kept).unwrap();
        assert_eq!(write(&again, &ask).unwrap(), kept);
        assert_eq!(ask.input.unwrap().as_str(), "{\"n\":  1e400}");
        assert_eq!(
            (&ask.files[0].content[..], &ask.stdin.unwrap()[..]),
            (&b"\0\xff"[..], &b"\xfe"[..])
        );
    }

    #[test]
    fn what_nobody_could_find_again_is_refused() {
        let (what, mut ask) = asked();
        ask.blobs = vec![AskedBlob::Content(tempfile::tempfile().unwrap())];
        assert!(write(&what, &ask).is_err());
        let archive = What::Archive {
            archive: tempfile::tempfile().unwrap(),
            fallback_name: None,
        };
        assert!(write(&archive, &Ask::default()).is_err());
    }

    /// One bit for each field; the lowest chooses between code and a skill.
    const FIELDS: u32 = 11;

    fn request(fields: u32) -> (What, Ask) {
        let has = |bit: u32| fields & (1 << bit) != 0;
        let what = if has(0) {
            What::Skill {
                name: "team.demo".parse().unwrap(),
                selector: "1.2.0-rc.1".parse().unwrap(),
            }
        } else {
            code(Language::Node, "console.log(\"é\\n\")\r\n")
        };
        let file = |path: &str, content: &'static [u8]| InputFile {
            path: path.to_owned(),
            content: Bytes::from_static(content),
        };
        let mut ask = Ask::default();
        if has(1) {
            let odd = "{\"n\":  1e400, \"b\" :[ 1.0,-0 ,9007199254740993.10] ,\"\\u00e9\\/\":\"é\" }";
            ask.input = JsonText::parse(odd.as_bytes()).ok();
        }
        if has(2) {
            ask.args = vec!["-v".to_owned(), "ü \"x\"".to_owned(), String::new()];
        }
        if has(3) {
            ask.files = vec![
                file("b.txt", b"\0\xff"),
                file("a/b", b""),
                file("b.txt", b"later"),
            ];
        }
        if has(4) {
            ask.blobs = vec![
                AskedBlob::Kept(Digest::of(b"one")),
                AskedBlob::Kept(Digest::of(b"2")),
            ];
        }
        if has(5) {
            ask.script = Some("scripts/a.py".to_owned());
        }
        if has(6) {
            ask.stdin = Some(Bytes::from_static(b"\xfe\0text"));
        }
        if has(7) {
            ask.mount_skills = vec!["other@latest".parse().unwrap(), "a.b@1.0.0".parse().unwrap()];
        }
        if has(8) {
            ask.requirements = vec!["pandas>=2".to_owned(), "lodash@^4".to_owned()];
        }
        if has(9) {
            ask.timeout = Some(Duration::from_micros(1_500_999));
        }
        if has(10) {
            ask.callback_url = Some("https://hooks.example/?a=1&b=\"".to_owned());
        }
        (what, ask)
    }

    fn code(language: Language, text: &str) -> What {
        What::Code(CalledCode {
            text: text.to_owned(),
            language,
        })
    }

    /// Values that one request cannot show together.
    fn special_requests() -> Vec<(What, Ask)> {
        let mut requests = Vec::new();
        for input in [
            "null",
            " [1,  2]\n",
            "1E+400",
            "{}",
            "\"\\ud83d\\ude00\"",
            "{\"a\":1,\"a\":2}",
        ] {
            let (what, mut ask) = request(1);
            ask.input = JsonText::parse(input.as_bytes()).ok();
            requests.push((what, ask));
        }
        for selector in ["latest", "1.2.0", &Digest::of(b"skill").to_string()] {
            let what = What::Skill {
                name: "demo".parse().unwrap(),
                selector: selector.parse().unwrap(),
            };
            requests.push((what, Ask::default()));
        }
        for language in [Language::Python, Language::Node, Language::Bash] {
            requests.push((code(language, ""), Ask::default()));
        }
        for timeout in [Duration::ZERO, Duration::from_secs(30), Duration::MAX] {
            let (what, mut ask) = request(0);
            ask.timeout = Some(timeout);
            requests.push((what, ask));
        }
        let (what, mut ask) = request(0);
        ask.stdin = Some(Bytes::new());
        requests.push((what, ask));
        requests
    }

    /// The queue of an older version is read after an upgrade, and these bytes are what an idempotency key stands for.
    #[test]
    fn writes_the_bytes_of_earlier_versions() {
        let write = |(what, ask): &(What, Ask)| String::from_utf8(write(what, ask).unwrap()).unwrap();
        let all_fields = (1 << FIELDS) - 1;
        let alone = (1..FIELDS).flat_map(|bit| [1 << bit, 1 | 1 << bit]);
        let shown = [0, 1, all_fields - 1, all_fields].into_iter().chain(alone);
        let mut lines: Vec<_> = shown.map(|fields| write(&request(fields))).collect();
        lines.extend(special_requests().iter().map(write));
        let combinations: Vec<_> = (0..=all_fields).map(|fields| write(&request(fields))).collect();
        lines.push(Digest::of(combinations.join("\n").as_bytes()).to_string());
        let golden = include_str!("../../tests/baseline/queued-requests.txt");
        assert_eq!(lines.join("\n") + "\n", golden);
    }
}
