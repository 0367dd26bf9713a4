//! Saves file artifacts inside one folder, even if a server sends hostile paths (O-14).

use std::io::{self, Write};
use std::path::Path;

use sha2::Digest as _;

use crate::bundle::check_path;
use crate::cli::atomic_file::{AtomicFile, TargetFolder};
use crate::cli::client::Client;
use crate::cli::console::Console;
use crate::cli::failure::{Failure, Result};
use crate::cli::result_files::ResultFile;
use crate::error::quoted;
use crate::execution::FileLink;
use crate::ids::{Digest, ExecutionId};
use crate::limits;

pub(crate) struct ArtifactSaver<'a> {
    pub(crate) client: &'a Client,
    pub(crate) folder: &'a Path,
    pub(crate) console: &'a Console,
}

impl ArtifactSaver<'_> {
    /// Saves all `files` of an execution and the files made of its results in the folder, which is created if there are any.
    /// Replaces existing files and never follows links.
    pub(crate) fn save(&self, id: ExecutionId, files: &[FileLink], results: &[ResultFile]) -> Result<()> {
        let folder = self.folder;
        let files = check(files, self.console)?;
        if files.is_empty() && results.is_empty() {
            self.console.say(format!(
                "nothing to save in {}: no files and no charts",
                folder.display()
            ));
            return Ok(());
        }
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
        let root = TargetFolder::open(folder).map_err(|error| Failure::file(folder, &error))?;
        for file in &files {
            let mut target = PendingFile::create(&root, &file.path).map_err(|error| refused(file, &error))?;
            self.client.file(id, file, &mut target)?;
            target.commit(file)?;
        }
        for result in results {
            let written = AtomicFile::create(&root, &result.path).and_then(|mut target| {
                target.file.write_all(&result.content)?;
                target.commit()
            });
            written.map_err(|error| {
                Failure::refused(format!(
                    "file {} cannot be written: {error}",
                    quoted(&result.path)
                ))
            })?;
        }
        match files.len() + results.len() {
            1 => self
                .console
                .success(format!("saved 1 file to {}", folder.display())),
            count => self
                .console
                .success(format!("saved {count} files to {}", folder.display())),
        }
        Ok(())
    }
}

/// The files to write. A path outside the folder rejects all of them, an unsupported name only that file.
fn check<'a>(files: &'a [FileLink], console: &Console) -> Result<Vec<&'a FileLink>> {
    if files.len() > limits::FILES_MAX {
        return Err(Failure::refused(format!(
            "{} files, more than the {} of any execution",
            files.len(),
            limits::FILES_MAX
        )));
    }
    let total = files
        .iter()
        .fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if total > limits::FILES_BYTES_MAX {
        return Err(Failure::refused(format!(
            "{total} bytes of files, more than the {} of any execution",
            limits::FILES_BYTES_MAX
        )));
    }
    if let Some(file) = files.iter().find(|file| leads_out(&file.path)) {
        return Err(Failure::refused(format!(
            "file {} has a path outside the folder; nothing was written",
            quoted(&file.path)
        )));
    }
    let sound = |file: &&FileLink| {
        let plain = check_path(&file.path).is_ok();
        if !plain {
            let rule = if cfg!(windows) {
                "its name is too long, contains a backslash, a control or an invisible character, or has a special meaning on Windows"
            } else {
                "its name is too long or contains a backslash, a drive, a control or an invisible character"
            };
            console.bad(format!("file {} was not saved: {rule}", quoted(&file.path)));
        }
        plain
    };
    Ok(files.iter().filter(sound).collect())
}

fn leads_out(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

fn refused(file: &FileLink, error: &io::Error) -> Failure {
    Failure::refused(format!("file {} cannot be written: {error}", quoted(&file.path)))
}

/// A file that is written under a temporary name in its folder.
struct PendingFile {
    output: AtomicFile,
    hash: sha2::Sha256,
    size: u64,
}

impl PendingFile {
    fn create(root: &TargetFolder, path: &str) -> io::Result<Self> {
        Ok(Self {
            output: AtomicFile::create(root, path)?,
            hash: sha2::Sha256::new(),
            size: 0,
        })
    }

    /// Renames the file if size and digest match. Replaces a link of that name instead of following it.
    fn commit(self, file: &FileLink) -> Result<()> {
        let digest = Digest::from_bytes(self.hash.clone().finalize().into());
        if self.size != file.size || digest != file.sha256 {
            return Err(Failure::refused(format!(
                "file {} does not match its announced size and digest; it was not saved",
                quoted(&file.path)
            )));
        }
        self.output.commit().map_err(|error| refused(file, &error))
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(path: &str, content: &[u8]) -> FileLink {
        FileLink {
            path: path.to_owned(),
            size: content.len() as u64,
            sha256: Digest::of(content),
            media_type: String::new(),
            url: None,
        }
    }

    fn write(root: &Path, path: &str, content: &[u8]) -> Result<()> {
        let file = link(path, content);
        let root = TargetFolder::open(root).unwrap();
        let mut target = PendingFile::create(&root, path).map_err(|error| refused(&file, &error))?;
        target.write_all(content).unwrap();
        target.commit(&file)
    }

    fn console() -> Console {
        Console::new(None, crate::cli::console::ForeignText::Escaped)
    }

    /// O-14.
    #[test]
    fn writes_nothing_if_a_name_leaves_the_folder() {
        for path in ["../x", "/etc/x", "a/../../x", "a//b", "", ".", "a/./b"] {
            assert!(
                check(&[link("fine", b""), link(path, b"")], &console()).is_err(),
                "{path:?}"
            );
        }
        let mut huge = link("a", b"");
        huge.size = u64::MAX;
        assert!(check(&[huge.clone(), huge], &console()).is_err());
        assert!(check(&vec![link("a", b""); limits::FILES_MAX + 1], &console()).is_err());
    }

    #[test]
    fn skips_unusual_names() {
        for path in ["a\nb", "a\u{202e}b", "C:/x", "a\\xff"] {
            let files = [link("fine", b""), link(path, b"")];
            let kept = check(&files, &console()).unwrap();
            assert_eq!(
                kept.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
                ["fine"],
                "{path:?}"
            );
        }
    }

    /// O-14.
    #[test]
    fn does_not_follow_links_in_the_output_folder() {
        let (outside, inside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let canary = outside.path().join("canary");
        std::fs::write(&canary, "old").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(&canary, inside.path().join("file")).unwrap();
        assert!(write(inside.path(), "folder/canary", b"new").is_err());
        write(inside.path(), "file", b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&canary).unwrap(), "old");
        assert_eq!(
            std::fs::read_to_string(inside.path().join("file")).unwrap(),
            "new"
        );
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn discards_files_that_differ_from_their_listing() {
        let folder = tempfile::tempdir().unwrap();
        let root = TargetFolder::open(folder.path()).unwrap();
        let mut target = PendingFile::create(&root, "a/b").unwrap();
        target.write_all(b"other").unwrap();
        assert!(target.commit(&link("a/b", b"promised")).is_err());
        assert_eq!(std::fs::read_dir(folder.path().join("a")).unwrap().count(), 0);
        write(folder.path(), "a/b", b"promised").unwrap();
        write(folder.path(), "a/b", b"replaced").unwrap();
        assert_eq!(std::fs::read(folder.path().join("a/b")).unwrap(), b"replaced");
    }
}
