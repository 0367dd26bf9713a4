//! Secrets: checked values, sealed at rest, masked in results. Pure.

mod mask;
mod seal;
mod value;

pub use mask::{Mask, StreamingMask, Truncation};
pub use seal::{InvalidMasterKey, MasterKey, Owner, Unsealable};
pub use value::{InvalidValue, SecretValue};
