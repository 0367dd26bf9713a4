//! Promises about installed packages.

use super::Place;
use super::samples::{at, tenant};
use crate::ids::{Digest, Tenant};
use crate::skill::Language;
use crate::store::{Error, PackageSet};

fn set(name: &str, bytes: u64, used: i64) -> PackageSet {
    PackageSet {
        tenant: Tenant::default_tenant(),
        key: Digest::of(name.as_bytes()),
        language: Language::Python,
        wanted: vec![name.to_owned(), "it's; drop table package_sets".to_owned()],
        digest: Digest::of(b"the same files"),
        bytes,
        files: 3,
        created_at: at(used),
        used_at: at(used),
    }
}

pub(in crate::store) async fn packages_are_found_listed_and_deleted(place: &impl Place) {
    let store = place.open().await;
    let (a, b) = (set("a", 1, 1), set("b", 2, 2));
    for one in [&a, &b, &a] {
        store.put_packages(one.clone()).await.unwrap();
    }
    assert_eq!(store.packages(&a.tenant, &a.key).await.unwrap(), a);
    let page = store.package_sets(&a.tenant, None, 1).await.unwrap();
    assert_eq!(page.items, std::slice::from_ref(&b));
    let rest = store.package_sets(&a.tenant, page.next, 10).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![a.clone()], None));
    assert_eq!(store.delete_packages(&a.tenant, &a.key).await.unwrap(), a);
    let stranger = "stranger".parse().unwrap();
    assert!(store.packages_digest_is_used(&a.tenant, &a.digest).await.unwrap());
    assert!(!store.packages_digest_is_used(&stranger, &a.digest).await.unwrap());
    store.delete_packages(&b.tenant, &b.key).await.unwrap();
    assert!(!store.packages_digest_is_used(&a.tenant, &a.digest).await.unwrap());
    let gone = store.delete_packages(&a.tenant, &a.key).await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
}

/// Z-27: the result is a tenant's own.
pub(in crate::store) async fn a_tenant_never_sees_the_packages_of_another(place: &impl Place) {
    let store = place.open().await;
    let own = set("a", 1, 1);
    store.put_packages(own.clone()).await.unwrap();
    let other = tenant("other");
    let found = store.packages(&other, &own.key).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
    let dropped = store.delete_packages(&other, &own.key).await;
    assert!(matches!(dropped, Err(Error::NotFound(_))));
    assert_eq!(store.package_sets(&other, None, 10).await.unwrap().items, []);
}

pub(in crate::store) async fn recently_used_packages_stay_within_limit(place: &impl Place) {
    let store = place.open().await;
    for (name, bytes, used) in [("a", 10, 1), ("b", 20, 2), ("c", 30, 3)] {
        store.put_packages(set(name, bytes, used)).await.unwrap();
    }
    let surplus = async |bytes| {
        let found = store.surplus_packages(bytes, 10).await.unwrap();
        found
            .into_iter()
            .map(|set| set.wanted[0].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(surplus(60).await, [""; 0]);
    assert_eq!(surplus(50).await, ["a"]);
    assert_eq!(surplus(0).await, ["a", "b", "c"]);
    let a = set("a", 10, 1);
    store.touch_packages(&a.tenant, &a.key, at(4)).await.unwrap();
    assert_eq!(surplus(50).await, ["b"]);
}

/// T-15: a tenant that fills the cache pushes out what is its own.
pub(in crate::store) async fn tenant_with_most_packages_loses_them_first(place: &impl Place) {
    let store = place.open().await;
    let greedy = |name: &str, bytes, used| PackageSet {
        tenant: tenant("greedy"),
        ..set(name, bytes, used)
    };
    store.put_packages(set("modest", 20, 1)).await.unwrap();
    for (name, used) in [("a", 2), ("b", 3), ("c", 4)] {
        store.put_packages(greedy(name, 30, used)).await.unwrap();
    }
    let surplus = async |bytes, rows| {
        let found = store.surplus_packages(bytes, rows).await.unwrap();
        found
            .into_iter()
            .map(|set| set.wanted[0].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(surplus(110, 10).await, [""; 0]);
    assert_eq!(surplus(100, 10).await, ["a"]);
    assert_eq!(surplus(50, 10).await, ["a", "b"]);
    assert_eq!(surplus(50, 1).await, ["a"]);
    assert_eq!(surplus(20, 10).await, ["a", "b", "c"]);
    assert_eq!(surplus(0, 10).await, ["a", "b", "c", "modest"]);
}
