//! What a program asks for: read from the files of its skill and of mounted ones, its own header and the request.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::engine::deps::RECIPE;
use crate::engine::plan::PlannedRun;
use crate::error::{Code, Error};
use crate::ids::Digest;
use crate::limits;
use crate::skill::{
    InvalidRequirement, Language, NodePackages, Prereleases, Requirements, SkillName, action, package_list,
};

/// Packages that are asked for.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Python(Requirements),
    Node(NodePackages),
}

impl Wanted {
    /// Says what is asked for and for what it is built, on any host.
    pub(super) fn key(&self, base: &str) -> Digest {
        let mut text = format!(
            "skillbox-packages-{RECIPE}\n{base}\n{}\n",
            self.language().as_str()
        );
        match self {
            Self::Python(requirements) => {
                requirements.iter().for_each(|line| text += &format!("{line}\n"));
                // No package begins with a hyphen.
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

    /// How much there is to remember.
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

    /// Whether an installer is told to take versions before a release.
    pub(super) fn takes_prereleases(&self) -> bool {
        match self {
            Self::Python(requirements) => requirements.prereleases() == Prereleases::Taken,
            // There a range says so itself.
            Self::Node(_) => false,
        }
    }

    /// For people.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Self::Python(requirements) => requirements.iter().map(ToOwned::to_owned).collect(),
            Self::Node(packages) => packages.names(),
        }
    }
}

/// What programs ask for whose request asks for nothing: the files that say so never change.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashMap<Digest, Vec<Wanted>>>);

impl Remembered {
    fn find(&self, key: &Digest) -> Option<Vec<Wanted>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).cloned()
    }

    fn keep(&self, key: Digest, wanted: &[Wanted]) {
        if wanted.iter().map(Wanted::bytes).sum::<usize>() > limits::WANTED_REMEMBERED_BYTES_MAX {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= limits::WANTED_REMEMBERED_MAX {
            all.clear();
        }
        all.insert(key, wanted.to_vec());
    }
}

/// What packages of a kind are asked for, or why that cannot be told.
type OfKind = (Language, Result<Wanted, Error>);

/// What the planned program asks for, at most one of each kind; `requirements` are the request's own. Every program gets the
/// packages of both kinds, for it may call programs of its skill that are in the other language.
pub(super) async fn wanted(
    plan: &PlannedRun,
    requirements: &[String],
    remembered: &Remembered,
) -> Result<Vec<OfKind>, Error> {
    let code = plan.job.program.code.as_ref();
    let code = code.filter(|text| plan.language == Language::Python && text.contains(HEADER));
    let key = (requirements.is_empty() && code.is_none()).then(|| content(plan));
    if let Some(known) = key.and_then(|key| remembered.find(&key)) {
        return Ok(known
            .into_iter()
            .map(|wanted| (wanted.language(), Ok(wanted)))
            .collect());
    }
    let asked = Asked {
        language: plan.language,
        sources: sources(plan),
        code: code.cloned(),
        requirements: requirements.to_vec(),
    };
    let read = tokio::task::spawn_blocking(move || asked.both());
    let read: Vec<OfKind> = read.await.map_err(Error::internal)?;
    if let Some(key) = key {
        let sound: Vec<_> = read
            .iter()
            .flat_map(|(_, wanted)| wanted.as_ref().ok().cloned())
            .collect();
        if sound.len() == read.len() {
            remembered.keep(key, &sound);
        }
    }
    Ok(read)
}

/// How a header begins that names packages (PEP 723).
const HEADER: &str = "# /// script";

/// Everything that says what is asked for, in one word.
fn content(plan: &PlannedRun) -> Digest {
    let job = &plan.job;
    let mut text = format!("{}\n", plan.language.as_str());
    for skill in job.sandbox.skill.iter().chain(&job.sandbox.mounted) {
        text += &format!("{}\n", skill.digest);
    }
    // Whether the first of them is run, and what of it.
    text += plan
        .entrypoint
        .as_deref()
        .filter(|_| job.sandbox.skill.is_some())
        .unwrap_or("\n");
    Digest::of(text.as_bytes())
}

fn sources(plan: &PlannedRun) -> Vec<Source> {
    let job = &plan.job;
    let own = job.sandbox.skill.as_ref().map(|skill| Source {
        mounted: None,
        folder: skill.folder.clone(),
        program: plan.entrypoint.clone(),
    });
    let mounted = job.sandbox.mounted.iter().map(|skill| Source {
        mounted: Some(skill.name.clone()),
        folder: skill.folder.clone(),
        program: None,
    });
    own.into_iter().chain(mounted).collect()
}

/// What language the requirements of a request are for: a shell's for the Python that it calls.
pub(super) fn of_request(program: Language) -> Language {
    match program {
        Language::Node => Language::Node,
        Language::Python | Language::Bash => Language::Python,
    }
}

/// Where a program says what it needs.
struct Asked {
    /// The program's.
    language: Language,
    /// Its own skill, then those that it may import.
    sources: Vec<Source>,
    /// Code that came with the request.
    code: Option<String>,
    requirements: Vec<String>,
}

/// The files of a skill.
struct Source {
    /// The skill's name, if it is not the one that runs.
    mounted: Option<SkillName>,
    folder: PathBuf,
    /// The program's path in it.
    program: Option<String>,
}

impl Asked {
    fn both(&self) -> Vec<OfKind> {
        let kinds = [(Language::Python, self.python()), (Language::Node, self.node())];
        let found = kinds
            .into_iter()
            .filter_map(|(language, read)| Some((language, read.transpose()?)));
        found.collect()
    }

    fn python(&self) -> Result<Option<Wanted>, Error> {
        let mut all = Requirements::default();
        for source in &self.sources {
            all.extend(source.python().map_err(|error| source.refused(&error))?);
        }
        if let Some(code) = &self.code {
            all.add_all(&in_header("code.py", code.as_bytes()), |_| in_its_header("code"))
                .map_err(|error| Error::invalid(error.to_string()))?;
        }
        all.add_all(self.requirements(Language::Python), |index| {
            format!("requirements[{index}]")
        })
        .map_err(|error| Error::invalid(error.to_string()))?;
        Ok((!all.is_empty()).then_some(Wanted::Python(all)))
    }

    fn node(&self) -> Result<Option<Wanted>, Error> {
        let mut all: Option<NodePackages> = None;
        for source in &self.sources {
            let refused = |error| source.refused(&error);
            all = match (all, source.node().map_err(refused)?) {
                (Some(all), Some(more)) => Some(all.join(more).map_err(refused)?),
                (all, more) => all.or(more),
            };
        }
        let all = NodePackages::with(all, self.requirements(Language::Node))
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(all.map(Wanted::Node))
    }

    /// Those of the request, if they are for programs of this language.
    fn requirements(&self, language: Language) -> &[String] {
        if of_request(self.language) == language {
            &self.requirements
        } else {
            &[]
        }
    }
}

impl Source {
    fn python(&self) -> Result<Requirements, InvalidRequirement> {
        let mut all = Requirements::default();
        if let Some(path) = self.find("requirements.txt") {
            let read = |path: &str| text(&self.folder, path, limits::REQUIREMENTS_BYTES_MAX);
            all = Requirements::of_file(&path, read)?;
        }
        if let Some(path) = &self.program
            && let Some(head) = text_head(&self.folder, path)
        {
            all.add_all(&in_header(path, &head), |_| in_its_header(path))?;
        }
        Ok(all)
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
            format!("the packages that {whose} asks for cannot be installed: {error}"),
        )
    }
}

/// What the file at `path` that begins with `head` asks for itself (PEP 723).
fn in_header(path: &str, head: &[u8]) -> Vec<String> {
    action(path, head).map_or_else(Vec::new, |action| action.dependencies)
}

fn in_its_header(path: &str) -> String {
    format!("{path} (its `script` header)")
}

/// A whole file of the skill, if it is one, not too long, and text. Archives hold no links.
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
