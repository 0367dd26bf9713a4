//! Commands for the shims that call code of a request or a function of a skill.

use crate::engine::plan::{self, PlannedRun};
use crate::engine::{RunSpec, Settings};
use crate::error::Error;
use crate::execution::{AskedLimits, Workdir};
use crate::ids::{Digest, Tenant};
use crate::sandbox::{Collect, Job, ProgramRun};
use crate::skill::{Function, Language, Resources};

pub(super) fn plan(
    tenant: &Tenant,
    code: String,
    spec: &RunSpec,
    settings: &Settings,
) -> Result<PlannedRun, Error> {
    if spec.script.is_some() {
        return Err(Error::invalid("script: only for skills; omit it with code"));
    }
    if spec.workdir == Some(Workdir::Skill) {
        return Err(Error::invalid(
            "workdir: `skill` is only for scripts of skills; omit it with code",
        ));
    }
    let language = spec.language.unwrap_or(Language::Python);
    let digest = Digest::of(code.as_bytes());
    // Editors on Windows begin a file with a byte order mark, which not every interpreter accepts.
    let code = match code.strip_prefix('\u{feff}') {
        Some(code) => code.to_owned(),
        None => code,
    };
    let mut argv: Vec<_> = match language {
        Language::Python => vec!["python3", PYTHON, "code"],
        Language::Node => vec!["node", NODE, "code"],
        Language::Bash => vec!["bash", CODE],
    }
    .into_iter()
    .map(ToOwned::to_owned)
    .collect();
    argv.extend(spec.args.iter().cloned());
    let image = plan::approve(settings.images.of(language), None, settings)?;
    let base = plan::job(tenant, image, spec, settings)?;
    let program = ProgramRun {
        argv,
        code: Some(code),
        env: plan::environment(&base.program.input).into(),
        stdin: plan::stdin_unless_input(spec),
        // Code saves files in its working directory.
        collect: Collect::Workspace,
        ..base.program
    };
    let job = Job {
        program,
        recurs: true,
        ..base
    };
    Ok(PlannedRun {
        asked: AskedLimits::new(&Resources::default(), None, spec.timeout),
        ..PlannedRun::new(tenant.clone(), digest, job, language)
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

/// Paths at which the guest writes the shims.
const PYTHON: &str = "/sandbox/runtime/_skillbox/main.py";
const NODE: &str = "/sandbox/runtime/_skillbox/main.mjs";
const CODE: &str = "/sandbox/code";
