//! Skills that were read before, so that their manifests are parsed once. Each read asks the database whether the row is still
//! the same: a change by any process is seen by the next read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::skills::{self, RowKey};
use crate::ids::Tenant;
use crate::limits;
use crate::skill::{Selector, SkillName};
use crate::store::{Error, SkillRecord};

#[derive(Debug, Default)]
pub(super) struct ParsedSkills(Mutex<HashMap<RowKey, SkillRecord>>);

impl ParsedSkills {
    /// The version that `selector` means now.
    pub(super) fn find(
        &self,
        c: &Connection,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<Option<SkillRecord>, Error> {
        let Some(key) = skills::row_key(c, tenant, name, selector)? else {
            return Ok(None);
        };
        if let Some(parsed) = self.locked().get(&key) {
            return Ok(Some(parsed.clone()));
        }
        let found = skills::find(c, tenant, name, selector)?;
        if let Some(found) = &found
            && found.manifest.instructions.len() <= limits::MANIFEST_CACHED_INSTRUCTIONS_BYTES_MAX
        {
            let mut parsed = self.locked();
            if parsed.len() >= limits::MANIFESTS_CACHED_MAX {
                parsed.clear();
            }
            parsed.insert(key, found.clone());
        }
        Ok(found)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RowKey, SkillRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
