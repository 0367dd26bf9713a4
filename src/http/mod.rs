//! The REST door: translates, never decides.

mod activity;
mod body;
mod host;
mod problem;
mod serve;
mod throttle;

pub use problem::Problem;
pub use serve::{App, Bounds, Peer, serve};
