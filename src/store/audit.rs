//! The audit trail: rows are added and expire, and are never changed.

use jiff::Timestamp;

use crate::auth::AuditEntry;
use crate::ids::Tenant;
use crate::store::cursor::List;
use crate::store::{Error, acts};

/// An entry and its place among those of its tenant.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::store) struct NumberedEntry {
    pub(in crate::store) number: u64,
    pub(in crate::store) entry: AuditEntry,
}

impl From<NumberedEntry> for AuditEntry {
    fn from(numbered: NumberedEntry) -> Self {
        numbered.entry
    }
}

acts! {
    trait Audit {
        /// Adds an entry. Beyond `max` the oldest entries of its tenant are deleted.
        async fn add_audit_entry(&self, entry: AuditEntry, max: u32) -> Result<(), Error>;
        /// Deletes entries from before this time, at most `rows`.
        async fn delete_audit_entries(&self, before: Timestamp, rows: u32) -> Result<(), Error>;
    }
    lists {
        /// A tenant's entries, the newest first.
        async fn audit_entries(&self, tenant: &Tenant) -> AuditEntry as NumberedEntry
            = List::Audit(tenant), after u64: |row| row.number;
    }
}
