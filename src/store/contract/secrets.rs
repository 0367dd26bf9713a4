//! Promises about secrets.

use super::Place;
use super::samples::{at, tenant};
use crate::ids::Tenant;
use crate::store::{Error, NewSecret, Saved, Store};

fn secret(name: &str, sealed: &[u8], micros: i64) -> NewSecret {
    NewSecret {
        tenant: Tenant::default_tenant(),
        name: name.parse().unwrap(),
        sealed: sealed.to_vec(),
        at: at(micros),
    }
}

async fn names(store: &Store, tenant: &Tenant) -> Vec<String> {
    let page = store.secrets(tenant, None, 100).await.unwrap();
    page.items.iter().map(|secret| secret.name.to_string()).collect()
}

pub(in crate::store) async fn secret_is_created_and_replaced(place: &impl Place) {
    let store = place.open().await;
    let (mine, name) = (Tenant::default_tenant(), "TOKEN".parse().unwrap());
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(
        store.put_secret(secret("TOKEN", b"one", 1), 9).await.unwrap(),
        Saved::New
    );
    let again = store.put_secret(secret("TOKEN", &bytes, 7), 9).await.unwrap();
    assert_eq!(again, Saved::Existing);
    assert_eq!(store.sealed_secret(&mine, &name).await.unwrap(), bytes);
    let listed = store.secrets(&mine, None, 9).await.unwrap().items;
    assert_eq!((listed[0].created_at, listed[0].updated_at), (at(1), at(7)));
}

pub(in crate::store) async fn rejects_secret_over_quota(place: &impl Place) {
    let store = place.open().await;
    for name in ["A", "B"] {
        store.put_secret(secret(name, b"x", 0), 2).await.unwrap();
    }
    let beyond = store.put_secret(secret("C", b"x", 0), 2).await;
    assert!(matches!(beyond, Err(Error::Quota)));
    store.put_secret(secret("B", b"y", 1), 2).await.unwrap();
    let other = NewSecret {
        tenant: tenant("other"),
        ..secret("C", b"x", 0)
    };
    store.put_secret(other, 2).await.unwrap();
}

pub(in crate::store) async fn secrets_are_listed_by_name(place: &impl Place) {
    let store = place.open().await;
    for name in ["b", "A", "_x", "B2", "a"] {
        store.put_secret(secret(name, b"x", 0), 9).await.unwrap();
    }
    let mine = Tenant::default_tenant();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.secrets(&mine, after, 2).await.unwrap();
        found.extend(page.items.iter().map(|secret| secret.name.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["A", "B2", "_x", "a", "b"]);
}

pub(in crate::store) async fn deleted_secret_is_not_found(place: &impl Place) {
    let store = place.open().await;
    let (mine, name) = (Tenant::default_tenant(), "TOKEN".parse().unwrap());
    store.put_secret(secret("TOKEN", b"x", 0), 9).await.unwrap();
    store.delete_secret(&mine, &name).await.unwrap();
    assert!(matches!(
        store.sealed_secret(&mine, &name).await,
        Err(Error::NotFound(_))
    ));
    assert!(matches!(
        store.delete_secret(&mine, &name).await,
        Err(Error::NotFound(_))
    ));
    assert!(names(&store, &mine).await.is_empty());
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_secrets_of_another(place: &impl Place) {
    let store = place.open().await;
    let (mine, foreign) = (Tenant::default_tenant(), tenant("default2"));
    let name = "TOKEN".parse().unwrap();
    store.put_secret(secret("TOKEN", b"x", 0), 9).await.unwrap();
    assert!(names(&store, &foreign).await.is_empty());
    assert!(matches!(
        store.sealed_secret(&foreign, &name).await,
        Err(Error::NotFound(_))
    ));
    let deleted = store.delete_secret(&foreign, &name).await;
    assert!(matches!(deleted, Err(Error::NotFound(_))));
    assert_eq!(store.sealed_secret(&mine, &name).await.unwrap(), b"x");
}
