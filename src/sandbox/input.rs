//! Files of a request, placed before the program starts.

use std::fs::File;

use crate::ids::Digest;

#[derive(Clone, Debug)]
pub struct InputFile {
    /// Relative path below `/workspace`. An empty folder ends in `/`.
    pub path: String,
    pub content: bytes::Bytes,
}

impl InputFile {
    /// The path, if this is an empty folder.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        self.path.strip_suffix('/')
    }
}

#[derive(Debug)]
pub struct InputBlob {
    /// Digest of its content, and its name in `/blobs`.
    pub digest: Digest,
    pub size: u64,
    pub content: File,
}
