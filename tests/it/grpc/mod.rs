//! The gRPC API: the same as the REST API in what it accepts, runs, rejects and records.

mod access;
mod client;
mod connections;
mod executions;
mod health;
mod parity;
mod port;
mod schema;
mod skills;
