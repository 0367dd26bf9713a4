//! The rules of texts in the OpenAPI document. A field names its rule as a `format`; the document has the pattern and the
//! lengths instead, which every generator of clients understands.

use serde_json::{Map, Value};

use crate::limits;

/// How a text is written: the same rule as that of the type that reads it.
struct TextFormat {
    name: &'static str,
    pattern: &'static str,
    /// Where the number of characters has a limit.
    chars_max: Option<usize>,
}

macro_rules! label {
    () => {
        "[a-z0-9][a-z0-9-]*"
    };
}

macro_rules! skill_name {
    () => {
        concat!(label!(), r"(\.", label!(), ")*")
    };
}

/// Semantic versions, with numbers of at most 19 digits.
macro_rules! version {
    () => {
        concat!(
            version!(number),
            r"\.",
            version!(number),
            r"\.",
            version!(number),
            r"(-((0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?",
            r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
        )
    };
    (number) => {
        "(0|[1-9][0-9]{0,18})"
    };
}

macro_rules! digest {
    () => {
        "sha256:[0-9a-f]{64}"
    };
}

macro_rules! selector {
    () => {
        concat!("(latest|", digest!(), "|", version!(), ")")
    };
}

/// Begins a text of 65 characters that is no digest.
macro_rules! longer_than_version {
    () => {
        "[^:]{65}"
    };
}

const DIGEST_CHARS: usize = 71;

const FORMATS: &[TextFormat] = &[
    TextFormat {
        name: "skill-name",
        pattern: concat!("^", skill_name!(), "$"),
        chars_max: Some(limits::SKILL_NAME_CHARS_MAX),
    },
    TextFormat {
        name: "version",
        pattern: concat!("^", version!(), "$"),
        chars_max: Some(limits::VERSION_CHARS_MAX),
    },
    TextFormat {
        name: "digest",
        pattern: concat!("^", digest!(), "$"),
        chars_max: Some(DIGEST_CHARS),
    },
    TextFormat {
        name: "selector",
        // A version is shorter than a digest.
        pattern: concat!("^(?!", longer_than_version!(), ")", selector!(), "$"),
        chars_max: Some(DIGEST_CHARS),
    },
    TextFormat {
        name: "skill-reference",
        pattern: concat!(
            "^(?![^@]{65})(?!.*@",
            longer_than_version!(),
            ")",
            skill_name!(),
            "(@",
            selector!(),
            ")?$"
        ),
        chars_max: Some(limits::SKILL_NAME_CHARS_MAX + 1 + DIGEST_CHARS),
    },
    TextFormat {
        name: "tenant",
        pattern: concat!("^", label!(), "$"),
        chars_max: Some(32),
    },
    TextFormat {
        name: "secret-name",
        pattern: "^[A-Za-z_][A-Za-z0-9_]*$",
        chars_max: Some(limits::SECRET_NAME_CHARS_MAX),
    },
    TextFormat {
        name: "idempotency-key",
        pattern: "^[!-~]+$",
        chars_max: Some(255),
    },
    TextFormat {
        name: "page-token",
        pattern: "^[A-Za-z0-9_-]+$",
        chars_max: Some(limits::CURSOR_CHARS_MAX),
    },
    TextFormat {
        name: "base64",
        // Padding may be incomplete. The bits beyond the last byte are 0.
        pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]={0,2}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=?)?$",
        chars_max: None,
    },
    TextFormat {
        name: "event-id",
        pattern: "^([0-9]{1,19}-[0-9]{1,19}-[0-9]{1,19}-(start|queued|running|result|end))?$",
        chars_max: Some(100),
    },
    TextFormat {
        name: "change-id",
        pattern: "^([0-9]{1,19}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$",
        chars_max: Some(56),
    },
];

/// Replaces the formats of this module in a schema, and in all schemas within, by their patterns and lengths.
pub(super) fn replace(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let format = members.get("format").and_then(Value::as_str);
            if let Some(format) = FORMATS.iter().find(|known| Some(known.name) == format) {
                members.remove("format");
                format.describe(members);
            }
            members.values_mut().for_each(replace);
        }
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl TextFormat {
    fn describe(&self, schema: &mut Map<String, Value>) {
        let inner = ["items", "additionalProperties"]
            .into_iter()
            .find(|inner| schema.get(*inner).is_some_and(Value::is_object));
        let text = match inner.and_then(|inner| schema.get_mut(inner)) {
            Some(Value::Object(inner)) => inner,
            _ => schema,
        };
        text.insert("pattern".to_owned(), self.pattern.into());
        if let Some(chars_max) = self.chars_max {
            text.insert("maxLength".to_owned(), chars_max.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use serde_json::json;

    use super::*;
    use crate::engine::ChangeId;
    use crate::execution::Bookmark;
    use crate::ids::{Digest, IdempotencyKey, Tenant};
    use crate::skill::{SecretName, Selector, SkillName, SkillRef, Version};
    use crate::store::Cursor;

    /// Whether each text satisfies the documented rule, next to whether the server accepts it.
    fn compare<T: FromStr>(name: &str, valid: &[&str], invalid: &[&str]) {
        let mut schema = json!({"type": "string", "minLength": 1, "format": name});
        replace(&mut schema);
        assert!(schema.get("format").is_none(), "{name}");
        let schema = jsonschema::validator_for(&schema).unwrap();
        for (texts, expected) in [(valid, true), (invalid, false)] {
            for text in texts {
                assert_eq!(
                    schema.is_valid(&json!(text)),
                    expected,
                    "{name}, documented: {text:?}"
                );
                assert_eq!(text.parse::<T>().is_ok(), expected, "{name}, parsed: {text:?}");
            }
        }
    }

    #[test]
    fn documented_patterns_match_what_the_server_accepts() {
        let digest = format!("sha256:{}", "0af".repeat(22).split_at(64).0);
        let digest = digest.as_str();
        let upper = digest.to_uppercase();
        let long = "a".repeat(65);
        let long = long.as_str();
        compare::<Digest>(
            "digest",
            &[digest],
            &["", "sha256:", &digest[1..], &upper, "latest"],
        );
        let names = [
            "a",
            "data-analysis",
            "salesforce.leads",
            "0",
            "a-",
            long.split_at(64).0,
        ];
        let no_names = ["", "-a", "a.", ".a", "a..b", "A", "a_b", "a b", "ä", "a\n", long];
        compare::<SkillName>("skill-name", &names, &no_names);
        let versions = ["1.2.0", "0.0.0-rc.1+build.5", "1.0.0-0a", "1.0.0--", "10.20.30"];
        let no_versions = [
            "", "1", "1.2", "01.2.0", "1.2.0-", "1.2.0-01", "v1.2.0", "1.2.0+", "1.2.0\n", "latest",
        ];
        compare::<Version>("version", &versions, &no_versions);
        let long_version = format!("1.2.0+{}", "0".repeat(59));
        compare::<Selector>(
            "selector",
            &["latest", "1.2.0-rc.1", digest],
            &["", "Latest", "1.2", "sha256:0", &long_version],
        );
        let by_digest = format!("{}@{digest}", long.split_at(64).0);
        let references = ["a", "a@latest", "a-b@1.2.0", by_digest.as_str()];
        let (long_name, long_selector) = (format!("{long}@1.2.0"), format!("a@{long_version}"));
        compare::<SkillRef>(
            "skill-reference",
            &references,
            &[
                "",
                "a@",
                "@1.2.0",
                "a@1",
                "a@@1.2.0",
                "a b",
                long,
                &long_name,
                &long_selector,
            ],
        );
        compare::<Tenant>(
            "tenant",
            &["default", "0-a"],
            &["", "-a", "A", "a.b", &long[..33]],
        );
        compare::<SecretName>(
            "secret-name",
            &["API_TOKEN", "_a1"],
            &["", "1A", "A-B", "Ä", long],
        );
        compare::<IdempotencyKey>(
            "idempotency-key",
            &["!", "a~b"],
            &["", "a b", "ü", "a\n", &"a".repeat(256)],
        );
    }

    #[test]
    fn documented_patterns_of_event_ids_match_what_the_server_accepts() {
        let position = Bookmark::default().to_string();
        let ids = [position.as_str(), "120-0-3-running", "1-2-3-end"];
        compare::<Bookmark>("event-id", &ids, &["1-2-3", "1-2-3-x", "a-2-3-end", "1-2-3-end-"]);
        let process = "019a0000-0000-7000-8000-000000000000";
        let [id, signed, long] = ["42", "+1", "-1"].map(|number| format!("{number}-{process}"));
        compare::<ChangeId>(
            "change-id",
            &[&id],
            &["42", process, &signed, &long, &format!("{id}0")],
        );
    }

    #[test]
    fn documented_pattern_of_base64_matches_what_the_server_accepts() {
        let mut files = json!({"additionalProperties": {"type": "string"}, "format": "base64"});
        replace(&mut files);
        let schema = jsonschema::validator_for(&files).unwrap();
        for (content, expected) in [
            ("", true),
            ("aGk=", true),
            ("aGk", true),
            ("aA==", true),
            ("aA", true),
            ("aGFs", true),
            ("aGFsbG8=", true),
            ("a", false),
            ("aB==", false),
            ("aGl=", false),
            ("aA=", true),
            ("aGFs=", false),
            ("aGk==", false),
            ("aGk\n", false),
            ("a_==", false),
        ] {
            let files = json!({"a": content});
            assert_eq!(schema.is_valid(&files), expected, "documented: {content:?}");
            let body = json!({"code": "", "files": files});
            let read = serde_json::from_value::<crate::api::CreateExecution>(body);
            assert_eq!(read.is_ok(), expected, "read: {content:?}");
        }
    }

    /// A token is also checked against its list, which no pattern can tell.
    #[test]
    fn documented_pattern_of_page_tokens_excludes_only_what_the_server_rejects() {
        let invalid = ["", "a b", "a=", "a/b", "ü", &"a".repeat(257)];
        compare::<Cursor>("page-token", &["AAAAAAAAAAAx"], &invalid);
    }
}
