//! Secrets: checked values, sealed while they rest, and masked in what programs leave behind. Pure.

mod mask;
mod seal;
mod value;

pub use mask::{Mask, StreamingMask, Truncation};
pub use seal::{InvalidMasterKey, MasterKey, Owner, Unsealable};
pub use value::{InvalidValue, SecretValue};
