//! Collects the files in `out/`. All processes of the sandbox are dead, but the files are untrusted.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use tokio::io::AsyncWriteExt as _;

use crate::guest::layout::{self, is_digest};
use crate::guest::wire::{self, Caps, Item};
use crate::guest::workspace::{Tree, WorkspaceSnapshot, is_private};

/// The out directory, opened before the program could rename or replace it (O-03).
#[derive(Debug)]
pub(super) struct OutFolder {
    folder: OwnedFd,
    files: OwnedFd,
    blobs: OwnedFd,
    /// `/workspace` and the folder of the script, if results are collected there, too.
    trees: Vec<(OwnedFd, Tree)>,
}

/// Never follow a link, never block on a FIFO.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);
const READ_FOLDER: OFlags = READ.union(OFlags::DIRECTORY);

impl OutFolder {
    pub(super) fn open() -> io::Result<Self> {
        let folder = rustix::fs::open(layout::OUT, READ_FOLDER, Mode::empty())?;
        let files = openat(&folder, "files", READ_FOLDER, Mode::empty())?;
        let blobs = openat(&folder, "blobs", READ_FOLDER, Mode::empty())?;
        Ok(Self {
            folder,
            files,
            blobs,
            trees: Vec::new(),
        })
    }

    /// Files that change after `before` are results, too.
    pub(super) fn compare_with(&mut self, before: WorkspaceSnapshot) -> io::Result<()> {
        for tree in before.trees {
            let folder = rustix::fs::open(&tree.root, READ_FOLDER, Mode::empty())?;
            self.trees.push((folder, tree));
        }
        Ok(())
    }

    /// Sends `output.json`, rich results and files, within the limits. Skipped files are reported.
    pub(super) async fn send(&self, results: &mut wire::Stream, caps: &Caps) -> io::Result<()> {
        self.send_output(results, caps).await?;
        self.send_shown(results, caps).await?;
        let mut walk = ResultWalk {
            results,
            caps,
            before: None,
            sent: HashSet::new(),
            files: 0,
            bytes: 0,
            paths_bytes: 0,
            skipped: 0,
            buffer: vec![0; 64 * 1024],
        };
        walk.run(&self.files).await?;
        for (folder, before) in &self.trees {
            walk.before = Some(before);
            walk.run(folder).await?;
        }
        walk.blobs(&self.blobs).await?;
        let skipped_total = walk.skipped;
        wire::send(results, &Item::End { skipped_total }).await
    }

    async fn send_output(&self, results: &mut wire::Stream, caps: &Caps) -> io::Result<()> {
        let bad = |reason: &str| Item::BadOutput {
            reason: reason.to_owned(),
        };
        let file = match openat(&self.folder, "output.json", READ, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::LOOP) => return wire::send(results, &bad("it is a link")).await,
            Err(Errno::NXIO) => return wire::send(results, &bad("it is not a regular file")).await,
            Err(error) => return wire::send(results, &bad(&format!("it cannot be read: {error}"))).await,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return wire::send(results, &bad("it is not a regular file")).await;
        }
        if metadata.len() > caps.output_bytes {
            return wire::send(results, &Item::LargeOutput { size: metadata.len() }).await;
        }
        wire::send(results, &Item::Output { size: metadata.len() }).await?;
        copy_exactly(file, metadata.len(), results, &mut vec![0; 64 * 1024]).await
    }

    /// Our shim writes a regular file; anything else is ignored.
    async fn send_shown(&self, results: &mut wire::Stream, caps: &Caps) -> io::Result<()> {
        let Ok(file) = openat(&self.folder, "results.jsonl", READ, Mode::empty()).map(File::from) else {
            return Ok(());
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Ok(());
        }
        let (total, size) = (metadata.len(), metadata.len().min(caps.results_bytes));
        wire::send(results, &Item::Results { size, total }).await?;
        copy_exactly(file, size, results, &mut vec![0; 64 * 1024]).await
    }
}

/// A walk over `out/files`, and perhaps over the working folders.
struct ResultWalk<'a> {
    results: &'a mut wire::Stream,
    caps: &'a Caps,
    /// The working folders, with their content before the run.
    before: Option<&'a Tree>,
    /// Paths of sent files.
    sent: HashSet<String>,
    files: usize,
    bytes: u64,
    paths_bytes: usize,
    skipped: u64,
    buffer: Vec<u8>,
}

/// A folder to visit.
struct Pending {
    folder: OwnedFd,
    path: String,
    depth: usize,
}

impl ResultWalk<'_> {
    async fn run(&mut self, files: &OwnedFd) -> io::Result<()> {
        // A second descriptor: reading moves the position of the first, and the folder may have no name any more.
        let folder = openat(files, ".", READ_FOLDER, Mode::empty())?;
        let mut pending = vec![Pending {
            folder,
            path: String::new(),
            depth: 0,
        }];
        while let Some(next) = pending.pop() {
            self.folder(&next, &mut pending).await?;
        }
        Ok(())
    }

    async fn folder(&mut self, here: &Pending, pending: &mut Vec<Pending>) -> io::Result<()> {
        let Ok(names) = names(&here.folder) else {
            return self.skip(&here.path, "unreadable").await;
        };
        for name in &names {
            self.entry(here, name, pending).await?;
        }
        Ok(())
    }

    async fn entry(&mut self, here: &Pending, name: &CStr, pending: &mut Vec<Pending>) -> io::Result<()> {
        if self.before.is_some() && is_private(&here.path, &name.to_string_lossy()) {
            return Ok(());
        }
        let path = join(&here.path, name);
        if path.len() > self.caps.path_bytes {
            return self.skip(&path, "name").await;
        }
        let opened = match openat(&here.folder, name, READ, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::LOOP) if self.before.is_some_and(|before| before.is_own_link(&path)) => return Ok(()),
            Err(Errno::LOOP) => return self.link(here, name, path).await,
            Err(Errno::NXIO | Errno::NODEV) => return self.skip(&path, "special").await,
            Err(_) => return self.skip(&path, "unreadable").await,
        };
        let stat = rustix::fs::fstat(&opened)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if here.depth >= self.caps.files_depth => self.skip(&path, "too_deep").await,
            FileType::Directory => {
                // Descriptors limit the breadth: a folder beyond the limit is skipped.
                if pending.len() >= PENDING_MAX {
                    return self.skip(&path, "too_many").await;
                }
                pending.push(Pending {
                    folder: opened,
                    path,
                    depth: here.depth + 1,
                });
                Ok(())
            }
            FileType::RegularFile
                if self
                    .before
                    .is_some_and(|before| before.is_unchanged(&path, &stat)) =>
            {
                Ok(())
            }
            FileType::RegularFile if self.sent.contains(&path) => self.skip(&path, "duplicate").await,
            FileType::RegularFile => {
                let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                self.file(File::from(opened), path, size).await
            }
            _ => self.skip(&path, "special").await,
        }
    }

    /// Only links into `/skills` are followed: a program that moves a large file of its skill moves a link.
    async fn link(&mut self, here: &Pending, name: &CStr, path: String) -> io::Result<()> {
        let Some(file) = file_of_skill(&here.folder, name) else {
            return self.skip(&path, "link").await;
        };
        if self.sent.contains(&path) {
            return self.skip(&path, "duplicate").await;
        }
        let size = file.metadata()?.len();
        self.file(file, path, size).await
    }

    async fn file(&mut self, file: File, path: String, size: u64) -> io::Result<()> {
        if self.files >= self.caps.files || path.len() > self.caps.paths_bytes - self.paths_bytes {
            return self.skip(&path, "too_many").await;
        }
        if size > self.caps.files_bytes - self.bytes {
            return self.skip(&path, "too_large").await;
        }
        self.files += 1;
        self.bytes += size;
        self.paths_bytes += path.len();
        self.sent.insert(path.clone());
        wire::send(self.results, &Item::File { path, size }).await?;
        copy_exactly(file, size, self.results, &mut self.buffer).await
    }

    /// Sends files in `out/blobs` that are named by a digest, which the host verifies.
    async fn blobs(&mut self, blobs: &OwnedFd) -> io::Result<()> {
        let folder = openat(blobs, ".", READ_FOLDER, Mode::empty())?;
        let (mut count, mut bytes) = (0, 0);
        for name in names(&folder).unwrap_or_default() {
            let shown = join("/sandbox/out/blobs", &name);
            let Ok(digest) = name.to_str().map_err(drop).and_then(|name| {
                if is_digest(name) {
                    Ok(name.to_owned())
                } else {
                    Err(())
                }
            }) else {
                self.skip(&shown, "name").await?;
                continue;
            };
            let file = match openat(&folder, name.as_c_str(), READ, Mode::empty()) {
                Ok(file) => File::from(file),
                Err(Errno::LOOP) => {
                    self.skip(&shown, "link").await?;
                    continue;
                }
                Err(_) => {
                    self.skip(&shown, "unreadable").await?;
                    continue;
                }
            };
            let metadata = file.metadata()?;
            let size = metadata.len();
            let refused = if !metadata.is_file() {
                Some("special")
            } else if count >= self.caps.blobs {
                Some("too_many")
            } else if size > self.caps.blobs_bytes - bytes {
                Some("too_large")
            } else {
                None
            };
            if let Some(reason) = refused {
                self.skip(&shown, reason).await?;
                continue;
            }
            (count, bytes) = (count + 1, bytes + size);
            wire::send(self.results, &Item::Blob { name: digest, size }).await?;
            copy_exactly(file, size, self.results, &mut self.buffer).await?;
        }
        Ok(())
    }

    async fn skip(&mut self, path: &str, reason: &str) -> io::Result<()> {
        self.skipped += 1;
        if self.skipped > self.caps.skipped_named as u64 {
            return Ok(());
        }
        let item = Item::Skipped {
            path: head(path, self.caps.path_bytes).to_owned(),
            reason: reason.to_owned(),
        };
        wire::send(self.results, &item).await
    }
}

/// The regular file of a skill that a link leads to by its plain path. Nothing can change `/skills`, and no other
/// link on the way is followed.
fn file_of_skill(folder: &OwnedFd, name: &CStr) -> Option<File> {
    let target = rustix::fs::readlinkat(folder, name, Vec::new()).ok()?;
    let (folders, name) = target.to_str().ok()?.strip_prefix("/skills/")?.rsplit_once('/')?;
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let mut place = rustix::fs::open("/skills", READ_FOLDER, Mode::empty()).ok()?;
    for part in folders.split('/') {
        place = is_plain(part)
            .then(|| openat(&place, part, READ_FOLDER, Mode::empty()).ok())
            .flatten()?;
    }
    let file = File::from(openat(&place, name, READ, Mode::empty()).ok()?);
    (is_plain(name) && file.metadata().ok()?.is_file()).then_some(file)
}

/// Names in a folder, sorted.
fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let entries = Dir::read_from(folder)?.collect::<Result<Vec<_>, _>>()?;
    let names = entries.into_iter().map(|entry| entry.file_name().to_owned());
    let mut names: Vec<_> = names
        .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Maximum number of folders whose descriptors wait.
const PENDING_MAX: usize = 1000;

/// Sends exactly `size` bytes. If a file is shorter, although no process runs, zeros are sent.
async fn copy_exactly(
    mut file: File,
    size: u64,
    results: &mut wire::Stream,
    buffer: &mut [u8],
) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read(&mut buffer[..wanted])?;
        let sent = if read == 0 {
            buffer[..wanted].fill(0);
            wanted
        } else {
            read
        };
        results.write_all(&buffer[..sent]).await?;
        left -= sent as u64;
    }
    Ok(())
}

/// `folder/name`, with backslashes, control characters and invalid UTF-8 written `\xNN`, so that distinct names stay distinct and no
/// terminal that lists the tar obeys one.
fn join(folder: &str, name: &CStr) -> String {
    let mut path = String::with_capacity(folder.len() + name.to_bytes().len() + 1);
    if !folder.is_empty() {
        path.push_str(folder);
        path.push('/');
    }
    for chunk in OsStr::from_bytes(name.to_bytes()).as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let text = character.encode_utf8(&mut bytes);
            if character == '\\' || character.is_control() {
                escape(text.as_bytes(), &mut path);
            } else {
                path.push_str(text);
            }
        }
        escape(chunk.invalid(), &mut path);
    }
    path
}

fn escape(bytes: &[u8], path: &mut String) {
    for byte in bytes {
        path.push_str(&format!("\\x{byte:02x}"));
    }
}

/// As much of a text as fits into this many bytes.
fn head(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-09.
    #[test]
    fn escapes_names_that_are_not_utf8() {
        assert_eq!(join("a", c"b\xffc"), "a/b\\xffc");
        assert_eq!(join("a", c"b\\xffc"), "a/b\\x5cxffc");
        assert_eq!(join("", c"plain"), "plain");
    }

    /// O-09.
    #[test]
    fn escapes_control_characters_in_names() {
        assert_eq!(join("a", c"b\n\x1b[31m\x7f"), "a/b\\x0a\\x1b[31m\\x7f");
        assert_eq!(join("", c"\u{9b}ü \u{1f600}"), "\\xc2\\x9bü \u{1f600}");
    }
}
