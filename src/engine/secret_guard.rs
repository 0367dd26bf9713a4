//! Keeps a request from adding code to a skill with secrets.
//!
//! A caller who may run a skill must not be able to read its secrets.

use std::path::{Path, PathBuf};

use crate::engine::RunSpec;
use crate::error::{Error, quoted};
use crate::sandbox::InputFile;

/// Rejects packages and files that could change what is executed. `folder` contains the skill's files.
pub(super) async fn check(spec: &RunSpec, folder: &Path) -> Result<(), Error> {
    if !spec.requirements.is_empty() {
        return Err(Error::invalid(
            "requirements: not allowed, because this skill receives secrets; declare packages in its requirements.txt or package.json",
        ));
    }
    let paths: Vec<_> = spec
        .files
        .iter()
        .map(|file| file.folder().unwrap_or(&file.path).to_owned())
        .collect();
    let is_executed = |file: &&InputFile| match file.folder() {
        Some(folder) => folder.to_ascii_lowercase().split('/').any(is_searched),
        None => is_code(&file.path),
    };
    if let Some(InputFile { path: code, .. }) = spec.files.iter().find(is_executed) {
        return Err(rejected(code, "may be executed", "publish it with the skill"));
    }
    let folder = folder.to_owned();
    let lookup = tokio::task::spawn_blocking(move || paths.into_iter().find(|path| replaces(&folder, path)));
    match lookup.await.map_err(Error::internal)? {
        Some(path) => Err(rejected(
            &path,
            "would replace a file of the skill",
            "choose another path",
        )),
        None => Ok(()),
    }
}

fn rejected(path: &str, why: &str, remedy: &str) -> Error {
    let path = quoted(path);
    Error::invalid(format!(
        "files: {path} {why}, but this skill receives secrets, so requests may send only data; {remedy}"
    ))
}

/// Whether the path exists in the skill, or a file of the skill is where the path needs a folder.
fn replaces(folder: &Path, path: &str) -> bool {
    let mut place = PathBuf::from(folder);
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        match place.symlink_metadata() {
            Ok(there) if there.is_dir() && parts.peek().is_some() => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
    false
}

/// Name endings of files that interpreters, loaders and shells execute or use as configuration.
const CODE: [&str; 31] = [
    "bash", "bat", "cjs", "cts", "egg", "fish", "js", "jsx", "ksh", "lua", "mjs", "mts", "node", "php", "pl",
    "pm", "pth", "py", "pyc", "pyd", "pyo", "pyw", "pyz", "r", "rb", "sh", "so", "tcl", "ts", "wasm", "zsh",
];
/// Full names of such files.
const NAMES: [&str; 2] = ["package.json", "pyvenv.cfg"];
/// Folders that interpreters search.
const FOLDERS: [&str; 2] = ["node_modules", "__pycache__"];

/// Includes names without an extension, since Node's `require` tries the bare name first, and hidden names: start-up
/// files of shells and tools, and folders in HOME that programs search.
fn is_code(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let has_code_extension = match name.rsplit_once('.') {
        Some((_, extension)) => CODE.contains(&extension) || extension.is_empty(),
        None => true,
    };
    folders.split('/').any(is_searched)
        || is_searched(name)
        || has_code_extension
        || name.contains(".so.")
        || NAMES.contains(&name)
}

/// Whether interpreters or tools search a folder of this name.
fn is_searched(folder: &str) -> bool {
    folder.starts_with('.')
        || FOLDERS.contains(&folder)
        || folder.ends_with(".dist-info")
        || folder.ends_with(".egg-info")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn treats_executable_files_as_code() {
        for path in [
            "x.py",
            "sitecustomize.py",
            "a/b/X.PY",
            "a/x.pth",
            "a/x.mjs",
            "lib.so",
            "lib.so.6",
            "__pycache__/x.cpython-313.pyc",
            "__pycache__/x.txt",
            ".local/lib/python3.13/site-packages/usercustomize.py",
            ".local/lib/python3.13/site-packages/x.txt",
            ".bashrc",
            "a/.npmrc",
            ".profile",
            ".pythonrc",
            ".env",
            "package.json",
            "a/package.json",
            "node_modules/x/index.json",
            "a/.node_modules/x",
            "scripts/neighbour",
            "x.dist-info/entry_points.txt",
            "x.",
        ] {
            assert!(is_code(path), "{path}");
        }
        for path in [
            "a.csv",
            "data/b.json",
            "report.docx",
            "package-lock.json",
            "ü.pdf",
            "a.b/c.txt",
            "archive.tar.gz",
            "x.html",
        ] {
            assert!(!is_code(path), "{path}");
        }
    }

    #[test]
    fn detects_inputs_that_replace_skill_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join("data/a.csv"), "").unwrap();
        for (path, is_taken) in [
            ("data/a.csv", true),
            ("data", true),
            ("data/a.csv/b.csv", true),
            ("data/b.csv", false),
            ("a.csv", false),
        ] {
            assert_eq!(replaces(folder.path(), path), is_taken, "{path}");
        }
    }
}
