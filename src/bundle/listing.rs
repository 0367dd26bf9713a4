//! The content of a bundle, and the digest that identifies it.

use crate::ids::Digest;

/// The files of a bundle, in byte order of path. Folders exist only where files need them.
#[derive(Debug, Clone)]
pub struct Listing {
    entries: Vec<Entry>,
    folder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative path with `/`, at most 240 bytes, without control or invisible characters.
    pub path: String,
    pub size: u64,
    pub sha256: Digest,
    pub executable: bool,
}

impl Listing {
    pub(super) fn new(mut entries: Vec<Entry>, folder: Option<String>) -> Self {
        entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Self { entries, folder }
    }

    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The only top-level folder of the archive, which is not part of the paths.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Entry> {
        let at = self
            .entries
            .binary_search_by(|entry| entry.path.as_str().cmp(path))
            .ok()?;
        self.entries.get(at)
    }

    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// The SHA-256 of the canonical listing: the line `skillbox-bundle-1`, then for each file in byte order of path
    /// the line
    ///
    /// ```text
    /// <x or -> <size in decimal> <sha256 of the content in lower-case hex> <path>
    /// ```
    ///
    /// each ended by a line feed, `x` for an executable file. Paths contain no line feed, so the text is unambiguous.
    /// Times, owners, other permissions, folders and the archive's layout are not included.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut text = "skillbox-bundle-1\n".to_owned();
        for Entry {
            path,
            size,
            sha256,
            executable,
        } in &self.entries
        {
            let mark = if *executable { 'x' } else { '-' };
            text += &format!("{mark} {size} {} {path}\n", sha256.hex());
        }
        Digest::of(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, content: &str, executable: bool) -> Entry {
        Entry {
            path: path.to_owned(),
            size: content.len() as u64,
            sha256: Digest::of(content.as_bytes()),
            executable,
        }
    }

    /// Z-25: other bytes are another identity.
    #[test]
    fn digest_depends_only_on_executed_content() {
        let listing = |entries: &[Entry]| Listing::new(entries.to_vec(), None);
        let (a, b) = (entry("a", "1", false), entry("b", "2", false));
        let digest = listing(&[a.clone(), b.clone()]).digest();
        assert_eq!(
            digest.to_string(),
            "sha256:5fbfc5be92116f5f3dd044346eb9de72a5d8745ad503c72192036ff83aba30cd"
        );
        assert_eq!(listing(&[b.clone(), a.clone()]).digest(), digest);
        assert_eq!(
            Listing::new(vec![a.clone(), b], Some("x".to_owned())).digest(),
            digest
        );
        for other in [
            entry("b", "3", false),
            entry("b", "2", true),
            entry("c", "2", false),
        ] {
            assert_ne!(listing(&[a.clone(), other]).digest(), digest);
        }
    }

    #[test]
    fn finds_file_by_path() {
        let listing = Listing::new(vec![entry("b/c", "22", false), entry("a", "1", false)], None);
        assert_eq!(listing.find("b/c").unwrap().size, 2);
        assert!(listing.find("b").is_none());
        assert_eq!(listing.bytes_total(), 3);
    }
}
