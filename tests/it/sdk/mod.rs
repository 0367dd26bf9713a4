//! The client libraries of `web/sdk`: compared with the API, served, printed and run.

mod declared;
#[cfg(target_os = "linux")]
mod languages;
mod matches;
mod printed;
