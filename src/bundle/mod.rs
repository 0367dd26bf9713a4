//! Archives of skills: checked, unpacked, digested, packed.

pub mod artifacts;
#[cfg_attr(windows, path = "disk_windows.rs")]
mod disk;
mod error;
mod folder;
mod listing;
mod load;
mod names;
mod pack;
mod packages;
#[cfg(test)]
mod tests;
mod transfer;
mod unpack;
mod zip_directory;
mod zip_layout;

pub use error::Error;
pub use folder::{FileMark, list, list_packages};
pub use listing::{Entry, Listing};
pub use load::{lint_packages, load, with_declaration};
pub use names::check_path;
pub use pack::{file_marks, pack};
pub use packages::unpack_packages;
pub use unpack::{MTIME_SECONDS, settle_folders, unpack};
