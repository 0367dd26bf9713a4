//! The audit trail: recorded by the interface right after an act, listed, deleted when old.

use crate::auth::{AuditAction, AuditEntry, Caller};
use crate::engine::{Audit, PageRequest, clock, rows};
use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;
use crate::store::Page;

impl Audit<'_> {
    /// Records what was just done. It cannot be undone, so a failure is logged as an error, with everything that the entry
    /// would have said.
    pub async fn record(self, caller: &Caller, action: AuditAction, target: Option<String>) {
        let entry = AuditEntry::new(caller, action, target, clock::now());
        let added = self
            .engine
            .store
            .add_audit_entry(entry.clone(), limits::AUDIT_ENTRIES_PER_TENANT_MAX);
        if let Err(error) = added.await {
            tracing::error!(%error, source = ?std::error::Error::source(&error), key.id = %entry.key, tenant = %entry.tenant,
                session = ?entry.session, target = entry.target, address = ?entry.source.address,
                "Audit entry not recorded: {}", action.as_str());
        }
    }

    /// The tenant's entries, newest first.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<AuditEntry>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.audit_entries(tenant, page.after, rows).await?)
    }

    /// Deletes old entries.
    pub(super) async fn delete_old(self) -> Result<(), Error> {
        let age = jiff::SignedDuration::try_from(limits::AUDIT_AGE_MAX).map_err(Error::internal)?;
        let Ok(before) = clock::now().checked_sub(age) else {
            return Ok(());
        };
        let rows = limits::AUDIT_ENTRIES_PER_ROUND;
        Ok(self.engine.store.delete_audit_entries(before, rows).await?)
    }
}
