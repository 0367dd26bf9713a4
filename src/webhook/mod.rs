//! Webhooks, as far as they are pure: where they may go, and how they are signed.

mod callback;
mod policy;
mod signature;

pub use callback::{CallbackUrl, InvalidCallback};
pub use policy::{Policy, Private, Refused};
pub use signature::{InvalidSigningSecret, Message, SigningSecret, signatures};
