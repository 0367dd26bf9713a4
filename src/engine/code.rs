//! How a shim of ours is told what to call: code that comes with a request, or a function of a skill.

use crate::engine::plan::{self, Plan};
use crate::engine::schemas::Schemas;
use crate::engine::{Ask, Settings};
use crate::error::{Code, Error};
use crate::limits;
use crate::sandbox::{Collect, Job};
use crate::skill::{Function, Language};

/// Code that comes with a request.
#[derive(Debug)]
pub struct CalledCode {
    /// Its text.
    pub text: String,
    /// What it is written in.
    pub language: Language,
}

impl CalledCode {
    /// Refuses what no shim could read.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.text.len() > limits::CODE_BYTES_MAX {
            let (bytes, max) = (self.text.len(), limits::CODE_BYTES_MAX);
            let message = format!("code has {bytes} bytes, the limit is {max}; put data into input or files");
            return Err(Error::new(Code::TooLarge, message));
        }
        Ok(())
    }
}

/// Plans one call of code.
pub(super) fn plan(code: CalledCode, ask: &Ask, settings: &Settings) -> Result<Plan, Error> {
    if ask.script.is_some() {
        return Err(Error::invalid(
            "script: names a file of a skill; leave it out with code",
        ));
    }
    let CalledCode { text, language } = code;
    // Editors on Windows begin a file with a mark that not every interpreter takes.
    let code = match text.strip_prefix('\u{feff}') {
        Some(code) => code.to_owned(),
        None => text,
    };
    let mut argv: Vec<_> = match language {
        Language::Python => vec!["python3", PYTHON, "code"],
        Language::Node => vec!["node", NODE, "code"],
        Language::Bash => vec!["bash", CODE],
    }
    .into_iter()
    .map(ToOwned::to_owned)
    .collect();
    argv.extend(ask.args.iter().cloned());
    let base = plan::job(
        plan::approve(settings.images.of(language), None, settings)?,
        ask,
        settings,
    )?;
    let job = Job {
        argv,
        code: Some(code),
        env: plan::environment(None, &base.input).into(),
        stdin: plan::stdin_unless_input(ask),
        // What code saves, it saves beside itself.
        collect: Collect::Workspace,
        recurs: true,
        ..base
    };
    Ok(Plan {
        job,
        language,
        entrypoint: None,
        // Code has none.
        schemas: Schemas::default(),
    })
}

/// The command that calls a function of a skill, if there is a shim for its language.
pub(super) fn function(function: &Function, language: Language) -> Option<Vec<String>> {
    let command = match language {
        Language::Python => ["python3", PYTHON],
        Language::Node => ["node", NODE],
        Language::Bash => return None,
    };
    let words = command
        .into_iter()
        .chain(["function", &function.module, &function.export]);
    Some(words.map(ToOwned::to_owned).collect())
}

/// Where the guest writes them.
const PYTHON: &str = "/sandbox/runtime/_skillbox/main.py";
const NODE: &str = "/sandbox/runtime/_skillbox/main.mjs";
const CODE: &str = "/sandbox/code";
