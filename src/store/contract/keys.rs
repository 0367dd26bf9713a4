//! Promises about API keys.

use super::Place;
use super::samples::{at, key, tenant};
use crate::auth::KeyRecord;
use crate::ids::{Digest, KeyId, Tenant};
use crate::store::{Conflict, Error};

/// T-16: two starts race, one key comes out.
pub(in crate::store) async fn first_key_is_created_once(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let starts = (0..16).zip(stores.iter().cycle()).map(|(n, store)| {
        let first = key(&n.to_string());
        async move { store.bootstrap_key(first.clone()).await.unwrap().then_some(first) }
    });
    let made: Vec<KeyRecord> = futures::future::join_all(starts)
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(made.len(), 1);
    let page = stores[1].keys(&Tenant::default_tenant(), None, 10).await.unwrap();
    assert_eq!(page.items, made);

    stores[0]
        .revoke_key(&made[0].tenant, made[0].id, at(1))
        .await
        .unwrap();
    assert!(!stores[0].bootstrap_key(key("later")).await.unwrap());
}

/// T-08.
pub(in crate::store) async fn a_key_is_found_by_its_hash(place: &impl Place) {
    let store = place.open().await;
    let record = key("secret");
    store.add_key(record.clone()).await.unwrap();
    store.add_key(key("other")).await.unwrap();
    assert_eq!(store.key(&record.hash).await.unwrap(), record);
    let unknown = store.key(&Digest::of(b"guess")).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))));
    let twin = KeyRecord {
        id: KeyId::generate(),
        ..record
    };
    let taken = store.add_key(twin).await;
    assert!(matches!(
        taken,
        Err(Error::Conflict {
            conflict: Conflict::Exists,
            ..
        })
    ));
}

/// T-08.
pub(in crate::store) async fn a_key_is_found_by_its_id_in_its_tenant(place: &impl Place) {
    let store = place.open().await;
    let record = key("secret");
    store.add_key(record.clone()).await.unwrap();
    assert_eq!(store.key_by_id(&record.tenant, record.id).await.unwrap(), record);
    for (owner, id) in [
        (tenant("other"), record.id),
        (record.tenant.clone(), KeyId::generate()),
    ] {
        let unknown = store.key_by_id(&owner, id).await;
        assert!(matches!(unknown, Err(Error::NotFound(_))));
    }
}

/// T-07, T-12.
pub(in crate::store) async fn a_revoked_key_stays_revoked(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let record = key("secret");
    stores[0].add_key(record.clone()).await.unwrap();
    let revoked = stores[0]
        .revoke_key(&record.tenant, record.id, at(7))
        .await
        .unwrap();
    assert_eq!(revoked.revoked_at, Some(at(7)));
    assert_eq!(stores[1].key(&record.hash).await.unwrap(), revoked);
    let again = stores[1]
        .revoke_key(&record.tenant, record.id, at(9))
        .await
        .unwrap();
    assert_eq!(again.revoked_at, Some(at(7)));
}

pub(in crate::store) async fn key_is_replaced_atomically(place: &impl Place) {
    let store = place.open().await;
    let (old, taken, new) = (key("old"), key("taken"), key("new"));
    store.add_key(old.clone()).await.unwrap();
    store.add_key(taken.clone()).await.unwrap();
    let clash = KeyRecord {
        hash: taken.hash,
        ..new.clone()
    };
    let refused = store.replace_key(&old.tenant, old.id, clash, at(1)).await;
    assert!(matches!(
        refused,
        Err(Error::Conflict {
            conflict: Conflict::Exists,
            ..
        })
    ));
    assert_eq!(store.key(&old.hash).await.unwrap(), old);

    store
        .replace_key(&old.tenant, old.id, new.clone(), at(2))
        .await
        .unwrap();
    assert_eq!(store.key(&old.hash).await.unwrap().revoked_at, Some(at(2)));
    assert_eq!(store.key(&new.hash).await.unwrap(), new);
}

pub(in crate::store) async fn a_revoked_key_cannot_be_replaced(place: &impl Place) {
    let store = place.open().await;
    let (old, new) = (key("old"), key("new"));
    store.add_key(old.clone()).await.unwrap();
    store.revoke_key(&old.tenant, old.id, at(1)).await.unwrap();
    let refused = store.replace_key(&old.tenant, old.id, new.clone(), at(2)).await;
    assert!(matches!(refused, Err(Error::NotFound(_))));
    assert!(matches!(store.key(&new.hash).await, Err(Error::NotFound(_))));
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_keys_of_another(place: &impl Place) {
    let store = place.open().await;
    let (mine, new) = (key("mine"), key("new"));
    store.add_key(mine.clone()).await.unwrap();
    let foreign = tenant("default2");
    let revoked = store.revoke_key(&foreign, mine.id, at(1)).await;
    assert!(matches!(revoked, Err(Error::NotFound(_))));
    let replaced = store.replace_key(&foreign, mine.id, new, at(1)).await;
    assert!(matches!(replaced, Err(Error::NotFound(_))));
    assert!(store.keys(&foreign, None, 10).await.unwrap().items.is_empty());
    assert_eq!(store.key(&mine.hash).await.unwrap(), mine);
}

pub(in crate::store) async fn revocation_by_another_process_applies_at_once(place: &impl Place) {
    let (store, other) = (place.open().await, place.open().await);
    let key = key("secret");
    other.add_key(key.clone()).await.unwrap();
    assert_eq!(store.key(&key.hash).await.unwrap(), key);
    other.revoke_key(&key.tenant, key.id, at(1)).await.unwrap();
    assert_eq!(store.key(&key.hash).await.unwrap().revoked_at, Some(at(1)));
}
