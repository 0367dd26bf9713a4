//! Limits of the Model Context Protocol.

use std::time::Duration;

use super::{KIB, MIB, OUTPUT_BYTES_MAX};

/// One message.
pub const MCP_BODY_BYTES_MAX: u64 = 4 * MIB;
/// One resource: the largest output fits.
pub const MCP_RESOURCE_BYTES_MAX: u64 = OUTPUT_BYTES_MAX;
/// Part of [`ANSWERS_BYTES_MAX`](super::ANSWERS_BYTES_MAX) that a call holds while it reads a resource: bytes, base64, JSON and the response.
pub const MCP_READ_BYTES_HELD: u64 = 4 * MCP_RESOURCE_BYTES_MAX;
/// Skills that are offered as tools of their own. More of them would fill a model's context.
pub const MCP_SKILL_TOOLS_MAX: usize = 40;
/// Output or log in a result; longer ones are cut and linked.
pub const MCP_TEXT_BYTES_MAX: usize = 64 * 1024;
/// A text file in a result; larger ones are linked.
pub const MCP_FILE_TEXT_BYTES_MAX: u64 = 16 * KIB;
/// An image in a result; larger ones are linked.
pub const MCP_IMAGE_BYTES_MAX: u64 = MIB;
/// Images and text files of one result together; further ones are linked.
pub const MCP_FILES_BYTES_MAX: u64 = 4 * MIB;
/// Files that one result names.
pub const MCP_FILES_MAX: usize = 100;
/// Skills of one answer to `skills/list`, each with the digests of all its files.
pub const MCP_SKILLS_PER_PAGE: u32 = 20;
/// Skills that a search returns.
pub const MCP_FOUND_MAX: usize = 20;
/// Time for which a client may cache lists. Any push changes them.
pub const MCP_LIST_AGE_MAX: Duration = Duration::from_secs(60);
/// Time for the last progress of a call that has ended.
pub const MCP_PROGRESS_FLUSH_MAX: Duration = Duration::from_secs(1);
/// Characters of `Mcp-Session-Id` and of a request's id that are compared.
pub const MCP_ID_CHARS_MAX: usize = 64;
/// Time for answers after a client over stdio has closed its end.
pub const MCP_DRAIN_MAX: Duration = Duration::from_secs(5);
/// Concurrent requests of one client over stdio.
pub const MCP_RELAYED_MAX: usize = 64;
