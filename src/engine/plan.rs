//! From a skill and a request to a job: pure, so that what runs can be read off a value.

use crate::engine::{Ask, Settings};
use crate::error::Error;
use crate::execution::{JsonText, ResourceLimits};
use crate::ids::ExecutionId;
use crate::limits;
use crate::sandbox::{Collect, ImageOf, Job, Packages, SkillFiles};
use crate::secret::Mask;
use crate::skill::{Action, ApprovedImage, Language, Manifest, Script, Version};

/// The skill that a job is made for.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) version: &'a Version,
    pub(super) files: SkillFiles,
    /// What is run instead of the skill's own program.
    pub(super) script: Option<&'a Script>,
}

/// A job, and what of it is recorded.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) job: Job,
    pub(super) language: Language,
}

/// Fixed by us; nobody else may set it (P11).
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Plans one execution. Refuses what has nothing to run and images that are not allowed.
pub(super) fn plan(subject: Subject<'_>, ask: &Ask, settings: &Settings) -> Result<Plan, Error> {
    let Subject {
        manifest,
        version,
        files,
        script,
    } = subject;
    let (language, entrypoint) = match (script, manifest.language, &manifest.entrypoint) {
        (Some(script), ..) => (script.language(), script.path()),
        (None, Some(language), Some(entrypoint)) => (language, entrypoint.as_str()),
        (None, ..) => return Err(nothing_to_run(manifest)),
    };
    let image = approve(manifest, language, settings)?;
    let mut argv = vec![
        language.interpreter().to_owned(),
        format!("/skills/{}/{entrypoint}", manifest.name),
    ];
    argv.extend(ask.args.iter().cloned());
    let input = match &ask.input {
        Some(input) => input.clone(),
        None => JsonText::parse(b"{}").map_err(|error| Error::internal(error.to_string()))?,
    };
    let job = Job {
        execution: ExecutionId::generate(),
        image,
        image_of: match manifest.image {
            Some(_) => ImageOf::Skill,
            None => ImageOf::Language,
        },
        env: environment(manifest, version, &input).into(),
        mask: Mask::default(),
        skill: Some(files),
        mounted: Vec::new(),
        deps: Vec::new(),
        argv,
        input,
        // A script that finds nothing on its standard input must not find an empty object there.
        stdin: match (&ask.stdin, script, &ask.input) {
            (Some(stdin), ..) => Some(stdin.clone()),
            (None, Some(_), None) => Some(bytes::Bytes::new()),
            (None, ..) => None,
        },
        files: ask.files.clone(),
        blobs: Vec::new(),
        collect: script.map_or(Collect::Out, |_| Collect::Workspace),
        limits: ResourceLimits::clamp(
            &manifest.resources,
            manifest.timeout,
            ask.timeout,
            &settings.maxima,
        ),
    };
    Ok(Plan { job, language })
}

fn nothing_to_run(manifest: &Manifest) -> Error {
    let name = &manifest.name;
    let known: Vec<_> = manifest
        .actions
        .iter()
        .take(SCRIPTS_NAMED)
        .map(|Action { path, .. }| path.as_str())
        .collect();
    Error::invalid(if known.is_empty() {
        format!(
            "skill `{name}` has no program that could be run; name one in SKILL.md by `lang` or `entrypoint`"
        )
    } else {
        let known = known.join(", ");
        format!("skill `{name}` has no program of its own; name one of its scripts in `script`: {known}")
    })
}

/// Scripts that an error names.
const SCRIPTS_NAMED: usize = 10;

/// Every decision about an image is made and logged here. A skill's own image is for its own language.
fn approve(manifest: &Manifest, language: Language, settings: &Settings) -> Result<ApprovedImage, Error> {
    let asked = manifest
        .image
        .as_deref()
        .filter(|_| manifest.language.is_none_or(|own| own == language))
        .unwrap_or_else(|| settings.images.of(language));
    match settings.allowlist.approve(asked) {
        Ok(image) => {
            tracing::debug!(skill = %manifest.name, image = %image, "Approved image {image}");
            Ok(image)
        }
        Err(refused) => {
            tracing::warn!(skill = %manifest.name, image = refused.image, "Refused image {}", refused.image);
            Err(Error::invalid(refused.to_string()))
        }
    }
}

/// The program's whole environment, as documented for skill authors.
fn environment(manifest: &Manifest, version: &Version, input: &JsonText) -> Vec<(String, String)> {
    let fixed = [
        ("PATH", PATH),
        ("HOME", "/workspace"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("PYTHONPATH", Packages::Python.folder()),
        ("NODE_PATH", "/node_modules"),
        ("SANDBOX_INPUT_FILE", "/sandbox/input.json"),
        ("SANDBOX_OUTPUT", "/sandbox/out/output.json"),
        ("SANDBOX_FILES_DIR", "/sandbox/out/files"),
        ("SKILL_NAME", manifest.name.as_str()),
    ];
    let mut env: Vec<_> = fixed
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    env.push(("SKILL_VERSION".to_owned(), version.to_string()));
    // Above the cap, and for text that no variable can hold, there is the file.
    for (key, text) in [
        ("SANDBOX_INPUT", input.as_str()),
        ("SKILL_INSTRUCTIONS", &manifest.instructions),
    ] {
        if text.len() <= limits::INLINE_TEXT_BYTES_MAX && !text.contains('\0') {
            env.push((key.to_owned(), text.to_owned()));
        }
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            name: "demo".parse().unwrap(),
            version: None,
            description: "Shows".to_owned(),
            language: Some(Language::Python),
            entrypoint: Some("scripts/main.py".to_owned()),
            dialect: crate::skill::Dialect::default(),
            function: None,
            permissions: crate::skill::Permissions::default(),
            actions: Vec::new(),
            image: None,
            timeout: None,
            resources: crate::skill::Resources::default(),
            input_schema: None,
            output_schema: None,
            license: None,
            compatibility: None,
            metadata: std::collections::BTreeMap::new(),
            allowed_tools: None,
            instructions: "Do it.".to_owned(),
            warnings: Vec::new(),
        }
    }

    /// P11, S-29: a checked-in list, so that a further variable is a decision.
    #[test]
    fn the_environment_holds_only_what_is_documented() {
        let version = "1.0.0".parse().unwrap();
        let env = environment(&manifest(), &version, &JsonText::parse(b"{\"a\": 1}").unwrap());
        let keys: Vec<_> = env.iter().map(|(key, _)| key.as_str()).collect();
        let documented = [
            "PATH",
            "HOME",
            "LANG",
            "TMPDIR",
            "PYTHONPATH",
            "NODE_PATH",
            "SANDBOX_INPUT_FILE",
            "SANDBOX_OUTPUT",
            "SANDBOX_FILES_DIR",
            "SKILL_NAME",
            "SKILL_VERSION",
            "SANDBOX_INPUT",
            "SKILL_INSTRUCTIONS",
        ];
        assert_eq!(keys, documented);
    }

    /// one variable above 131,057 bytes makes `execve` fail.
    #[test]
    fn a_large_input_comes_by_file_only() {
        let version = "1.0.0".parse().unwrap();
        let text = format!("\"{}\"", "x".repeat(limits::INLINE_TEXT_BYTES_MAX));
        let env = environment(&manifest(), &version, &JsonText::parse(text.as_bytes()).unwrap());
        assert!(env.iter().all(|(key, _)| key != "SANDBOX_INPUT"));
    }
}
