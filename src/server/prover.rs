//! How this server proves: with its own program and configuration.

use crate::config::{Config, DataFolder};
use crate::engine::{Engine, ProofSettings};

/// Allows the engine to prove, if this program can be started again.
pub(super) fn enable(engine: &Engine, config: &Config, folder: &DataFolder) {
    match std::env::current_exe() {
        Ok(program) => engine.proofs().enable(ProofSettings {
            program,
            variables: config.as_variables(),
            report: folder.path().join("proof.json"),
        }),
        Err(error) => tracing::warn!(%error, "The path of this program is unknown, so the API cannot prove"),
    }
}
