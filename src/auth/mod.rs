//! API keys, their scopes, sessions, the audit trail, and [`Caller`], which only a check can create. Pure.

mod audit;
mod caller;
mod key;
mod session;

pub use audit::{AuditAction, AuditEntry, UnknownAction};
pub use caller::{Caller, RequestSource};
pub use key::{ApiKey, InvalidKey, KeyRecord, Scope, Scopes};
pub use session::{
    InvalidSession, InvalidToken, KeyedSession, PresentedSession, SessionRecord, SessionToken, SignInLink,
};
