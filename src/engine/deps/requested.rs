//! Requested packages: from the files of the skill and of mounted skills, from headers of scripts and from the
//! request.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::engine::added_packages::AddedPackages;
use crate::engine::deps::RECIPE;
use crate::engine::plan::PlannedRun;
use crate::error::{Code, Error};
use crate::ids::Digest;
use crate::limits;
use crate::skill::{
    InvalidRequirement, Language, NodePackages, Prereleases, Requirements, SkillName, header_packages,
    package_list,
};

#[derive(Clone, Debug)]
pub(super) enum RequestedPackages {
    Python(Requirements),
    Node(NodePackages),
}

impl RequestedPackages {
    /// Identifies the packages and the image or interpreter they are installed for.
    pub(super) fn key(&self, base: &str) -> Digest {
        let mut text = format!(
            "skillbox-packages-{RECIPE}\n{base}\n{}\n",
            self.language().as_str()
        );
        match self {
            Self::Python(requirements) => {
                requirements.iter().for_each(|line| text += &format!("{line}\n"));
                // No package name starts with a hyphen.
                let constraints = requirements.constraints();
                constraints.for_each(|line| text += &format!("-c {line}\n"));
                if requirements.prereleases() == Prereleases::Taken {
                    text += "--pre\n";
                }
            }
            Self::Node(packages) => {
                let lock = packages.lock().unwrap_or_default();
                let parts = [packages.package_json(), lock].map(|part| Digest::of(part.as_bytes()));
                text += &format!("{}\n{}\n", parts[0], parts[1]);
            }
        }
        Digest::of(text.as_bytes())
    }

    /// Size of the lists, for the memory limit.
    fn bytes(&self) -> usize {
        match self {
            Self::Python(requirements) => {
                let lines = requirements.iter().chain(requirements.constraints());
                lines.map(str::len).sum()
            }
            Self::Node(packages) => packages.package_json().len() + packages.lock().map_or(0, str::len),
        }
    }

    pub(super) fn language(&self) -> Language {
        match self {
            Self::Python(_) => Language::Python,
            Self::Node(_) => Language::Node,
        }
    }

    pub(super) fn allows_prereleases(&self) -> bool {
        match self {
            Self::Python(requirements) => requirements.prereleases() == Prereleases::Taken,
            // A range includes them itself.
            Self::Node(_) => false,
        }
    }

    /// Human-readable list.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Python(requirements) => requirements.iter().map(ToOwned::to_owned).collect(),
            Self::Node(packages) => packages.names(),
        }
    }
}

/// Requested packages of runs whose request adds none. The files of a skill never change.
#[derive(Debug, Default)]
pub(super) struct KnownRequests(Mutex<HashMap<Digest, Vec<RequestedPackages>>>);

impl KnownRequests {
    fn find(&self, key: &Digest) -> Option<Vec<RequestedPackages>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).cloned()
    }

    fn keep(&self, key: Digest, wanted: &[RequestedPackages]) {
        if wanted.iter().map(RequestedPackages::bytes).sum::<usize>() > limits::PACKAGE_LIST_CACHED_BYTES_MAX
        {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= limits::PACKAGE_LISTS_CACHED_MAX {
            all.clear();
        }
        all.insert(key, wanted.to_vec());
    }
}

/// Requested packages of one language, or why they cannot be read.
type LanguageRequest = (Language, Result<RequestedPackages, Error>);

/// The packages that a planned run requests, at most one list per language; `requirements` are those of the request.
/// Every program gets packages of both languages, since it may call scripts of the other one.
pub(super) async fn wanted(
    plan: &PlannedRun,
    requirements: &[String],
    known_requests: &KnownRequests,
) -> Result<Vec<LanguageRequest>, Error> {
    let code = plan.job.program.code.as_ref();
    let code = code.filter(|text| plan.language == Language::Python && text.contains(HEADER));
    let key = (requirements.is_empty() && code.is_none()).then(|| content(plan));
    if let Some(known) = key.and_then(|key| known_requests.find(&key)) {
        return Ok(known
            .into_iter()
            .map(|wanted| (wanted.language(), Ok(wanted)))
            .collect());
    }
    let asked = PackageSources {
        language: plan.language,
        sources: sources(plan),
        code: code.cloned(),
        added: plan.added.clone(),
        requirements: requirements.to_vec(),
    };
    let read = tokio::task::spawn_blocking(move || asked.both());
    let read: Vec<LanguageRequest> = read.await.map_err(Error::internal)?;
    if let Some(key) = key {
        let sound: Vec<_> = read
            .iter()
            .flat_map(|(_, wanted)| wanted.as_ref().ok().cloned())
            .collect();
        if sound.len() == read.len() {
            known_requests.keep(key, &sound);
        }
    }
    Ok(read)
}

/// Start of a script header that declares dependencies (PEP 723).
const HEADER: &str = "# /// script";

/// Whether packages may be those of an unpublished archive or of the header of code.
pub(super) fn come_with_request(plan: &PlannedRun) -> bool {
    let code = plan.job.program.code.as_ref();
    plan._unpacked.is_some() || code.is_some_and(|text| text.contains(HEADER))
}

/// Identifies all sources of the package lists.
fn content(plan: &PlannedRun) -> Digest {
    let job = &plan.job;
    let mut text = format!("{}\n", plan.language.as_str());
    for skill in job.sandbox.skill.iter().chain(&job.sandbox.mounted) {
        text += &format!("{}\n", skill.digest);
    }
    for added in &plan.added {
        text += &format!("{} {:?}\n", added.language.as_str(), added.requirements);
    }
    // Whether the first skill is run, and which file of it.
    text += plan
        .entrypoint
        .as_deref()
        .filter(|_| job.sandbox.skill.is_some())
        .unwrap_or("\n");
    Digest::of(text.as_bytes())
}

fn sources(plan: &PlannedRun) -> Vec<SkillSource> {
    let job = &plan.job;
    let own = job.sandbox.skill.as_ref().map(|skill| SkillSource {
        mounted: None,
        folder: skill.folder.clone(),
        program: plan.entrypoint.clone(),
    });
    let mounted = job.sandbox.mounted.iter().map(|skill| SkillSource {
        mounted: Some(skill.name.clone()),
        folder: skill.folder.clone(),
        program: None,
    });
    own.into_iter().chain(mounted).collect()
}

/// The language that the request's requirements apply to. For a shell script, the Python that it calls.
pub(super) fn requirements_language(program: Language) -> Language {
    match program {
        Language::Node => Language::Node,
        Language::Python | Language::Bash => Language::Python,
    }
}

/// Where package lists are read from.
struct PackageSources {
    /// Language of the program.
    language: Language,
    /// The skill, then the mounted skills.
    sources: Vec<SkillSource>,
    /// Code of the request.
    code: Option<String>,
    /// Of the skills.
    added: Vec<AddedPackages>,
    requirements: Vec<String>,
}

/// Package lists of one skill.
struct SkillSource {
    /// Name of a mounted skill.
    mounted: Option<SkillName>,
    folder: PathBuf,
    /// Path of the program in the folder.
    program: Option<String>,
}

impl PackageSources {
    fn both(&self) -> Vec<LanguageRequest> {
        let kinds = [(Language::Python, self.python()), (Language::Node, self.node())];
        let found = kinds
            .into_iter()
            .filter_map(|(language, read)| Some((language, read.transpose()?)));
        found.collect()
    }

    fn python(&self) -> Result<Option<RequestedPackages>, Error> {
        let mut all = Requirements::default();
        for source in &self.sources {
            all.extend(source.python().map_err(|error| source.refused(&error))?);
        }
        if let Some(code) = &self.code {
            let packages = header_packages("code.py", code.as_bytes()).unwrap_or_default();
            all.add_all(&packages, |_| header_place("code"))
                .map_err(|error| Error::invalid(error.to_string()))?;
        }
        for added in self.added_for(Language::Python) {
            let place = |index| format!("requirements[{index}]");
            all.add_all(&added.requirements, place)
                .map_err(|error| refused(&added.skill, &error))?;
        }
        all.add_all(self.requirements(Language::Python), |index| {
            format!("requirements[{index}]")
        })
        .map_err(|error| Error::invalid(error.to_string()))?;
        Ok((!all.is_empty()).then_some(RequestedPackages::Python(all)))
    }

    fn node(&self) -> Result<Option<RequestedPackages>, Error> {
        let mut all: Option<NodePackages> = None;
        for source in &self.sources {
            let refused = |error| source.refused(&error);
            all = match (all, source.node().map_err(refused)?) {
                (Some(all), Some(more)) => Some(all.join(more).map_err(refused)?),
                (all, more) => all.or(more),
            };
        }
        for added in self.added_for(Language::Node) {
            all = NodePackages::with(all, &added.requirements)
                .map_err(|error| refused(&added.skill, &error))?;
        }
        let all = NodePackages::with(all, self.requirements(Language::Node))
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(all.map(RequestedPackages::Node))
    }

    fn added_for(&self, language: Language) -> impl Iterator<Item = &AddedPackages> {
        self.added.iter().filter(move |added| added.language == language)
    }

    /// Requirements of the request if they apply to this language.
    fn requirements(&self, language: Language) -> &[String] {
        if requirements_language(self.language) == language {
            &self.requirements
        } else {
            &[]
        }
    }
}

impl SkillSource {
    fn python(&self) -> Result<Requirements, InvalidRequirement> {
        // Like `uv run`, which ignores the project's packages for a script with a header.
        if let Some(path) = &self.program
            && let Some(head) = text_head(&self.folder, path)
            && let Some(packages) = header_packages(path, &head)
        {
            let mut declared = Requirements::default();
            declared.add_all(&packages, |_| header_place(path))?;
            return Ok(declared);
        }
        let Some(path) = self.find("requirements.txt") else {
            return Ok(Requirements::default());
        };
        let read = |path: &str| text(&self.folder, path, limits::REQUIREMENTS_BYTES_MAX);
        Requirements::of_file(&path, read)
    }

    fn node(&self) -> Result<Option<NodePackages>, InvalidRequirement> {
        let Some(path) = self.find("package.json") else {
            return Ok(None);
        };
        let Some(package_json) = text(&self.folder, &path, limits::REQUIREMENTS_BYTES_MAX) else {
            return Ok(None);
        };
        let beside = path.replace("package.json", "package-lock.json");
        let lock = text(&self.folder, &beside, limits::NODE_LOCK_BYTES_MAX);
        NodePackages::parse(&path, &package_json, lock.as_deref())
    }

    fn find(&self, name: &str) -> Option<String> {
        package_list(name, self.program.as_deref(), |path| {
            self.folder.join(path).is_file()
        })
    }

    fn refused(&self, error: &InvalidRequirement) -> Error {
        let whose = match &self.mounted {
            None => "the skill".to_owned(),
            Some(name) => format!("the mounted skill `{name}`"),
        };
        Error::new(
            Code::DependenciesFailed,
            format!("the packages of {whose} cannot be installed: {error}"),
        )
    }
}

fn refused(skill: &SkillName, error: &InvalidRequirement) -> Error {
    Error::new(
        Code::DependenciesFailed,
        format!("the packages that were added to `{skill}` cannot be installed: {error}"),
    )
}

fn header_place(path: &str) -> String {
    format!("{path} (its `script` header)")
}

/// The text of a regular file up to a size limit. Archives contain no links.
fn text(folder: &Path, path: &str, bytes_max: u64) -> Option<String> {
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(folder.join(path)).ok()?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= bytes_max)
        .then(|| String::from_utf8(bytes).ok())
        .flatten()
}

fn text_head(folder: &Path, path: &str) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(folder.join(path)).ok()?;
    file.take(limits::ACTION_HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}
