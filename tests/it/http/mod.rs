//! The REST door, asked without a network; only `serve` opens real connections.

pub(crate) mod audit;
mod blobs;
mod browser;
mod changes;
pub(crate) mod client;
mod code;
mod conformance;
mod deletion;
mod document;
mod events;
mod executions;
mod files;
mod filters;
#[cfg(target_os = "linux")]
mod floods;
mod keys;
mod logs;
pub(crate) mod matrix;
mod mcp;
mod mcp_skills;
mod metrics;
#[cfg(target_os = "linux")]
mod prove;
mod requests;
mod rerun;
mod results;
mod sdk;
mod secrets;
mod serve;
mod server;
mod session;
mod sign_in;
mod skill_files;
mod skills;
mod stats;
mod tenants;
mod tools;
mod ui;
mod usage;
mod webhooks;
