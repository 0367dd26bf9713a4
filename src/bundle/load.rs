//! From an unpacked folder to the skill's normal form.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::bundle::{Error, Listing};
use crate::error::quoted;
use crate::limits;
use crate::skill::{Action, Manifest, action, parse_skill_md};

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
    // One byte more than allowed, so that the parser sees that it is too long.
    let bytes = head(&folder.join(SKILL_MD), limits::SKILL_MD_BYTES_MAX + 1)?;
    let name = listing.folder().or(fallback_name);
    let manifest = parse_skill_md(&bytes, name, |path| listing.find(path).is_some())?;
    let actions = actions(folder, listing)?;
    Ok(Manifest { actions, ..manifest })
}

/// The scripts that can be called, in byte order of path.
fn actions(folder: &Path, listing: &Listing) -> io::Result<Vec<Action>> {
    let mut actions = Vec::new();
    for entry in listing.entries() {
        if actions.len() == limits::ACTIONS_MAX {
            break;
        }
        let head = head(&folder.join(&entry.path), limits::ACTION_HEAD_BYTES)?;
        actions.extend(action(&entry.path, &head));
    }
    Ok(actions)
}

fn head(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
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
