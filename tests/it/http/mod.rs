//! The REST door, asked without a network; only `serve` opens real connections.

mod blobs;
mod client;
mod code;
mod conformance;
mod deletion;
mod document;
mod events;
mod executions;
mod files;
#[cfg(target_os = "linux")]
mod floods;
mod keys;
mod logs;
mod matrix;
mod metrics;
#[cfg(target_os = "linux")]
mod prove;
mod requests;
mod rerun;
mod results;
mod secrets;
mod serve;
mod skill_files;
mod skills;
mod tenants;
mod tools;
mod webhooks;
