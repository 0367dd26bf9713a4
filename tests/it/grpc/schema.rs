//! The schema against the REST API: every member of it is in the messages, or not for a reason.

use std::collections::BTreeSet;

use prost_reflect::Kind;
use serde_json::Value;
use skillbox::error::Code;

use super::client::SCHEMA;
use crate::http::client::{Call, TestServer};

/// Message, schema of the OpenAPI document, members that only that one has, and fields that only the message has.
const SAME: &[(&str, &str, &[&str], &[&str])] = &[
    (
        "RunSkillRequest",
        "CreateExecution",
        &["code", "language"],
        &["idempotency_key"],
    ),
    (
        "RunCodeRequest",
        "CreateExecution",
        &["skill", "version", "script", "workdir"],
        &["idempotency_key"],
    ),
    ("Execution", "Envelope", &[], &[]),
    ("ExecutionSummary", "Summary", &[], &[]),
    ("FileLink", "FileLink", &[], &[]),
    ("SkippedFile", "Skipped", &[], &[]),
    ("OutputBlob", "OutputBlob", &[], &[]),
    ("QueuePlace", "QueuePlace", &[], &[]),
    ("ExecutionKey", "ExecutionKey", &[], &[]),
    ("ExecutionLimits", "ExecutionLimits", &[], &[]),
    ("Limits", "AskedLimits", &[], &[]),
    ("Limits", "GrantedLimits", &[], &[]),
    ("Timings", "Timings", &[], &[]),
    ("Usage", "Usage", &[], &[]),
    ("LogLine", "LogLine", &[], &[]),
    ("Logs", "LogTexts", &[], &[]),
    ("StatusEvent", "StatusEvent", &[], &[]),
    ("EndEvent", "EndEvent", &[], &[]),
    ("SkillSummary", "SkillSummary", &[], &[]),
    ("Function", "Function", &[], &[]),
    ("Action", "Action", &[], &[]),
    ("Warning", "Warning", &[], &[]),
    // The type of the detail names what `type` names.
    ("Problem", "Problem", &["type"], &[]),
    ("Fault", "Fault", &[], &[]),
];

fn fields(message: &str) -> BTreeSet<String> {
    let name = format!("skillbox.v1.{message}");
    let found = SCHEMA
        .get_message_by_name(&name)
        .unwrap_or_else(|| panic!("{name}"));
    found.fields().map(|field| field.name().to_owned()).collect()
}

/// The members of a schema, with those of the schemas that it consists of.
fn members(document: &Value, schema: &Value) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys().cloned())
        .collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let named = part["$ref"]
            .as_str()
            .and_then(|name| document.pointer(name.trim_start_matches('#')));
        found.extend(members(document, named.unwrap_or(part)));
    }
    found
}

#[test]
fn messages_have_every_member_of_the_rest_api() {
    let document = skillbox::http::document();
    let of = |name: &str| members(&document, &document["components"]["schemas"][name]);
    for (message, schema, only_there, only_here) in SAME {
        let there: BTreeSet<_> = of(schema)
            .into_iter()
            .filter(|member| !only_there.contains(&member.as_str()))
            .collect();
        let here: BTreeSet<_> = fields(message)
            .into_iter()
            .filter(|field| !only_here.contains(&field.as_str()))
            .collect();
        assert!(!here.is_empty());
        assert_eq!(here, there, "{message} and {schema}");
    }
    let mut skill = fields("Skill");
    assert!(skill.remove("summary"));
    skill.extend(fields("SkillSummary"));
    assert_eq!(skill, of("Skill"));
}

/// A number that has another meaning breaks clients that were generated before.
#[test]
fn numbers_of_fields_are_those_recorded() {
    let mut lines = BTreeSet::new();
    for message in SCHEMA.all_messages() {
        for field in message.fields() {
            let kind = match field.kind() {
                Kind::Message(of) => of.full_name().to_owned(),
                Kind::Enum(of) => of.full_name().to_owned(),
                other => format!("{other:?}").to_lowercase(),
            };
            let many = if field.is_list() { "repeated " } else { "" };
            lines.insert(format!("{} {many}{kind} = {}", field.full_name(), field.number()));
        }
    }
    for values in SCHEMA.all_enums() {
        let values = values.values();
        lines.extend(values.map(|value| format!("{} = {}", value.full_name(), value.number())));
    }
    crate::baseline::assert_same_lines(&lines, "grpc.txt");
}

#[tokio::test]
async fn schema_is_served_and_names_every_code_of_a_status() {
    let server = TestServer::open().await;
    let reply = server.send(Call::get("/proto/skillbox/v1/skillbox.proto")).await;
    let file = include_str!("../../../proto/skillbox/v1/skillbox.proto");
    assert_eq!((reply.status.as_u16(), reply.text().as_str()), (200, file));
    let table = include_str!("../../../docs/GRPC.md");
    for code in Code::ALL {
        assert!(
            table.contains(&format!("`{}`", code.as_str())),
            "{}",
            code.as_str()
        );
    }
}
