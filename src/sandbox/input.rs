//! What comes with a request and is placed before the program starts.

use std::fs::File;

use crate::ids::Digest;

/// One file that comes with a request.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Relative path below `/workspace`.
    pub path: String,
    /// Content.
    pub content: bytes::Bytes,
}

/// One blob that comes with a request.
#[derive(Debug)]
pub struct InputBlob {
    /// Digest of its content, and its name in `/blobs`.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
    /// Content, from the beginning.
    pub content: File,
}
