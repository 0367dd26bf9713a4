//! Runs one job in a sandbox.
