//! Webhooks, as far as they are pure: where they may go, and how they are signed.

mod callback;
mod signature;

pub use callback::{CallbackUrl, InvalidCallback};
pub use signature::{InvalidSigningSecret, Message, SigningSecret, signatures};
