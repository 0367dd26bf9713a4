//! Promises about the audit trail.

use super::Place;
use super::samples::{at, key, tenant};
use crate::auth::{AuditAction, AuditEntry, RequestSource};
use crate::ids::{AuditId, SessionId, Tenant};
use crate::store::{Cursor, Store};

fn entry(micros: i64) -> AuditEntry {
    let key = key("secret");
    AuditEntry {
        id: AuditId::generate(),
        tenant: key.tenant,
        at: at(micros),
        key: key.id,
        key_name: key.name,
        session: Some(SessionId::generate()),
        action: AuditAction::KeyRevoked,
        target: Some("'; drop table audit; --\0".to_owned()),
        source: RequestSource {
            address: "2001:db8::1".parse().ok(),
            request_id: Some("r-1".to_owned()),
        },
    }
}

async fn added(store: &Store, micros: i64, max: u32) -> AuditEntry {
    let new = entry(micros);
    store.add_audit_entry(new.clone(), max).await.unwrap();
    new
}

async fn all(store: &Store, tenant: &Tenant) -> Vec<AuditEntry> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.audit_entries(tenant, after, 2).await.unwrap();
        found.extend(page.items);
        match page.next {
            Some(next) => after = Some(next.to_string().parse::<Cursor>().unwrap()),
            None => return found,
        }
    }
}

pub(in crate::store) async fn audit_entries_read_back_newest_first(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let mut expected = Vec::new();
    // Also in one microsecond, and after the clock was set back.
    for (micros, store) in [5, 5, 3, 9, 1].into_iter().zip(stores.iter().cycle()) {
        expected.insert(0, added(store, micros, 100).await);
    }
    let bare = AuditEntry {
        session: None,
        target: None,
        source: RequestSource::default(),
        ..entry(2)
    };
    stores[0].add_audit_entry(bare.clone(), 100).await.unwrap();
    expected.insert(0, bare);
    assert_eq!(all(&stores[1], &Tenant::default_tenant()).await, expected);
}

pub(in crate::store) async fn oldest_audit_entries_are_deleted_beyond_limit(place: &impl Place) {
    let store = place.open().await;
    let foreign = AuditEntry {
        tenant: tenant("other"),
        ..entry(0)
    };
    store.add_audit_entry(foreign.clone(), 3).await.unwrap();
    let mut expected = Vec::new();
    for micros in 0..7 {
        expected.insert(0, added(&store, micros, 3).await);
    }
    assert_eq!(all(&store, &Tenant::default_tenant()).await, expected[..3]);
    assert_eq!(all(&store, &foreign.tenant).await, [foreign]);
}

pub(in crate::store) async fn old_audit_entries_are_deleted(place: &impl Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for micros in 0..6 {
        expected.insert(0, added(&store, micros, 100).await);
    }
    store.delete_audit_entries(at(4), 3).await.unwrap();
    assert_eq!(
        all(&store, &Tenant::default_tenant()).await,
        expected[..3],
        "at most three"
    );
    store.delete_audit_entries(at(4), 3).await.unwrap();
    assert_eq!(all(&store, &Tenant::default_tenant()).await, expected[..2]);
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_audit_trail_of_another(place: &impl Place) {
    let store = place.open().await;
    added(&store, 0, 100).await;
    assert!(all(&store, &tenant("default2")).await.is_empty());
}
