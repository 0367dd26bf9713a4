//! Skills as they were read before, so that their manifests are parsed once. Each time a row is asked for, the database says
//! whether it is still the same one: whoever changes it, in whichever process, is noticed by the next reader.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::skills::{self, Stamp};
use crate::ids::Tenant;
use crate::limits;
use crate::skill::{Selector, SkillName};
use crate::store::{Error, SkillRecord};

/// Skills by what tells one row from every other that was or will be.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<Stamp, SkillRecord>>);

impl Known {
    /// The version that `selector` means now.
    pub(super) fn find(
        &self,
        c: &Connection,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error> {
        let stamp = skills::stamp(c, tenant, name, selector)?;
        if let Some(known) = self.locked().get(&stamp) {
            return Ok(known.clone());
        }
        let found = skills::find(c, tenant, name, selector)?;
        if found.manifest.instructions.len() <= limits::STORE_KNOWN_INSTRUCTIONS_BYTES_MAX {
            let mut known = self.locked();
            if known.len() >= limits::STORE_KNOWN_MAX {
                known.clear();
            }
            known.insert(stamp, found.clone());
        }
        Ok(found)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Stamp, SkillRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
