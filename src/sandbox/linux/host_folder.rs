//! Folders of the host that an operator adds to native sandboxes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::visible::{ETC_FILES, ETC_FOLDERS, PROGRAMS};
use crate::error::quoted;

/// An existing folder of the host that every user may read, and that is nobody's home and nothing of the system's state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostFolder(String);

/// Folders whose content sandboxes replace, or which have state and keys of the host or its users.
const REFUSED: &[&str] = &[
    "/blobs",
    "/boot",
    "/dev",
    "/etc/skillbox",
    "/etc/ssh",
    "/etc/ssl/private",
    "/home",
    "/node_modules",
    "/proc",
    "/root",
    "/run",
    "/sandbox",
    "/skills",
    "/sys",
    "/tmp",
    "/var/run",
    "/workspace",
];
/// First user id of people in `/etc/passwd`.
const PERSON_MIN: u32 = 1000;

impl HostFolder {
    /// Checks a configured folder. Errors say what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let problem = |why: &str| format!("{} {why}", quoted(text));
        let path = Path::new(text);
        if !path.is_absolute() || text.chars().any(char::is_control) {
            return Err(problem("is not an absolute path"));
        }
        let canonical = fs::canonicalize(path).map_err(|error| {
            format!(
                "{} cannot be opened ({error}); name an existing folder",
                quoted(text)
            )
        })?;
        if canonical.as_os_str() != path.as_os_str() {
            let target = canonical.display().to_string();
            return Err(problem(&format!(
                "is another path of {}; write that",
                quoted(&target)
            )));
        }
        if path.components().count() < 3 {
            return Err(problem(
                "shows too much of the host; name the folder inside that programs need",
            ));
        }
        let shown = PROGRAMS.iter().chain(ETC_FILES).chain(ETC_FOLDERS);
        if shown.into_iter().any(|shown| path.starts_with(shown)) {
            return Err(problem("is always visible; remove it"));
        }
        if let Some(private) = homes().iter().find(|home| overlap(path, home)) {
            let private = private.display().to_string();
            return Err(problem(&format!(
                "is, contains or belongs to the home folder {}; copy the files to another folder, such as /opt/NAME",
                quoted(&private)
            )));
        }
        if REFUSED.iter().any(|refused| overlap(path, Path::new(refused))) {
            return Err(problem(
                "is never shown to programs; copy the files to another folder, such as /opt/NAME",
            ));
        }
        let metadata = fs::metadata(path).map_err(|error| problem(&format!("cannot be read ({error})")))?;
        let mode = metadata.permissions().mode();
        if !metadata.is_dir() || mode & 0o005 != 0o005 {
            return Err(problem(
                "is not a folder that every user may read; run chmod o+rx, or remove it",
            ));
        }
        if mode & 0o002 != 0 {
            return Err(problem(
                "can be changed by every user; run chmod o-w, or remove it",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// Fails if the folder shows `private`, a canonical path, or a part of it.
    pub fn check_apart(&self, private: &Path) -> Result<(), String> {
        if overlap(Path::new(&self.0), private) {
            let private = private.display().to_string();
            return Err(format!(
                "{} would show the data in {} to programs; remove it, or move one of them",
                quoted(&self.0),
                quoted(&private)
            ));
        }
        Ok(())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether one contains the other, or both are the same.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Homes of root, of people and of this process.
fn homes() -> Vec<PathBuf> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let listed = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let user: u32 = fields.next()?.parse().ok()?;
        (user == 0 || user >= PERSON_MIN).then(|| fields.nth(2).map(PathBuf::from))?
    });
    // `/` is no home that could be kept apart.
    let homes = own.into_iter().chain(listed);
    homes.filter(|home| home.components().count() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outside the temporary folder, which is refused.
    fn folder(mode: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        folder
    }

    fn parse(path: &Path) -> Result<HostFolder, String> {
        HostFolder::parse(path.to_str().unwrap())
    }

    #[test]
    fn accepts_folder_that_every_user_may_read() {
        let folder = folder(0o755);
        let parsed = parse(folder.path()).unwrap();
        assert_eq!(Path::new(parsed.as_str()), folder.path());
        assert_eq!(parsed.check_apart(Path::new("/var/lib/skillbox")), Ok(()));
    }

    /// S-40.
    #[test]
    fn rejects_system_folders_homes_and_private_folders() {
        let passwd = fs::read_to_string("/etc/passwd").unwrap();
        assert!(passwd.contains(":/root:"));
        for refused in [
            "/",
            "/etc",
            "/run",
            "/home",
            "/root",
            "/root/x",
            "/var",
            "/proc/self",
            "/dev/shm",
            "/tmp",
            "/sys/kernel",
            "/boot",
            "/run/lock",
            "/usr",
            "/usr/share",
            "/etc/alternatives",
            "etc",
            "",
            ".",
            "/nowhere/at/all",
            "/var/../etc",
            "/etc/",
            "/etc/passwd",
            "/etc/ssl/private",
            "/etc/skillbox",
            "/opt\n",
        ] {
            assert!(HostFolder::parse(refused).is_err(), "{refused:?}");
        }
        for (mode, part) in [
            (0o750, "every user may read"),
            (0o700, "every user may read"),
            (0o777, "changed by every user"),
        ] {
            let error = parse(folder(mode).path()).unwrap_err();
            assert!(error.contains(part), "{mode:o}: {error}");
        }
        let outer = folder(0o755);
        let link = outer.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(parse(&link).unwrap_err().contains("`/etc`"));
    }

    /// S-40.
    #[test]
    fn rejects_folders_around_and_inside_private_data() {
        let outer = folder(0o755);
        let inner = outer.path().join("data");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
        let (outer_folder, inner_folder) = (parse(outer.path()).unwrap(), parse(&inner).unwrap());
        assert!(outer_folder.check_apart(&inner).is_err());
        assert!(inner_folder.check_apart(&inner).is_err());
        assert!(inner_folder.check_apart(outer.path()).is_err());
    }
}
