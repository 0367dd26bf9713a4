//! The REST door, asked without a network; only `serve` opens real connections.

mod blobs;
mod client;
mod code;
mod conformance;
mod deletion;
mod document;
mod executions;
mod files;
mod keys;
mod logs;
mod matrix;
mod requests;
mod secrets;
mod serve;
mod skills;
mod tenants;
mod tools;
mod webhooks;
