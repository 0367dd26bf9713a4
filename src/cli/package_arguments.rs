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
        if let Some(several) = self.requirements.iter().find(|text| names_several(text)) {
            let message = format!("--requirement: {} is more than one package", quoted(several));
            return Err(Failure::new(Exit::Usage, message).hint("repeat the option for each package"));
        }
        if let Some(file) = &self.file {
            self.requirements.extend(requirements(file)?);
        }
        Ok(self.requirements)
    }
}

/// Whether a text has several names, as in `pandas,rich` or `pandas rich`, unlike `pandas>=2,<3`.
fn names_several(text: &str) -> bool {
    if text.contains(['[', ';', '@', '/']) {
        return false;
    }
    let mut parts = text
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty());
    parts.clone().count() > 1 && parts.all(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// `--requirements FILE`: the packages of a `requirements.txt`, with the files that it includes.
fn requirements(file: &Path) -> Result<Vec<String>> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::refused("--requirements: name a file of packages"))?;
    // A missing file is reported as such, and not as one without packages.
    read_file(file, limits::REQUIREMENTS_BYTES_MAX).map_err(|failure| {
        let failure = failure.of_flag("--requirements");
        match file.exists() {
            true => failure,
            false => failure.hint(format!("a single package is `--requirement {}`", file.display())),
        }
    })?;
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
    fn recognises_several_packages_in_one_argument() {
        for several in ["pandas,matplotlib", "pandas matplotlib", "pandas, rich"] {
            assert!(names_several(several), "{several}");
        }
        for one in [
            "pandas",
            "pandas>=2,<3",
            "pandas >= 2",
            "uvicorn[a,b]",
            "six; python_version < '3'",
        ] {
            assert!(!names_several(one), "{one}");
        }
    }

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
