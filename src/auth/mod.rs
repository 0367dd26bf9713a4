//! Who calls: API keys, their scopes, and the [`Caller`] that only a check can make. Pure.

mod key;

pub use key::{ApiKey, Caller, InvalidKey, KeyRecord, Scope, Scopes};
