//! Files of a request, placed before the program starts.

use std::fs::File;

use crate::ids::Digest;

#[derive(Clone, Debug)]
pub struct InputFile {
    /// Relative path below `/workspace`.
    pub path: String,
    pub content: bytes::Bytes,
}

#[derive(Debug)]
pub struct InputBlob {
    /// Digest of its content, and its name in `/blobs`.
    pub digest: Digest,
    pub size: u64,
    pub content: File,
}
