//! Skillbox runs AI-agent skills and code in hardened sandboxes.
//!
//! Modules belong to layers and use lower layers only: see `docs/ARCHITECTURE.md`; `tests/tidy` enforces it.

pub mod api;
pub mod auth;
pub mod blob;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod egress;
pub mod engine;
pub mod error;
pub mod execution;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod guest;
pub mod http;
pub mod ids;
pub mod limits;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod prove;
pub mod sandbox;
pub mod secret;
pub mod server;
pub mod skill;
pub mod store;
pub mod sys;
pub mod telemetry;
pub mod webhook;
