//! All tests that need more than one room, in one binary: it is linked once.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy sees tests only in functions marked so"
)]

mod cli_docs;
mod cli_hostile;
mod cli_local;
mod cli_remote;
mod cli_run;
mod cli_serve;
mod cli_shell;
mod cli_start;
mod engine;
mod http;
mod images;
mod lifecycle;
mod run;
mod sandbox_confinement;
mod sandbox_exhaustion;
mod sandbox_inputs;
#[cfg(target_os = "linux")]
mod sandbox_native;
mod sandbox_oracles;
mod sandbox_output;
mod sandbox_posture;
mod sandbox_streams;
mod sandbox_survivors;
mod server;
mod world;
