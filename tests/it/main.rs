//! All tests that need more than one room, in one binary: it is linked once.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod cli_docs;
mod cli_hostile;
mod cli_local;
mod cli_remote;
mod cli_run;
mod cli_serve;
mod cli_shell;
mod cli_start;
mod http_serve;
mod lifecycle;
mod run;
mod server;
mod world;
