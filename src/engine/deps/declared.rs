//! What a program asks for: read from its skill's files, its own header and the request.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::engine::deps::RECIPE;
use crate::engine::plan::Plan;
use crate::error::{Code, Error};
use crate::ids::Digest;
use crate::limits;
use crate::skill::{InvalidRequirement, Language, NodePackages, Requirements, action};

/// Packages that are asked for.
#[derive(Debug)]
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
            Self::Python(requirements) => requirements.iter().for_each(|line| {
                text += line;
                text.push('\n');
            }),
            Self::Node(packages) => {
                let lock = packages.lock().unwrap_or_default();
                let parts = [packages.package_json(), lock].map(|part| Digest::of(part.as_bytes()));
                text += &format!("{}\n{}\n", parts[0], parts[1]);
            }
        }
        Digest::of(text.as_bytes())
    }

    pub(super) fn language(&self) -> Language {
        match self {
            Self::Python(_) => Language::Python,
            Self::Node(_) => Language::Node,
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

/// What the planned program asks for; `requirements` are the request's own.
pub(super) async fn wanted(plan: &Plan, requirements: &[String]) -> Result<Option<Wanted>, Error> {
    let job = &plan.job;
    let sources = Sources {
        folder: job.skill.as_ref().map(|skill| skill.folder.clone()),
        program: job.skill.as_ref().and_then(|skill| {
            let places =
                ["/skills", "/sandbox/skills/public"].map(|folder| format!("{folder}/{}/", skill.name));
            let path = job.argv.iter().take(3).find_map(|argument| {
                places
                    .iter()
                    .find_map(|place| argument.strip_prefix(place.as_str()))
            })?;
            Some(path.to_owned())
        }),
        mounted: job.mounted.iter().map(|skill| skill.folder.clone()).collect(),
        requirements: requirements.to_vec(),
    };
    let language = plan.language;
    let read = tokio::task::spawn_blocking(move || match language {
        Language::Python => sources.python(),
        Language::Node => sources.node(),
        // No program of its own image could import them.
        Language::Bash if sources.requirements.is_empty() => Ok(None),
        Language::Bash => Err(Error::invalid("requirements are for Python and Node programs")),
    });
    read.await.map_err(Error::internal)?
}

/// Where a program says what it needs.
struct Sources {
    /// The skill's files.
    folder: Option<PathBuf>,
    /// The program's path in it.
    program: Option<String>,
    /// Files of the skills that it may import.
    mounted: Vec<PathBuf>,
    requirements: Vec<String>,
}

impl Sources {
    fn python(&self) -> Result<Option<Wanted>, Error> {
        let mut all = Requirements::default();
        if let Some(folder) = &self.folder {
            if let Some(path) = find(folder, self.program.as_deref(), "requirements.txt") {
                let read = |path: &str| text(folder, path, limits::REQUIREMENTS_BYTES_MAX);
                all.extend(Requirements::of_file(&path, read).map_err(refused)?);
            }
            if let Some(path) = &self.program {
                let header = text_head(folder, path).and_then(|head| action(path, &head));
                let packages = header.map(|header| header.dependencies).unwrap_or_default();
                all.add_all(&packages, |_| format!("{path} (its `script` header)"))
                    .map_err(refused)?;
            }
        }
        for folder in &self.mounted {
            if let Some(path) = find(folder, None, "requirements.txt") {
                let read = |path: &str| text(folder, path, limits::REQUIREMENTS_BYTES_MAX);
                all.extend(Requirements::of_file(&path, read).map_err(refused)?);
            }
        }
        all.add_all(&self.requirements, |index| format!("requirements[{index}]"))
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok((!all.is_empty()).then_some(Wanted::Python(all)))
    }

    fn node(&self) -> Result<Option<Wanted>, Error> {
        let file = self.folder.as_ref().and_then(|folder| {
            let path = find(folder, self.program.as_deref(), "package.json")?;
            Some((text(folder, &path, limits::REQUIREMENTS_BYTES_MAX)?, folder, path))
        });
        let (package_json, lock, path) = match file {
            Some((package_json, folder, path)) => {
                let beside = path.replace("package.json", "package-lock.json");
                (
                    Some(package_json),
                    text(folder, &beside, limits::NODE_LOCK_BYTES_MAX),
                    path,
                )
            }
            None => (None, None, "package.json".to_owned()),
        };
        let declared = match package_json {
            Some(text) => NodePackages::parse(&path, &text, lock.as_deref()).map_err(refused)?,
            None => None,
        };
        let all = NodePackages::with(declared, &self.requirements)
            .map_err(|error| Error::invalid(error.to_string()))?;
        Ok(all.map(Wanted::Node))
    }
}

/// The file of this name at the skill's root, else beside the program, else where programs usually are.
fn find(folder: &Path, program: Option<&str>, name: &str) -> Option<String> {
    let beside = program.and_then(|path| path.rsplit_once('/'));
    let places = ["", beside.map_or("", |(place, _)| place), "scripts", "code"];
    places.into_iter().find_map(|place| {
        let path = if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place}/{name}")
        };
        folder.join(&path).is_file().then_some(path)
    })
}

fn refused(error: InvalidRequirement) -> Error {
    Error::new(
        Code::DependenciesFailed,
        format!("the packages that the skill asks for cannot be installed: {error}"),
    )
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
