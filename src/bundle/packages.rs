//! Unpacks the tar of an installer into a folder of packages.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;

use crate::bundle::{
    Entry, Error, Listing, disk,
    names::check_path,
    transfer::transfer,
    unpack::{Use, make_parents, settle_folders, times},
};
use crate::limits;

/// Unpacks a tar of regular files into `into`, an existing, empty, private folder. All files become executable, since
/// installers do not report which are programs. Names and sizes are checked as hostile; more than `bytes_max` is
/// rejected.
///
/// # Errors
///
/// Names the entry. The caller removes the folder with what was written.
pub fn unpack_packages(mut tar: &File, into: &Path, bytes_max: u64) -> Result<Listing, Error> {
    tar.rewind()?;
    let mut archive = tar::Archive::new(io::BufReader::new(tar));
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for member in archive.entries()? {
        let mut member = member?;
        let path = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        if member.header().entry_type() != tar::EntryType::Regular {
            return Err(Error::entry(
                &path,
                "of the installed packages is not a regular file",
            ));
        }
        check_path(&path).map_err(|rule| Error::entry(&path, rule))?;
        bytes += member.size();
        if entries.len() >= limits::PACKAGES_FILES_MAX || bytes > bytes_max {
            let (files, mebibytes) = (limits::PACKAGES_FILES_MAX, bytes_max / limits::MIB);
            return Err(Error::TooLarge(format!(
                "the packages have more than {files} files or {mebibytes} MiB; ask for fewer"
            )));
        }
        entries.push(write(&mut member, path, into)?);
    }
    let listing = Listing::new(entries, None);
    settle_folders(into, &listing)?;
    Ok(listing)
}

fn write(member: &mut tar::Entry<'_, impl io::Read>, path: String, into: &Path) -> Result<Entry, Error> {
    let taken = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            Error::entry(&path, "is in the installed packages twice")
        }
        _ => error.into(),
    };
    make_parents(into, &path)?;
    let mut file = disk::create(&into.join(&path), Use::Execute).map_err(taken)?;
    let size = member.size();
    let content = transfer(member, &mut file, size)?;
    if content.bytes != size {
        return Err(Error::entry(&path, "is truncated"));
    }
    disk::settle_file(&file, Use::Execute, times())?;
    Ok(Entry {
        path,
        size,
        sha256: content.sha256,
        executable: true,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::bundle::list_packages;

    const BYTES_MAX: u64 = limits::MIB;

    fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> File {
        let mut builder = tar::Builder::new(tempfile::tempfile().unwrap());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            // Past the writer's own checks.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(content.len() as u64);
            header.set_mode(0o4777);
            header.set_cksum();
            builder.append(&header, *content).unwrap();
        }
        let mut file = builder.into_inner().unwrap();
        file.flush().unwrap();
        io::Seek::rewind(&mut file).unwrap();
        file
    }

    const PLAIN: tar::EntryType = tar::EntryType::Regular;

    #[test]
    fn unpacks_packages_as_listed() {
        let into = tempfile::tempdir().unwrap();
        let tar = tar_of(&[
            ("a/b.so", PLAIN, b"1"),
            ("A/b.so", PLAIN, b"2"),
            ("c.py", PLAIN, b""),
        ]);
        let listing = unpack_packages(&tar, into.path(), BYTES_MAX).unwrap();
        assert_eq!(listing.entries().len(), 3);
        assert_eq!(list_packages(into.path()).unwrap().digest(), listing.digest());
    }

    /// Z-27.
    #[test]
    fn rejects_package_paths_outside_the_folder_and_special_files() {
        let hostile: [&[(&str, tar::EntryType, &[u8])]; 9] = [
            &[("../x", PLAIN, b"")],
            &[("/etc/x", PLAIN, b"")],
            &[("a/../../x", PLAIN, b"")],
            &[("link", tar::EntryType::Symlink, b"")],
            &[("link", tar::EntryType::Link, b"")],
            &[("pipe", tar::EntryType::Fifo, b"")],
            &[("a", PLAIN, b""), ("a", PLAIN, b"")],
            &[("a", PLAIN, b""), ("a/b", PLAIN, b"")],
            &[("a\\b", PLAIN, b"")],
        ];
        for entries in hostile {
            let into = tempfile::tempdir().unwrap();
            assert!(
                unpack_packages(&tar_of(entries), into.path(), BYTES_MAX).is_err(),
                "{entries:?}"
            );
        }
    }
}
