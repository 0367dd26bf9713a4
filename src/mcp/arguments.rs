//! Arguments of tools as requests for executions.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::skills::Skill;
use crate::api::{CreateExecution, Mode, parse_json};
use crate::engine::RunSpec;
use crate::error::Error;
use crate::skill::{Dialect, takes_objects};

/// Members of [`CreateExecution`] that `run_code` and `run_skill` offer, beside their first.
const RUN_MEMBERS: [&str; 8] = [
    "input",
    "args",
    "files",
    "stdin",
    "mount_skills",
    "requirements",
    "timeout",
    "blobs",
];
pub(super) const CODE_MEMBERS: [&str; 2] = ["code", "language"];
pub(super) const SKILL_MEMBERS: [&str; 4] = ["skill", "version", "script", "workdir"];
/// Arguments of the tool of a skill that is a set of scripts.
const TOOLBOX_MEMBERS: [&str; 5] = ["script", "args", "stdin", "files", "requirements"];

/// The members of a JSON object with their text.
type Members = BTreeMap<String, Box<RawValue>>;

/// A request of `run_code` or `run_skill`, whose own members are `own`; the first is required.
pub(super) fn run_request(arguments: &str, own: &[&str]) -> Result<RunSpec, Error> {
    let members = members(arguments, own.iter().chain(&RUN_MEMBERS).copied())?;
    if !members.contains_key(own[0]) {
        return Err(Error::invalid(format!("{}: missing; name it", own[0])));
    }
    spec(&members)
}

/// A call of the tool of a skill.
pub(super) fn skill_request(skill: &Skill, arguments: &str) -> Result<RunSpec, Error> {
    let name = &skill.summary.name;
    let mut request = match skill.summary.dialect {
        Dialect::Toolbox => {
            let given = members(arguments, TOOLBOX_MEMBERS)?;
            if !given.contains_key("script") {
                return Err(Error::invalid("script: missing; name one of the tool's `enum`"));
            }
            given
        }
        Dialect::Program | Dialect::Function | Dialect::Instructions => {
            let input = match takes_objects(skill.input_schema.as_ref()) {
                true => raw(arguments)?,
                false => members(arguments, ["input"])?
                    .remove("input")
                    .ok_or_else(|| Error::invalid("input: missing; send it as the only argument"))?,
            };
            Members::from([("input".to_owned(), input)])
        }
    };
    request.insert("skill".to_owned(), raw(&json!(name).to_string())?);
    spec(&request)
}

fn spec(members: &Members) -> Result<RunSpec, Error> {
    let text = serde_json::to_string(members).map_err(Error::internal)?;
    let body: CreateExecution = parse_json(text.as_bytes())?;
    debug_assert_eq!(body.mode, Mode::Sync, "no tool offers the mode");
    RunSpec::try_from(body)
}

/// The members of `text`, each of which must be one of `known`.
fn members<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Result<Members, Error> {
    let members: Members = parse_json(text.as_bytes())?;
    let known: Vec<&str> = known.into_iter().collect();
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(members),
        Some(unknown) => {
            let unknown: String = unknown.chars().take(80).collect();
            let message = format!("{unknown}: unknown argument; the tool takes {}", known.join(", "));
            Err(Error::invalid(message))
        }
    }
}

fn raw(text: &str) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(text.to_owned()).map_err(Error::internal)
}

/// The schema of a tool that runs something.
pub(super) fn run_schema(own: &[&str]) -> Value {
    let mut schema: Value = serde_json::from_str(include_str!("run_schema.json")).expect("the file is JSON");
    let offered = |name: &String| own.contains(&name.as_str()) || RUN_MEMBERS.contains(&name.as_str());
    if let Value::Object(properties) = &mut schema {
        properties.retain(|name, _| offered(name));
    }
    json!({ "type": "object", "properties": schema, "required": [own[0]], "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use utoipa::PartialSchema as _;

    use super::*;

    #[test]
    fn schema_describes_members_of_a_request_only() {
        let documented = serde_json::to_value(CreateExecution::schema()).unwrap();
        for own in [&CODE_MEMBERS[..], &SKILL_MEMBERS] {
            let schema = run_schema(own);
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), own.len() + RUN_MEMBERS.len());
            for name in properties.keys() {
                assert!(documented["properties"][name].is_object(), "{name}");
            }
            jsonschema::validator_for(&schema).unwrap();
        }
    }

    #[test]
    fn names_the_wrong_argument() {
        let code = |arguments: &str| run_request(arguments, &CODE_MEMBERS).unwrap_err().to_string();
        assert_eq!(code("{}"), "code: missing; name it");
        assert!(code("{\"code\": \"\", \"mode\": \"async\"}").starts_with("mode: unknown argument"));
        assert!(code("{\"code\": 1}").starts_with("code: invalid type"));
        assert!(code("{\"code\": \"\", \"language\": \"cobol\"}").starts_with("language: "));
        assert!(code("{\"code\": \"\", \"skill\": \"a\"}").starts_with("skill: unknown argument"));
    }

    ///
    #[test]
    fn keeps_numbers_as_they_were_sent() {
        let arguments = "{\"code\": \"\", \"input\": {\"n\": 9007199254740993.10}}";
        let spec = run_request(arguments, &CODE_MEMBERS).unwrap();
        assert_eq!(spec.input.unwrap().as_str(), "{\"n\": 9007199254740993.10}");
    }
}
