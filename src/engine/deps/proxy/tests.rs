//! Hostile builders.
