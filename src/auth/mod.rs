//! API keys, their scopes, and [`Caller`], which only a check can create. Pure.

mod key;

pub use key::{ApiKey, Caller, InvalidKey, KeyRecord, Scope, Scopes};
