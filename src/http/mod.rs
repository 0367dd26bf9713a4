//! The REST door: translates, never decides.

mod activity;
mod attachment;
mod body;
mod exchange;
mod host;
mod problem;
mod range;
mod serve;
mod throttle;

pub use problem::Problem;
pub use serve::{App, Bounds, Peer, serve};
