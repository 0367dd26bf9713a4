//! The URIs of resources: files of skills (`skill://`) and parts of executions (`skillbox://`).

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::execution::ResultForm;
use crate::ids::ExecutionId;
use crate::skill::{Selector, SkillName, SkillRef};

/// A resource of this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResourceUri {
    /// A file of a skill; an empty path is its folder.
    Skill {
        skill: SkillRef,
        path: String,
    },
    Execution {
        id: ExecutionId,
        part: ExecutionPart,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExecutionPart {
    File(String),
    Output,
    Stdout,
    Stderr,
    Result(usize, ResultForm),
}

/// The first segment of the URIs of versions, so that no listed skill can have this name.
pub(super) const VERSIONS: &str = "versions";
pub(super) const SKILL_MD: &str = "SKILL.md";
const SKILL: &str = "skill://";
const EXECUTION: &str = "skillbox://executions/";

/// Escapes all but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl FromStr for ResourceUri {
    type Err = ();

    fn from_str(uri: &str) -> Result<Self, ()> {
        if uri.contains(['?', '#']) {
            return Err(());
        }
        let segments = |rest: &str| -> Result<Vec<String>, ()> {
            let decoded = |segment| percent_decode_str(segment).decode_utf8().map(String::from);
            let segments: Result<Vec<_>, _> = rest.split('/').map(decoded).collect();
            segments.map_err(drop)
        };
        if let Some(rest) = uri.strip_prefix(SKILL) {
            return skill(&segments(rest)?).ok_or(());
        }
        execution(&segments(uri.strip_prefix(EXECUTION).ok_or(())?)?).ok_or(())
    }
}

fn skill(segments: &[String]) -> Option<ResourceUri> {
    let (selector, name, path) = match segments {
        [first, version, name, path @ ..] if first == VERSIONS => {
            (Selector::Version(version.parse().ok()?), name, path)
        }
        [name, path @ ..] => (Selector::Latest, name, path),
        [] => return None,
    };
    let name: SkillName = name.parse().ok()?;
    Some(ResourceUri::Skill {
        skill: SkillRef { name, selector },
        path: joined(path)?,
    })
}

fn execution(segments: &[String]) -> Option<ResourceUri> {
    let (id, rest) = segments.split_first()?;
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let part = match words[..] {
        ["output"] => ExecutionPart::Output,
        ["stdout"] => ExecutionPart::Stdout,
        ["stderr"] => ExecutionPart::Stderr,
        ["results", n, form] => ExecutionPart::Result(
            n.parse().ok()?,
            ResultForm::ALL.into_iter().find(|one| one.as_str() == form)?,
        ),
        ["files", _, ..] => ExecutionPart::File(joined(&rest[1..])?),
        _ => return None,
    };
    let id = id.parse().ok()?;
    Some(ResourceUri::Execution { id, part })
}

/// A path; `None` if a segment contains a slash, since two URIs would name one file.
fn joined(segments: &[String]) -> Option<String> {
    let whole = segments.iter().all(|segment| !segment.contains('/'));
    whole.then(|| segments.join("/").trim_end_matches('/').to_owned())
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skill { skill, path } => {
                f.write_str(SKILL)?;
                match &skill.selector {
                    Selector::Latest => {}
                    version @ (Selector::Version(_) | Selector::Digest(_)) => {
                        write!(
                            f,
                            "{VERSIONS}/{}/",
                            utf8_percent_encode(&version.to_string(), SEGMENT)
                        )?;
                    }
                }
                write!(f, "{}/{}", skill.name, escaped(path))
            }
            Self::Execution { id, part } => {
                write!(f, "{EXECUTION}{id}/")?;
                match part {
                    ExecutionPart::File(path) => write!(f, "files/{}", escaped(path)),
                    ExecutionPart::Output => f.write_str("output"),
                    ExecutionPart::Stdout => f.write_str("stdout"),
                    ExecutionPart::Stderr => f.write_str("stderr"),
                    ExecutionPart::Result(n, form) => write!(f, "results/{n}/{form}"),
                }
            }
        }
    }
}

fn escaped(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| utf8_percent_encode(segment, SEGMENT).to_string());
    segments.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_each_kind_of_uri() {
        let id = ExecutionId::generate();
        for uri in [
            "skill://pdf/SKILL.md".to_owned(),
            "skill://pdf/".to_owned(),
            "skill://pdf/scripts/a%20b%3F.py".to_owned(),
            "skill://versions/1.2.0/pdf/SKILL.md".to_owned(),
            "skill://versions/0.0.0%2B0123456789ab/pdf/SKILL.md".to_owned(),
            format!("skillbox://executions/{id}/files/out/%C3%BC.png"),
            format!("skillbox://executions/{id}/output"),
            format!("skillbox://executions/{id}/stdout"),
            format!("skillbox://executions/{id}/stderr"),
            format!("skillbox://executions/{id}/results/3/png"),
        ] {
            let read: ResourceUri = uri.parse().unwrap_or_else(|()| panic!("{uri}"));
            assert_eq!(read.to_string(), uri);
        }
    }

    #[test]
    fn rejects_what_names_no_resource() {
        let id = ExecutionId::generate();
        for wrong in [
            "",
            "skill://",
            "skill:///SKILL.md",
            "skill://Pdf/SKILL.md",
            "skill://pdf/a%2Fb",
            "skill://pdf/SKILL.md?x",
            "skill://versions/latest/pdf/SKILL.md",
            "file:///etc/passwd",
            "skillbox://executions/1/output",
            &format!("skillbox://executions/{id}"),
            &format!("skillbox://executions/{id}/files"),
            &format!("skillbox://executions/{id}/files/a%2f..%2fb"),
            &format!("skillbox://executions/{id}/results/x/png"),
        ] {
            assert_eq!(wrong.parse::<ResourceUri>(), Err(()), "{wrong}");
        }
    }
}
