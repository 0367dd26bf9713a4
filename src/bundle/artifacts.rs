//! Writes the files of an execution into a tar while they arrive.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use sha2::Digest as _;
use tempfile::SpooledTempFile;

use crate::execution::FileEntry;
use crate::ids::Digest;

const BLOCK: u64 = 512;
/// Maximum path in the classic header.
const SHORT_PATH_BYTES: usize = 100;

/// A tar of regular files under relative paths, and its index.
///
/// Files are written one at a time: [`start`](Self::start), any number of [`write`](Self::write), [`end`](Self::end).
#[derive(Debug)]
pub struct ArtifactTar {
    file: SpooledTempFile,
    entries: Vec<FileEntry>,
    /// Position of the next header; a multiple of 512.
    end: u64,
    open: Option<Open>,
}

/// The open file.
#[derive(Debug)]
struct Open {
    path: String,
    size: u64,
    written: u64,
    offset: u64,
    sha256: sha2::Sha256,
}

impl ArtifactTar {
    /// A tar in a private file of this folder, created with the first artifact, since most programs return none.
    #[must_use]
    pub fn create_in(folder: &Path) -> Self {
        Self {
            file: SpooledTempFile::new_in(0, folder),
            entries: Vec::new(),
            end: 0,
            open: None,
        }
    }

    /// Begins a file of exactly `size` bytes. An unfinished file is dropped.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a path that is not plainly relative or has a control character, which the guest escapes; errors of writing.
    pub fn start(&mut self, path: &str, size: u64) -> io::Result<()> {
        self.drop_open()?;
        let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
        if !path.split('/').all(plain) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an artifact's path must be relative, without `.`, `..` and control characters",
            ));
        }
        let headers = headers(path, size)?;
        let offset = self.end + headers.len() as u64;
        self.open = Some(Open {
            path: path.to_owned(),
            size,
            written: 0,
            offset,
            sha256: sha2::Sha256::new(),
        });
        self.append(&headers)
    }

    /// Writes content of the open file.
    ///
    /// # Errors
    ///
    /// `InvalidInput` without an open file or beyond its size; errors of writing.
    pub fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let open = self.open.as_ref().ok_or_else(not_started)?;
        if chunk.len() as u64 > open.size - open.written {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "more bytes than the artifact's size",
            ));
        }
        self.append(chunk)?;
        if let Some(open) = &mut self.open {
            open.sha256.update(chunk);
            open.written += chunk.len() as u64;
        }
        Ok(())
    }

    /// Ends the open file.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if content is missing: the tar is then as before [`start`](Self::start).
    pub fn end(&mut self) -> io::Result<FileEntry> {
        let open = self.open.as_ref().ok_or_else(not_started)?;
        if open.written != open.size {
            self.drop_open()?;
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "fewer bytes than the artifact's size",
            ));
        }
        let content_end = open.offset + open.size;
        let padded = content_end.next_multiple_of(BLOCK);
        self.file
            .write_all(&[0; 512][..usize::try_from(padded - content_end).map_err(io::Error::other)?])?;
        let open = self.open.take().ok_or_else(not_started)?;
        self.end = padded;
        let entry = FileEntry {
            path: open.path,
            size: open.size,
            sha256: Digest::from_bytes(open.sha256.finalize().into()),
            offset: open.offset,
        };
        self.entries.push(entry.clone());
        Ok(entry)
    }

    /// Completes the tar and rewinds it. An unfinished file is dropped.
    pub fn finish(mut self) -> io::Result<(File, Vec<FileEntry>)> {
        self.drop_open()?;
        self.file.write_all(&[0; 1024])?;
        self.file.rewind()?;
        Ok((self.file.into_file()?, self.entries))
    }

    /// If writing fails, for example on a full disk, the whole file is dropped, so that the tar stays valid.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).inspect_err(|_| {
            // Tried again by the next start or the finish.
            let _ = self.drop_open();
        })
    }

    fn drop_open(&mut self) -> io::Result<()> {
        if self.open.is_some() {
            self.file.set_len(self.end)?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.open = None;
        }
        Ok(())
    }
}

fn not_started() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no artifact was started")
}

/// The header of a file. A path that does not fit precedes it as a GNU long name.
fn headers(path: &str, size: u64) -> io::Result<Vec<u8>> {
    let mut blocks = Vec::new();
    if path.len() > SHORT_PATH_BYTES {
        let long = path.len() as u64 + 1;
        blocks.extend_from_slice(header("././@LongLink", long, tar::EntryType::GNULongName)?.as_bytes());
        blocks.extend_from_slice(path.as_bytes());
        blocks.resize(
            usize::try_from((BLOCK + long).next_multiple_of(BLOCK)).map_err(io::Error::other)?,
            0,
        );
    }
    blocks.extend_from_slice(header(path, size, tar::EntryType::Regular)?.as_bytes());
    Ok(blocks)
}

fn header(path: &str, size: u64, kind: tar::EntryType) -> io::Result<tar::Header> {
    let mut header = tar::Header::new_gnu();
    let name = &mut header
        .as_gnu_mut()
        .ok_or_else(|| io::Error::other("a GNU header is one"))?
        .name;
    let shown = path.len().min(name.len());
    name[..shown].copy_from_slice(&path.as_bytes()[..shown]);
    header.set_size(size);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn tar_of(files: &[(&str, &[u8])]) -> (File, Vec<FileEntry>) {
        let mut tar = ArtifactTar::create_in(&std::env::temp_dir());
        for (path, content) in files {
            tar.start(path, content.len() as u64).unwrap();
            for chunk in content.chunks(300) {
                tar.write(chunk).unwrap();
            }
            tar.end().unwrap();
        }
        tar.finish().unwrap()
    }

    fn read_back(file: &File) -> Vec<(String, Vec<u8>)> {
        let mut archive = tar::Archive::new(file);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let mut entry = entry.unwrap();
                assert_eq!(entry.header().entry_type(), tar::EntryType::Regular);
                assert_eq!(
                    (entry.header().mode().unwrap(), entry.header().mtime().unwrap()),
                    (0o644, 0)
                );
                let mut content = Vec::new();
                entry.read_to_end(&mut content).unwrap();
                (entry.path().unwrap().to_str().unwrap().to_owned(), content)
            })
            .collect()
    }

    #[test]
    fn index_matches_an_independent_tar_reader() {
        let long = format!("{}/é.txt", "deep".repeat(50));
        let exact = "x".repeat(100);
        let files: [(&str, &[u8]); 5] = [
            ("a.txt", b"hello"),
            ("empty", b""),
            (&long, &[7; 1024]),
            (&exact, &[1; 511]),
            ("b/c.bin", &[2; 513]),
        ];
        let (file, index) = tar_of(&files);
        let expected: Vec<_> = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
            .collect();
        assert_eq!(read_back(&file), expected);
        for (entry, (path, content)) in index.iter().zip(files) {
            let mut bytes = vec![0; content.len()];
            file.read_exact_at(&mut bytes, entry.offset).unwrap();
            assert_eq!(
                (entry.path.as_str(), entry.size, bytes.as_slice()),
                (path, content.len() as u64, content)
            );
            assert_eq!(entry.sha256, Digest::of(content));
        }
    }

    /// O-14.
    #[test]
    fn rejects_artifact_paths_outside_the_folder_or_with_control_characters() {
        let mut tar = ArtifactTar::create_in(&std::env::temp_dir());
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../x",
            "a//b",
            "a/",
            ".",
            "a\0b",
            "a\x1b[2Jb",
            "a\nb",
        ] {
            assert_eq!(
                tar.start(path, 1).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{path:?}"
            );
        }
        let (file, index) = tar.finish().unwrap();
        assert_eq!((read_back(&file), index), (vec![], vec![]));
    }

    #[test]
    fn removes_incomplete_file() {
        let mut tar = ArtifactTar::create_in(&std::env::temp_dir());
        tar.start("short", 2000).unwrap();
        tar.write(&[1; 1999]).unwrap();
        assert_eq!(tar.end().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        tar.start("forgotten", 5).unwrap();
        tar.start("kept", 2).unwrap();
        assert_eq!(tar.write(b"abc").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        tar.write(b"ab").unwrap();
        assert_eq!(tar.end().unwrap().offset, 512);
        assert!(tar.end().is_err() && tar.write(b"x").is_err());
        tar.start("forgotten too", 5).unwrap();
        let (file, index) = tar.finish().unwrap();
        assert_eq!(read_back(&file), [("kept".to_owned(), b"ab".to_vec())]);
        assert_eq!((index.len(), file.metadata().unwrap().len()), (1, 2048));
    }
}
