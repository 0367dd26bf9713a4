//! Where a local skill is: a folder or archive, or a folder within.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::bundle;
use crate::cli::arguments::{Archive, pack, similar_path};
use crate::cli::failure::{Failure, Result};
use crate::error::quoted;
use crate::skill::SkillName;

#[derive(Debug, Clone, Args)]
pub(crate) struct SkillSource {
    /// Folder or zip archive of the skill
    #[arg(value_name = "DIR|ZIP")]
    path: PathBuf,
    /// Folder of the skill within DIR or ZIP, if there are several
    #[arg(long = "path", value_name = "FOLDER")]
    within: Option<String>,
}

impl SkillSource {
    pub(crate) fn new(path: PathBuf, within: Option<String>) -> Self {
        Self { path, within }
    }

    /// The skill's folder; `None` for an archive.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        let folder = self.path.join(self.within.as_deref().unwrap_or_default());
        self.path.is_dir().then_some(folder)
    }

    /// Why there is no folder to watch.
    pub(crate) fn not_a_folder(&self) -> Failure {
        match std::fs::metadata(&self.path) {
            Err(error) => Failure::file(&self.path, &error).hint_if_any(similar_path(&self.path)),
            Ok(_) => {
                Failure::refused("only a folder can be watched; unpack the archive, and name the folder")
            }
        }
    }

    /// The archive, or the packed folder.
    pub(crate) fn open(&self) -> Result<Archive> {
        let Some(within) = &self.within else {
            return Archive::open(&self.path);
        };
        bundle::check_path(within).map_err(|error| Failure::refused(format!("--path: {error}")))?;
        if let Some(folder) = self.folder() {
            return Archive::open(&folder);
        }
        let file = File::open(&self.path).map_err(|error| Failure::file(&self.path, &error))?;
        let unpacked =
            tempfile::tempdir().map_err(|error| Failure::internal("making a temporary folder", error))?;
        let listing = bundle::unpack(&file, unpacked.path())?;
        // As written, or within the archive's only top-level folder.
        let mut tops = listing
            .entries()
            .iter()
            .filter_map(|entry| entry.path.split('/').next());
        let top = tops
            .next()
            .filter(|top| tops.all(|other| other == *top))
            .unwrap_or_default();
        let folders = [
            unpacked.path().join(within),
            unpacked.path().join(top).join(within),
        ];
        let folder = folders.into_iter().find(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| {
            Failure::refused(format!(
                "--path: {} has no folder {}",
                quoted(&self.path.to_string_lossy()),
                quoted(within)
            ))
        })?;
        Ok(Archive {
            file: pack(&folder)?,
            name: Path::new(within)
                .file_name()
                .and_then(|name| SkillName::of_folder(name.to_str()?)),
        })
    }

    /// Adds the flag that selects one skill of several to their error.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        match self.within {
            None if failure.is_about_misplaced_skills() => failure.hint("choose one with --path FOLDER"),
            _ => failure,
        }
    }
}
