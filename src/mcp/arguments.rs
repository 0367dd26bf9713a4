//! Arguments of tools as requests for executions.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::skills::Skill;
use crate::api::{CreateExecution, parse_json, safe_message};
use crate::engine::RunSpec;
use crate::error::Error;
use crate::execution::JsonText;
use crate::skill::{Dialect, Selector, takes_objects};

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
    let known: Vec<&str> = own.iter().chain(&RUN_MEMBERS).copied().collect();
    let members = members(arguments, &known)?;
    if !members.contains_key(own[0]) {
        return Err(Error::invalid(format!("{}: missing; name it", own[0])));
    }
    RunSpec::try_from(parse_json::<CreateExecution>(arguments.as_bytes())?)
}

/// A call of the tool of a skill.
pub(super) fn skill_request(skill: &Skill, arguments: &str) -> Result<RunSpec, Error> {
    let name = &skill.summary.name;
    if skill.summary.dialect == Dialect::Toolbox {
        if !members(arguments, &TOOLBOX_MEMBERS)?.contains_key("script") {
            return Err(Error::invalid("script: missing; name one of the tool's `enum`"));
        }
        let body: CreateExecution = parse_json(arguments.as_bytes())?;
        let skill = Some(name.clone());
        return RunSpec::try_from(CreateExecution { skill, ..body });
    }
    let input = match takes_objects(skill.input_schema.as_ref()) {
        true => JsonText::parse(arguments.as_bytes()),
        false => {
            let input = members(arguments, &["input"])?.remove("input");
            let missing = || Error::invalid("input: missing; send it as the only argument");
            JsonText::from_raw(input.ok_or_else(missing)?)
        }
    };
    let input = input.map_err(|error| Error::invalid(format!("input: {error}")))?;
    Ok(RunSpec {
        input: Some(input),
        ..RunSpec::of_skill(name.clone(), Selector::Latest)
    })
}

/// The members of `text`, each of which must be one of `known`.
fn members(text: &str, known: &[&str]) -> Result<Members, Error> {
    let members: Members = parse_json(text.as_bytes())?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(members),
        Some(unknown) => {
            let message = format!("{unknown}: unknown argument; the tool takes {}", known.join(", "));
            Err(Error::invalid(safe_message(&message)))
        }
    }
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

    ///
    #[test]
    fn names_the_wrong_argument() {
        let code = |arguments: &str| run_request(arguments, &CODE_MEMBERS).unwrap_err().to_string();
        assert_eq!(code("{}"), "code: missing; name it");
        assert!(code("{\"code\": \"\", \"mode\": \"async\"}").starts_with("mode: unknown argument"));
        assert!(code("{\"code\": 1}").starts_with("code: invalid type"));
        assert!(code("{\"code\": \"\", \"language\": \"cobol\"}").starts_with("language: "));
        assert!(code("{\"code\": \"\", \"code\": \"\"}").contains("duplicate field `code`"));
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
