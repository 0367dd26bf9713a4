//! All tests that need more than one room, in one binary: it is linked once.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy sees tests only in functions marked so"
)]

mod http;
mod run;
mod sandbox_confinement;
mod sandbox_exhaustion;
mod sandbox_inputs;
mod sandbox_oracles;
mod sandbox_output;
mod sandbox_posture;
mod sandbox_streams;
mod sandbox_survivors;
mod world;
