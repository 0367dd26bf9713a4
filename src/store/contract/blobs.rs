//! Promises about blobs.

use super::Place;
use super::samples::{at, tenant};
use crate::ids::{BlobObject, Digest, Tenant};
use crate::store::{BlobQuota, BlobRecord, Error, SavedBlob};

const QUOTA: BlobQuota = BlobQuota {
    count: 4,
    bytes: 1000,
};
const NEW: SavedBlob = SavedBlob::New { replaced: None };

fn mine() -> Tenant {
    Tenant::default_tenant()
}

/// A blob with this content, from the first moment to the second.
fn blob(content: &str, from: i64, to: i64) -> BlobRecord {
    BlobRecord {
        tenant: mine(),
        digest: Digest::of(content.as_bytes()),
        object: BlobObject::generate(),
        size: 100,
        media_type: "text/x'; drop table blobs; --".to_owned(),
        created_at: at(from),
        expires_at: at(to),
    }
}

pub(in crate::store) async fn blob_is_stored_once_and_its_expiry_never_moves_back(place: &impl Place) {
    let store = place.open().await;
    let first = blob("a", 0, 100);
    assert_eq!(store.put_blob(first.clone(), QUOTA).await.unwrap(), NEW);
    assert_eq!(store.blob(&mine(), &first.digest, at(1)).await.unwrap(), first);
    for (until, expected) in [(200, 200), (150, 200)] {
        let again = BlobRecord {
            expires_at: at(expected),
            ..first.clone()
        };
        let kept = store.put_blob(blob("a", 50, until), QUOTA).await.unwrap();
        assert_eq!(kept, SavedBlob::Existing(again));
    }
}

pub(in crate::store) async fn rejects_blob_over_quota(place: &impl Place) {
    let store = place.open().await;
    for content in ["a", "b", "c"] {
        store.put_blob(blob(content, 0, 100), QUOTA).await.unwrap();
    }
    let large = BlobRecord {
        size: 701,
        ..blob("d", 0, 100)
    };
    assert!(matches!(
        store.put_blob(large.clone(), QUOTA).await,
        Err(Error::Quota)
    ));
    let fits = BlobRecord { size: 700, ..large };
    assert_eq!(store.put_blob(fits, QUOTA).await.unwrap(), NEW);
    let empty = BlobRecord {
        size: 0,
        ..blob("e", 0, 100)
    };
    assert!(matches!(
        store.put_blob(empty.clone(), QUOTA).await,
        Err(Error::Quota)
    ));
    assert!(
        store.put_blob(blob("a", 0, 200), QUOTA).await.is_ok(),
        "it is there"
    );
    let others = BlobRecord {
        tenant: tenant("other"),
        ..empty
    };
    assert!(store.put_blob(others, QUOTA).await.is_ok());
}

pub(in crate::store) async fn expired_blob_is_not_found_and_gets_other_bytes(place: &impl Place) {
    let store = place.open().await;
    let first = blob("a", 0, 100);
    store.put_blob(first.clone(), QUOTA).await.unwrap();
    assert!(matches!(
        store.blob(&mine(), &first.digest, at(100)).await,
        Err(Error::NotFound(_))
    ));
    let second = blob("a", 150, 300);
    let kept = store.put_blob(second.clone(), QUOTA).await.unwrap();
    let replaced = Some(first.object);
    assert_eq!(kept, SavedBlob::New { replaced });
    assert_eq!(store.blob(&mine(), &first.digest, at(200)).await.unwrap(), second);
}

/// Its bytes go, however slow who removes them is, and however long ago the upload of the same content began.
pub(in crate::store) async fn retired_blob_is_not_found_and_gets_other_bytes(place: &impl Place) {
    let store = place.open().await;
    let first = blob("a", 0, 100);
    store.put_blob(first.clone(), QUOTA).await.unwrap();
    let ended = store.retire_blob(&mine(), &first.digest, at(60)).await.unwrap();
    assert_eq!(ended.object, first.object);
    for now in [at(10), at(60)] {
        let found = store.blob(&mine(), &first.digest, now).await;
        assert!(matches!(found, Err(Error::NotFound(_))));
        let again = store.retire_blob(&mine(), &first.digest, now).await;
        assert!(matches!(again, Err(Error::NotFound(_))));
    }
    let second = blob("a", 50, 200);
    let kept = store.put_blob(second.clone(), QUOTA).await.unwrap();
    let replaced = Some(first.object);
    assert_eq!(kept, SavedBlob::New { replaced });

    // By its time and not by its owner.
    assert!(store.retire_expired_blobs(at(199), 9).await.unwrap().is_empty());
    let ended = store.retire_expired_blobs(at(200), 9).await.unwrap();
    assert_eq!(ended.len(), 1);
    let third = blob("a", 180, 300);
    let kept = store.put_blob(third.clone(), QUOTA).await.unwrap();
    let replaced = Some(second.object);
    assert_eq!(kept, SavedBlob::New { replaced });
    assert_eq!(store.blob(&mine(), &third.digest, at(180)).await.unwrap(), third);
}

/// The process that removes expired blobs may be slow, or be killed.
pub(in crate::store) async fn blob_uploaded_again_is_not_deleted(place: &impl Place) {
    let store = place.open().await;
    let (first, second) = (blob("a", 0, 100), blob("a", 150, 300));
    store.put_blob(first.clone(), QUOTA).await.unwrap();
    let ended = store.retire_expired_blobs(at(100), 9).await.unwrap();
    assert_eq!(store.retire_expired_blobs(at(100), 9).await.unwrap(), ended);
    store.put_blob(second.clone(), QUOTA).await.unwrap();
    store.delete_retired_blob(&first).await.unwrap();
    // Nobody has ended it.
    store.delete_retired_blob(&second).await.unwrap();
    assert_eq!(store.blob(&mine(), &first.digest, at(200)).await.unwrap(), second);
    store.retire_blob(&mine(), &second.digest, at(200)).await.unwrap();
    store.delete_retired_blob(&second).await.unwrap();
    assert!(store.retire_expired_blobs(at(400), 9).await.unwrap().is_empty());
}

pub(in crate::store) async fn blobs_are_listed_newest_first(place: &impl Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for (from, content) in (0..4).zip(["a", "b", "c", "d"]) {
        let blob = blob(content, from, 100 + from);
        store.put_blob(blob.clone(), QUOTA).await.unwrap();
        expected.insert(0, blob);
    }
    // The oldest has expired by then.
    expected.pop();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.blobs(&mine(), at(100), after, 2).await.unwrap();
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, expected);
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_blobs_of_another(place: &impl Place) {
    let store = place.open().await;
    let (blob, foreign) = (blob("a", 0, 100), tenant("default2"));
    store.put_blob(blob.clone(), QUOTA).await.unwrap();
    let found = store.blob(&foreign, &blob.digest, at(1)).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
    let ended = store.retire_blob(&foreign, &blob.digest, at(1)).await;
    assert!(matches!(ended, Err(Error::NotFound(_))));
    assert!(
        store
            .blobs(&foreign, at(1), None, 9)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(store.blob_objects(&foreign).await.unwrap().is_empty());
    assert_eq!(store.blob(&mine(), &blob.digest, at(1)).await.unwrap(), blob);
    assert_eq!(store.blob_objects(&mine()).await.unwrap(), [blob.object]);
}
