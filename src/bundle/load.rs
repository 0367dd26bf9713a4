//! From an unpacked folder to the skill's normal form.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::bundle::{Error, Listing};
use crate::error::quoted;
use crate::limits;
use crate::skill::{Manifest, parse_skill_md};

const SKILL_MD: &str = "SKILL.md";

/// Loads the skill that lies unpacked in `folder`, which holds what `listing` says. A skill without a `name` is named after
/// the archive's only top-level folder, else `fallback_name`.
///
/// # Errors
///
/// A missing or misplaced SKILL.md, and whatever [`parse_skill_md`] refuses.
pub fn load(folder: &Path, listing: &Listing, fallback_name: Option<&str>) -> Result<Manifest, Error> {
    if listing.find(SKILL_MD).is_none() {
        return Err(misplaced(listing));
    }
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the parser sees that it is too long.
    File::open(folder.join(SKILL_MD))?
        .take(limits::SKILL_MD_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    let name = listing.folder().or(fallback_name);
    Ok(parse_skill_md(&bytes, name, |path| listing.find(path).is_some())?)
}

fn misplaced(listing: &Listing) -> Error {
    let named = |path: &&str| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(SKILL_MD))
    };
    let rule = "must be at the root of the archive or of its only top-level folder";
    Error::Refused(
        match listing
            .entries()
            .iter()
            .map(|entry| entry.path.as_str())
            .find(named)
        {
            Some(path) => format!(
                "SKILL.md {rule}, written exactly so; found {} instead",
                quoted(path)
            ),
            None => format!("SKILL.md is missing; it {rule}"),
        },
    )
}
