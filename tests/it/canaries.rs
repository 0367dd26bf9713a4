//! Files with a secret token around a world: no program may change them, and the token may appear nowhere.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use skillbox::execution::Outcome;

/// A file of this host that no sandbox may read or change.
pub(crate) struct Canary {
    pub(crate) path: PathBuf,
    content: String,
    planted: Metadata,
}

impl Canary {
    pub(crate) fn plant(folder: &Path, token: &str) -> Self {
        let path = folder.join(format!("canary-{}", uuid::Uuid::now_v7()));
        let content = format!("{token} of {}", path.display());
        fs::write(&path, &content).unwrap();
        let planted = fs::metadata(&path).unwrap();
        Self {
            path,
            content,
            planted,
        }
    }

    pub(crate) fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.path).unwrap(), self.content);
        let now = fs::metadata(&self.path).unwrap();
        let stamp = |m: &Metadata| {
            (
                m.mode(),
                m.uid(),
                m.gid(),
                m.mtime(),
                m.mtime_nsec(),
                m.ino(),
                m.nlink(),
            )
        };
        let path = self.path.display();
        assert_eq!(stamp(&now), stamp(&self.planted), "{path} was changed");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A program may repeat paths it was given; no program knows the token.
pub(crate) fn assert_untold(token: &str, outcome: &Outcome) {
    let output = outcome.output.as_ref().map_or("", |output| output.as_str());
    let error = outcome.error.as_ref().map_or("", |error| &error.message);
    let logs = &outcome.logs;
    for text in [output.as_bytes(), error.as_bytes(), &logs.stdout, &logs.stderr] {
        assert!(!contains(text, token), "the token of a canary came out");
    }
}

pub(crate) fn assert_not_stored(token: &str, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        let is_canary = entry.file_name().to_string_lossy().starts_with("canary-");
        if kind.is_dir() {
            assert_not_stored(token, &entry.path());
        } else if kind.is_file() && !is_canary {
            let found = contains(&fs::read(entry.path()).unwrap(), token);
            assert!(!found, "{} holds the token of a canary", entry.path().display());
        }
    }
}

fn contains(text: &[u8], token: &str) -> bool {
    String::from_utf8_lossy(text).contains(token)
}
