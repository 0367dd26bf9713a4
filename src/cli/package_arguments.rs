//! `--requirement` and `--requirements`: additional packages.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::arguments::read_file;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::error::quoted;
use crate::limits;
use crate::skill::Requirements;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PackageArguments {
    /// Additional package, such as 'pandas>=2'; may be repeated
    #[arg(long = "requirement", value_name = "PACKAGE")]
    requirements: Vec<String>,
    /// File of additional packages, such as requirements.txt
    #[arg(long = "requirements", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PackageArguments {
    /// All packages, those of the file last.
    pub(crate) fn read(mut self) -> Result<Vec<String>> {
        let listed = self.requirements.iter().find(|text| {
            let extension = Path::new(text).extension();
            extension.is_some_and(|extension| extension == "txt")
        });
        if let Some(file) = listed {
            let message = format!("--requirement: {} is a file, not a package", quoted(file));
            return Err(Failure::new(Exit::Usage, message).hint(format!("use --requirements {file}")));
        }
        if let Some(file) = &self.file {
            self.requirements.extend(requirements(file)?);
        }
        Ok(self.requirements)
    }
}

/// `--requirements FILE`: the packages of a `requirements.txt`, with the files that it includes.
fn requirements(file: &Path) -> Result<Vec<String>> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::refused("--requirements: name a file of packages"))?;
    // A missing file is reported as such, and not as one without packages.
    read_file(file, limits::REQUIREMENTS_BYTES_MAX).map_err(|failure| failure.of_flag("--requirements"))?;
    let read = |path: &str| {
        let bytes = read_file(&folder.join(path), limits::REQUIREMENTS_BYTES_MAX).ok()?;
        String::from_utf8(bytes).ok()
    };
    let list = Requirements::of_file(name, read)
        .map_err(|error| Failure::refused(format!("--requirements: {error}")))?;
    Ok(list.iter().map(ToOwned::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_packages_of_requirements_file() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("requirements.txt");
        std::fs::write(&list, "# ours\npandas>=2  # tables\n-r more.txt\n").unwrap();
        std::fs::write(folder.path().join("more.txt"), "rich\n").unwrap();
        assert_eq!(requirements(&list).unwrap(), ["pandas>=2", "rich"]);
        assert!(requirements(Path::new("nowhere.txt")).is_err());
    }
}
