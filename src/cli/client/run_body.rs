//! One run as a server is asked for it.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::cli::failure::{Failure, Result};
use crate::engine::{Ask, CalledCode, What};

/// What is run, in a word and in the body.
pub(super) fn what(what: What) -> Result<(String, Value)> {
    match what {
        What::Skill { name, selector } => {
            let body = json!({ "skill": name, "version": selector });
            Ok((name.to_string(), body))
        }
        What::Code(CalledCode { text, language }) => {
            Ok(("code".to_owned(), json!({ "code": text, "language": language })))
        }
        What::Archive { .. } => Err(Failure::refused(
            "a server runs published skills only; push it first",
        )),
    }
}

/// The whole body: what is run, with what.
pub(super) fn body(what: Value, ask: &Ask) -> Result<String> {
    let base64 = base64::engine::general_purpose::STANDARD;
    let files: serde_json::Map<_, _> = ask
        .files
        .iter()
        .map(|file| (file.path.clone(), base64.encode(&file.content).into()))
        .collect();
    let mut body = what;
    body["args"] = json!(ask.args);
    body["files"] = files.into();
    body["requirements"] = json!(ask.requirements);
    if !ask.mount_skills.is_empty() {
        body["mount_skills"] = json!(ask.mount_skills);
    }
    if let Some(script) = &ask.script {
        body["script"] = script.as_str().into();
    }
    if let Some(stdin) = &ask.stdin {
        let text = std::str::from_utf8(stdin).map_err(|_| {
            Failure::refused("--stdin: a server takes text in UTF-8; send anything else by --file")
        })?;
        body["stdin"] = text.into();
    }
    if let Some(url) = &ask.callback_url {
        body["callback_url"] = url.as_str().into();
    }
    if let Some(timeout) = ask.timeout {
        body["timeout"] = timeout.as_secs_f64().into();
    }
    Ok(with_input(&body, ask.input.as_ref().map(|input| input.as_str())))
}

/// Adds the input as it was written: parsing it would change numbers that no parser can hold.
fn with_input(body: &serde_json::Value, input: Option<&str>) -> String {
    let text = body.to_string();
    match (text.strip_suffix('}'), input) {
        (Some(open), Some(input)) => format!("{open},\"input\":{input}}}"),
        (None, _) | (_, None) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A-04.
    #[test]
    fn the_input_is_sent_as_it_was_written() {
        let body = with_input(
            &json!({ "skill": "a", "files": {} }),
            Some("{\"n\": 9007199254740993.10}"),
        );
        assert_eq!(
            body,
            r#"{"skill":"a","files":{},"input":{"n": 9007199254740993.10}}"#
        );
    }
}
