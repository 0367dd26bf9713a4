//! The content of a volume container as an uncompressed, reproducible tar.
//!
//! Other servers trust the container's name to identify the content, so the content is verified while it is packed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::bundle;
use crate::ids::Digest;
use crate::sandbox::docker::guest_binary::GuestBinary;

#[derive(Debug, Clone)]
pub(super) enum VolumeSource {
    /// One file, `init`, executable but unreadable if the kernel loads it: the process is then non-dumpable at exec
    /// (P16).
    Guest(GuestBinary),
    /// A folder of regular files, and the digest of its content: a skill, or packages.
    Folder { folder: PathBuf, digest: Digest },
}

/// After an error the volume container must not get its final name.
pub(super) fn write(source: &VolumeSource, writer: &mut impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(writer);
    match source {
        VolumeSource::Guest(guest) => write_guest(guest, &mut tar)?,
        VolumeSource::Folder { folder, digest } => write_folder(folder, *digest, &mut tar)?,
    }
    tar.finish()
}

fn write_guest(guest: &GuestBinary, tar: &mut tar::Builder<impl Write>) -> io::Result<()> {
    let file = File::open(&guest.content)?;
    let mut header = header(tar::EntryType::Regular, guest.loader.mode());
    header.set_size(file.metadata()?.len());
    let mut file = Hashing {
        file,
        sha256: Sha256::new(),
    };
    tar.append_data(&mut header, "init", &mut file)?;
    if Digest::from_bytes(file.sha256.finalize().into()) == guest.digest {
        return Ok(());
    }
    let path = guest.path.display();
    Err(io::Error::other(format!(
        "`{path}` was replaced while the server ran; restart it"
    )))
}

fn write_folder(folder: &Path, digest: Digest, tar: &mut tar::Builder<impl Write>) -> io::Result<()> {
    let listing = bundle::list_packages(folder).map_err(io::Error::other)?;
    if listing.digest() != digest {
        let folder = folder.display();
        return Err(io::Error::other(format!(
            "`{folder}` was changed; delete it, and it will be created again"
        )));
    }
    let folders: BTreeSet<&str> = listing
        .entries()
        .iter()
        .flat_map(|entry| entry.path.match_indices('/').map(|(at, _)| &entry.path[..at]))
        .collect();
    for inside in std::iter::once(".").chain(folders) {
        let mut header = header(tar::EntryType::Directory, 0o755);
        header.set_size(0);
        tar.append_data(&mut header, inside, io::empty())?;
    }
    for entry in listing.entries() {
        let mut header = header(
            tar::EntryType::Regular,
            if entry.executable { 0o755 } else { 0o644 },
        );
        header.set_size(entry.size);
        let file = File::open(folder.join(&entry.path))?;
        tar.append_data(&mut header, &entry.path, file.take(entry.size))?;
    }
    Ok(())
}

/// Owned by root, with the modification time of unpacked skills: bytecode caches depend on it.
fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(bundle::MTIME_SECONDS);
    header
}

/// A file that is hashed while it is read.
struct Hashing {
    file: File,
    sha256: Sha256,
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.sha256.update(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::docker::guest_binary::Loader;

    fn skill() -> (tempfile::TempDir, VolumeSource) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("scripts/deep")).unwrap();
        std::fs::write(folder.path().join("SKILL.md"), "x").unwrap();
        std::fs::write(folder.path().join("scripts/deep/main.sh"), "exit").unwrap();
        let digest = bundle::list(folder.path()).unwrap().digest();
        let source = VolumeSource::Folder {
            folder: folder.path().to_owned(),
            digest,
        };
        (folder, source)
    }

    #[test]
    fn packs_a_skill_reproducibly() {
        let tar = || {
            let (_folder, source) = skill();
            let mut tar = Vec::new();
            write(&source, &mut tar).unwrap();
            tar
        };
        let first = tar();
        assert_eq!(tar(), first);
        let mut archive = tar::Archive::new(&first[..]);
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), bundle::MTIME_SECONDS);
                assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
                (
                    entry.path().unwrap().display().to_string(),
                    header.mode().unwrap(),
                )
            })
            .collect();
        let expected = [
            (".", 0o755),
            ("scripts", 0o755),
            ("scripts/deep", 0o755),
            ("SKILL.md", 0o644),
            ("scripts/deep/main.sh", 0o644),
        ];
        assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn rejects_content_that_does_not_match_its_digest() {
        let (folder, source) = skill();
        std::fs::write(folder.path().join("SKILL.md"), "y").unwrap();
        let error = write(&source, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("was changed"), "{error}");

        let content = folder.path().join("init");
        std::fs::write(&content, "a newer build").unwrap();
        let guest = GuestBinary {
            path: content.clone(),
            content,
            digest: Digest::of(b"the build that started"),
            loader: Loader::Kernel,
        };
        let error = write(&VolumeSource::Guest(guest), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("restart"), "{error}");
    }
}
