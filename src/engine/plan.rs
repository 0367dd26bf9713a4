//! Plans an execution from a skill and a request. Pure: the plan is a plain value.

use crate::engine::added_packages::AddedPackages;
use crate::engine::cache::Unpacked;
use crate::engine::run::{RecordedState, Watcher};
use crate::engine::schemas::Schemas;
use crate::engine::{OnDisconnect, RunSpec, Settings, clock, code};
use crate::error::Error;
use crate::execution::{AskedLimits, ExecutionKey, JsonText, ResourceLimits, Workdir};
use crate::ids::{Digest, ExecutionId, Tenant};
use crate::limits;
use crate::sandbox::{
    self, Collect, ImageOf, Job, JobKind, ProgramRun, ProgressSender, SandboxSpec, SkillFiles, Urgency,
};
use crate::secret::Mask;
use crate::skill::{
    Action, ApprovedImage, Called, Language, Manifest, Module, Resources, Script, SecretName, SkillName,
    Version,
};
use crate::webhook::CallbackUrl;

/// A skill with its files on this host.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) manifest: &'a Manifest,
    pub(super) version: &'a Version,
    pub(super) files: SkillFiles,
    pub(super) target: Target,
}

#[derive(Debug)]
pub(super) enum Target {
    /// The declared program or function.
    Declared,
    Script(Script),
    /// A function, by the path of its module.
    Module(Called),
}

impl Target {
    fn command(&self, manifest: &Manifest) -> Result<(Language, String, Vec<String>), Error> {
        let program = |language: Language, place: String| vec![language.interpreter().to_owned(), place];
        let (language, entrypoint) = match (self, manifest.language, &manifest.entrypoint) {
            (Self::Script(script), ..) => {
                let (language, path) = (script.language(), script.path());
                let place = format!("{}/{path}", folder_of_scripts(manifest));
                let argv = match script.module(&manifest.instructions) {
                    Some(module) => {
                        let (package, module) = match module {
                            Module::Found(module) => (String::new(), module),
                            Module::OfSkill(module) => {
                                (manifest.name.as_str().replace(['.', '-'], "_"), module)
                            }
                        };
                        let shim = program(language, PYTHON_MODULE.to_owned());
                        let called = [place, imported_from(manifest), package, module.to_owned()];
                        [shim, called.to_vec()].concat()
                    }
                    None => program(language, place),
                };
                return Ok((language, path.to_owned(), argv));
            }
            (Self::Module(called), ..) => (called.language, &called.entrypoint),
            (Self::Declared, Some(language), Some(entrypoint)) => (language, entrypoint),
            (Self::Declared, ..) => return Err(nothing_to_run(manifest)),
        };
        let function = match self {
            Self::Module(called) => Some(&called.function),
            Self::Declared | Self::Script(_) => manifest.function.as_ref(),
        };
        let argv = function
            .and_then(|function| code::function(function, language))
            .unwrap_or_else(|| program(language, format!("/skills/{}/{entrypoint}", manifest.name)));
        Ok((language, entrypoint.clone(), argv))
    }

    fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }
}

/// A checked and planned execution.
#[derive(Debug)]
pub(super) struct PlannedRun {
    pub(super) tenant: Tenant,
    /// `None` for code.
    pub(super) name: Option<SkillName>,
    pub(super) version: Option<Version>,
    /// Of the skill's files or the code.
    pub(super) digest: Digest,
    pub(super) job: Job,
    pub(super) asked: AskedLimits,
    pub(super) language: Language,
    /// The file of the skill that is run or called.
    pub(super) entrypoint: Option<String>,
    pub(super) schemas: Schemas,
    /// Declared by the skill, not yet granted.
    pub(super) secrets: Vec<SecretName>,
    pub(super) workdir: Workdir,
    /// Packages that were added to the skill and to mounted skills.
    pub(super) added: Vec<AddedPackages>,
    /// Packages of the request.
    pub(super) requirements: Vec<String>,
    pub(super) progress: Option<ProgressSender>,
    pub(super) accepted_at: jiff::Timestamp,
    pub(super) callback_url: Option<CallbackUrl>,
    pub(super) key: Option<ExecutionKey>,
    /// What is stored of the request.
    pub(super) kept_request: Option<bytes::Bytes>,
    pub(super) recorded: RecordedState,
    pub(super) on_disconnect: OnDisconnect,
    pub(super) watcher: Option<Watcher>,
    /// The files of an unpublished archive, removed after the execution.
    pub(super) _unpacked: Option<Unpacked>,
}

impl PlannedRun {
    pub(super) fn new(tenant: Tenant, digest: Digest, job: Job, language: Language) -> Self {
        Self {
            tenant,
            name: None,
            version: None,
            digest,
            job,
            asked: AskedLimits::default(),
            language,
            entrypoint: None,
            schemas: Schemas::default(),
            secrets: Vec::new(),
            workdir: Workdir::Request,
            added: Vec::new(),
            requirements: Vec::new(),
            progress: None,
            accepted_at: clock::now(),
            callback_url: None,
            key: None,
            kept_request: None,
            recorded: RecordedState::Nothing,
            on_disconnect: OnDisconnect::default(),
            watcher: None,
            _unpacked: None,
        }
    }

    /// A client follows from the start: what Python prints leaves it with each line, not when 8 KiB are there.
    pub(super) fn follow(&mut self, watcher: Option<Watcher>) {
        if watcher.is_some() && self.watcher.is_none() {
            self.job.program.env.prefix("PYTHONPATH", sandbox::FOLLOWED);
        }
        self.watcher = watcher;
    }

    pub(super) fn all_requirements(&self) -> Vec<String> {
        let added = self.added.iter().flat_map(|added| &added.requirements);
        added.chain(&self.requirements).cloned().collect()
    }

    pub(super) fn id(&self) -> ExecutionId {
        self.job.program.execution
    }
}

/// Fixed (P11). Folders of packages come last, so that packages cannot replace system programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/sandbox/runtime/bin:/sandbox/deps/bin:/node_modules/.bin";

/// The shim that runs a script as a module.
const PYTHON_MODULE: &str = "/sandbox/runtime/_skillbox/module.py";

/// Plans one execution. Rejects skills without a program and images that are not allowed.
pub(super) fn plan(subject: Subject<'_>, spec: &RunSpec, settings: &Settings) -> Result<PlannedRun, Error> {
    let Subject {
        tenant,
        manifest,
        version,
        files,
        target,
    } = subject;
    let digest = files.digest;
    let (language, entrypoint, mut argv) = target.command(manifest)?;
    let own_image = manifest
        .image
        .as_deref()
        .filter(|_| manifest.language.is_none_or(|own| own == language));
    let default = || {
        settings
            .images
            .of(image_language(manifest, language, &entrypoint))
    };
    let image = approve(own_image.unwrap_or_else(default), Some(manifest), settings)?;
    let workdir = workdir(&target, spec, manifest)?;
    let args_from = argv.len();
    argv.extend(spec.args.iter().cloned());
    let base = job(tenant, image, spec, settings)?;
    let mut env = skill_environment(manifest, version, &base.program.input);
    if target.is_script() {
        add_import_paths(&mut env, &imported_from(manifest), &entrypoint);
    }
    let sandbox = SandboxSpec {
        image_of: own_image.map_or(ImageOf::Language, |_| ImageOf::Skill),
        skill: Some(files),
        limits: ResourceLimits::clamp(
            &manifest.resources,
            manifest.timeout,
            spec.timeout,
            &settings.maxima,
        ),
        ..base.sandbox
    };
    let program = ProgramRun {
        argv,
        env: env.into(),
        stdin: if target.is_script() {
            stdin_unless_input(spec)
        } else {
            spec.stdin.clone()
        },
        collect: collect(&target, workdir, args_from),
        ..base.program
    };
    let job = Job {
        sandbox,
        program,
        ..base
    };
    // The schemas belong to the declared program, not to single scripts.
    let schemas = match target {
        Target::Declared => Schemas::of(manifest),
        Target::Script(_) | Target::Module(_) => Schemas::default(),
    };
    Ok(PlannedRun {
        name: Some(manifest.name.clone()),
        version: Some(version.clone()),
        asked: AskedLimits::new(&manifest.resources, manifest.timeout, spec.timeout),
        entrypoint: Some(entrypoint),
        schemas,
        workdir,
        secrets: manifest.permissions.secrets.clone(),
        ..PlannedRun::new(tenant.clone(), digest, job, language)
    })
}

/// With files of the request, a script that walks its working directory must find those alone.
fn workdir(target: &Target, spec: &RunSpec, manifest: &Manifest) -> Result<Workdir, Error> {
    match (target.is_script(), spec.workdir) {
        (true, Some(asked)) => Ok(asked),
        // A folder for results is nothing to work on.
        (true, None) if spec.files.iter().all(|file| file.folder().is_some()) => Ok(Workdir::Skill),
        (true, None) | (false, None | Some(Workdir::Request)) => Ok(Workdir::Request),
        (false, Some(Workdir::Skill)) => Err(Error::invalid(format!(
            "workdir: `skill` is for a `script`; the skill's own program finds its files in /skills/{}",
            manifest.name
        ))),
    }
}

fn collect(target: &Target, workdir: Workdir, args_from: usize) -> Collect {
    match workdir {
        Workdir::Skill => Collect::Workspace,
        Workdir::Request if target.is_script() => Collect::RequestWorkspace { args_from },
        Workdir::Request => Collect::Out,
    }
}

/// Where the guest copies a skill to run its scripts. They work in `/workspace`, next to their relative paths, as on
/// their author's machine.
fn folder_of_scripts(manifest: &Manifest) -> String {
    format!("/sandbox/skills/public/{}", manifest.name)
}

/// Where scripts import the skill's modules from: next to the request's files, or, if secrets are granted, from the
/// published skill.
fn imported_from(manifest: &Manifest) -> String {
    if manifest.permissions.secrets.is_empty() {
        folder_of_scripts(manifest)
    } else {
        format!("/skills/{}", manifest.name)
    }
}

/// Scripts import from the skill's folder (`from scripts.tables import rows`), their own folder and `src`. Installed
/// packages come first.
fn add_import_paths(env: &mut [(String, String)], skill: &str, script: &str) {
    for (_, value) in env.iter_mut().filter(|(key, _)| key == "PYTHONPATH") {
        *value += &format!(":{skill}");
        let folder = script.rsplit_once('/').map(|(folder, _)| folder);
        for folder in folder
            .into_iter()
            .chain(Some("src").filter(|src| folder != Some(src)))
        {
            *value += &format!(":{skill}/{folder}");
        }
    }
}

/// What every job takes from the request.
pub(super) fn job(
    tenant: &Tenant,
    image: ApprovedImage,
    spec: &RunSpec,
    settings: &Settings,
) -> Result<Job, Error> {
    let input = match &spec.input {
        Some(input) => input.clone(),
        None => JsonText::parse(b"{}").map_err(|error| Error::internal(error.to_string()))?,
    };
    Ok(Job {
        sandbox: SandboxSpec {
            tenant: tenant.clone(),
            image,
            image_of: ImageOf::Language,
            skill: None,
            mounted: Vec::new(),
            deps: Vec::new(),
            limits: ResourceLimits::clamp(&Resources::default(), None, spec.timeout, &settings.maxima),
        },
        program: ProgramRun {
            execution: ExecutionId::generate(),
            argv: Vec::new(),
            env: Vec::new().into(),
            mask: Mask::default(),
            input,
            code: None,
            stdin: None,
            files: spec.files.clone(),
            blobs: Vec::new(),
            collect: Collect::Out,
        },
        kind: JobKind::Run,
        recurs: false,
        urgency: Urgency::default(),
    })
}

/// Programs that read standard input must not read the default `{}`.
pub(super) fn stdin_unless_input(spec: &RunSpec) -> Option<bytes::Bytes> {
    match (&spec.stdin, &spec.input) {
        (Some(stdin), _) => Some(stdin.clone()),
        (None, None) => Some(bytes::Bytes::new()),
        (None, Some(_)) => None,
    }
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
        format!("skill `{name}` has no program; declare one in SKILL.md with `lang` or `entrypoint`")
    } else {
        let known = known.join(", ");
        format!("skill `{name}` has no default program; select one of its scripts with `script`: {known}")
    })
}

/// Maximum number of scripts in an error message.
pub(super) const SCRIPTS_NAMED: usize = 10;

/// The one place that approves and logs images.
pub(super) fn approve(
    asked: &str,
    skill: Option<&Manifest>,
    settings: &Settings,
) -> Result<ApprovedImage, Error> {
    let skill = skill.map_or("-", |manifest| manifest.name.as_str());
    match settings.allowlist.approve(asked) {
        Ok(image) => {
            tracing::debug!(skill, image = %image, "Approved image {image}");
            Ok(image)
        }
        Err(refused) => {
            tracing::warn!(skill, image = refused.image, "Refused image {}", refused.image);
            Err(Error::invalid(refused.to_string()))
        }
    }
}

/// A shell script runs in the image of the language of the skill's other scripts. Those images have bash.
fn image_language(manifest: &Manifest, language: Language, entrypoint: &str) -> Language {
    if language != Language::Bash {
        return language;
    }
    let others = manifest.actions.iter().filter(|action| action.path != entrypoint);
    called_by_shell(others).unwrap_or(language)
}

/// The language of scripts that a shell script calls. An image has one interpreter.
pub(super) fn called_by_shell<'a>(scripts: impl Iterator<Item = &'a Action> + Clone) -> Option<Language> {
    [Language::Python, Language::Node]
        .into_iter()
        .find(|other| scripts.clone().any(|script| script.language == *other))
}

/// The environment of a program, as documented for skill authors.
pub(super) fn environment(input: &JsonText) -> Vec<(String, String)> {
    let fixed = [
        ("PATH", PATH),
        ("HOME", "/workspace"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("PYTHONPATH", "/sandbox/runtime:/sandbox/deps"),
        // Files of the request lie in HOME.
        ("PYTHONNOUSERSITE", "1"),
        ("NODE_PATH", "/sandbox/runtime/node_modules:/node_modules"),
        // Without it npm retries its registry for over a minute.
        ("npm_config_offline", "true"),
        ("SANDBOX_INPUT_FILE", "/sandbox/input.json"),
        ("SANDBOX_OUTPUT", "/sandbox/out/output.json"),
        ("SANDBOX_FILES_DIR", "/sandbox/out/files"),
    ];
    let fixed = fixed.map(|(key, value)| (key.to_owned(), value.to_owned()));
    fixed
        .into_iter()
        .chain(inline_variable("SANDBOX_INPUT", input.as_str()))
        .collect()
}

fn skill_environment(manifest: &Manifest, version: &Version, input: &JsonText) -> Vec<(String, String)> {
    let mut env = environment(input);
    env.push(("SKILL_NAME".to_owned(), manifest.name.to_string()));
    env.push(("SKILL_VERSION".to_owned(), version.to_string()));
    env.extend(inline_variable("SKILL_INSTRUCTIONS", &manifest.instructions));
    env
}

/// Longer texts, or texts with NUL, are only in files.
fn inline_variable(key: &str, text: &str) -> Option<(String, String)> {
    let fits = text.len() <= limits::INLINE_TEXT_BYTES_MAX && !text.contains('\0');
    fits.then(|| (key.to_owned(), text.to_owned()))
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
            modules: Vec::new(),
            origins: std::collections::BTreeMap::new(),
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
    fn environment_has_only_documented_variables() {
        let version = "1.0.0".parse().unwrap();
        let env = skill_environment(&manifest(), &version, &JsonText::parse(b"{\"a\": 1}").unwrap());
        let keys: Vec<_> = env.iter().map(|(key, _)| key.as_str()).collect();
        let documented = "PATH HOME LANG TMPDIR PYTHONPATH PYTHONNOUSERSITE NODE_PATH npm_config_offline SANDBOX_INPUT_FILE \
             SANDBOX_OUTPUT SANDBOX_FILES_DIR SANDBOX_INPUT SKILL_NAME SKILL_VERSION SKILL_INSTRUCTIONS";
        assert_eq!(keys.join(" "), documented);
    }

    /// one variable above 131,057 bytes makes `execve` fail.
    #[test]
    fn passes_large_input_by_file_only() {
        let version = "1.0.0".parse().unwrap();
        let text = format!("\"{}\"", "x".repeat(limits::INLINE_TEXT_BYTES_MAX));
        let input = JsonText::parse(text.as_bytes()).unwrap();
        let env = skill_environment(&manifest(), &version, &input);
        assert!(env.iter().all(|(key, _)| key != "SANDBOX_INPUT"));
    }
}
