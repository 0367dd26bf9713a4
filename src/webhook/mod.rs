//! Callback URLs and signatures of webhooks. Pure.

mod callback;
mod signature;

pub use callback::{CallbackUrl, InvalidCallback};
pub use signature::{InvalidSigningSecret, Message, SigningSecret, signatures};
