//! The Model Context Protocol: skills and code as tools, and skills as resources. Translates, never decides.
//!
//! Both transports call the functions of `api` that the REST API calls.

mod arguments;
mod call;
mod catalog;
mod content;
mod failure;
mod handler;
mod message;
mod read;
mod running;
mod skills;
mod stdio;
mod streamable_http;
mod uri;

use std::collections::BTreeSet;

use crate::auth::Caller;
use crate::engine::Engine;
use crate::execution::{Execution, Links};
use crate::skill::SkillName;

pub use message::{Message, MessageKind, rejection};
pub use running::{CallId, RunningCalls};
pub use stdio::serve_stdio;
pub use streamable_http::answer;

use running::CancelHandle;

/// Who sends a message, and what the client chose when it connected.
#[derive(Clone, Debug)]
pub struct McpClient {
    pub engine: Engine,
    pub caller: Caller,
    /// Makes URLs for files that are too large for a message; `None` without a server.
    pub links: Option<LinkMaker>,
    /// As in the server's log.
    pub request_id: String,
    /// Skills that are always offered as tools; if empty, all of them unless there are too many.
    pub pinned: BTreeSet<SkillName>,
}

/// Makes signed links that begin with a URL of the server.
#[derive(Clone, Debug)]
pub struct LinkMaker {
    pub base_url: String,
    pub make: fn(&Engine, &Execution, &str) -> Links,
}

/// Answers the messages of one client.
#[derive(Clone, Debug)]
pub struct Handler {
    client: McpClient,
    /// Arguments of the tool call as they were sent, since a parsed number may lose digits.
    arguments: Option<Box<serde_json::value::RawValue>>,
    /// Set if another message can cancel this one.
    cancel: Option<CancelHandle>,
}
