//! Unpacks a zip to disk, within the limits of the checked directory.

use std::fs::{File, FileTimes};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use flate2::bufread::DeflateDecoder;

use crate::bundle::{
    Entry, Error, Listing,
    disk::{self, ReadAt as _},
    load::is_declaration,
    transfer::{Content, transfer},
    zip_directory::{self, Kind, Member},
};

/// Modification time of all unpacked files and folders, in seconds since the Unix epoch (1980-01-01, the first that a
/// zip supports). Bytecode caches are validated by it.
pub const MTIME_SECONDS: u64 = 315_532_800;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Execute,
}

/// Resource forks that the archiver of macOS adds.
const MACOS_FOLDER: &str = "__MACOSX/";
/// Files that desktops create in folders.
const DROPPINGS: [&str; 3] = [".DS_Store", "Thumbs.db", "desktop.ini"];

/// Checks a zip by its directory (counts, sizes, names, modes, duplicates, overlap), then inflates it into `into`, an
/// existing, empty, private folder: files 0644 or 0755, folders 0755, all with one fixed time.
///
/// If everything is in one top-level folder with SKILL.md, as `zip -r x.zip my-skill/` creates, that folder is
/// removed from all paths. `__MACOSX/` and files of desktops are omitted. An entry never produces more than it
/// declares, so the limits apply to produced bytes; memory stays constant.
///
/// # Errors
///
/// Names the entry. The caller removes the folder with what was written.
pub fn unpack(archive: &File, into: &Path) -> Result<Listing, Error> {
    let members: Vec<_> = zip_directory::read(archive)?
        .into_iter()
        .filter(is_wanted)
        .collect();
    let folder = top_folder(&members).map(str::to_owned);
    let skip = folder.as_ref().map_or(0, |folder| folder.len() + 1);
    let mut entries = Vec::with_capacity(members.len());
    for member in &members {
        let path = &member.path[skip..];
        make_parents(into, path)?;
        let content = write(archive, member, &into.join(path))?;
        entries.push(Entry {
            path: path.to_owned(),
            size: content.bytes,
            sha256: content.sha256,
            executable: member.executable,
        });
    }
    let listing = Listing::new(entries, folder);
    settle_folders(into, &listing)?;
    Ok(listing)
}

fn is_wanted(member: &Member) -> bool {
    let name = member.path.rsplit('/').next().unwrap_or_default();
    member.kind == Kind::File && !member.path.starts_with(MACOS_FOLDER) && !DROPPINGS.contains(&name)
}

/// The only top-level folder, with SKILL.md or skill.toml.
fn top_folder(members: &[Member]) -> Option<&str> {
    let (folder, _) = members.first()?.path.split_once('/')?;
    let inside = |path: &str| {
        path.strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'))
            .map(is_declaration)
    };
    let found: Option<Vec<bool>> = members.iter().map(|member| inside(&member.path)).collect();
    found?.contains(&true).then_some(folder)
}

pub(super) fn make_parents(into: &Path, path: &str) -> Result<(), Error> {
    for (at, _) in path.match_indices('/') {
        match disk::make_folder(&into.join(&path[..at])) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

fn write(archive: &File, member: &Member, to: &Path) -> Result<Content, Error> {
    let for_what = if member.executable {
        Use::Execute
    } else {
        Use::Read
    };
    let mut file = disk::create(to, for_what)?;
    let content = inflate(archive, member, &mut file)?;
    if content.bytes != member.size {
        return Err(Error::entry(
            &member.path,
            "contains fewer bytes than declared; pack the archive again",
        ));
    }
    if content.crc32 != member.crc32 {
        return Err(Error::entry(
            &member.path,
            "is damaged (wrong checksum); pack the archive again",
        ));
    }
    disk::settle_file(&file, for_what, times())?;
    Ok(content)
}

fn inflate(archive: &File, member: &Member, to: &mut File) -> Result<Content, Error> {
    let mut section = Section {
        archive,
        at: member.data,
        left: member.packed,
    };
    let result = if member.deflated {
        let mut decoder = DeflateDecoder::new(BufReader::new(&mut section));
        transfer(&mut decoder, to, member.size).and_then(|content| {
            if decoder.total_in() == member.packed {
                Ok(content)
            } else {
                Err(io::ErrorKind::InvalidData.into())
            }
        })
    } else {
        transfer(&mut section, to, member.size)
    };
    result.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::entry(
                &member.path,
                "is damaged, or contains more than declared; pack the archive again",
            )
        }
        _ => error.into(),
    })
}

/// Folders last: each file created in them changes their time.
///
/// # Errors
///
/// A folder of the listing is missing, or the file system fails.
pub fn settle_folders(into: &Path, listing: &Listing) -> io::Result<()> {
    let folders = listing
        .entries()
        .iter()
        .flat_map(|entry| entry.path.match_indices('/').map(|(at, _)| &entry.path[..at]));
    let folders: std::collections::BTreeSet<_> = folders.collect();
    for folder in folders {
        disk::settle_folder(&into.join(folder), times())?;
    }
    Ok(())
}

pub(super) fn times() -> FileTimes {
    let fixed = SystemTime::UNIX_EPOCH + Duration::from_secs(MTIME_SECONDS);
    FileTimes::new().set_accessed(fixed).set_modified(fixed)
}

struct Section<'a> {
    archive: &'a File,
    at: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.archive.read_at(&mut buffer[..wanted], self.at)?;
        if read == 0 && wanted != 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}
