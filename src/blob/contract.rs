//! What every backend must do, as tests: written once, run for each.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use tokio::io::AsyncReadExt as _;

use crate::blob::{Blob, Error, Key, Object};
use crate::ids::{BlobObject, ExecutionId, Tenant};

/// Where the objects of one test are. Opened twice it gives two handles on the same objects, as two processes have.
pub(super) trait Place {
    fn open(&self) -> Blob;
}

/// Makes one test of each function; `$place` is evaluated again for each.
macro_rules! contract_tests {
    ($place:expr) => {
        $crate::blob::contract::contract_tests! { $place;
            object_reads_back_unchanged,
            any_range_of_an_object_can_be_read,
            second_put_replaces_the_object,
            failing_source_changes_nothing,
            staged_object_is_found_only_after_placement,
            one_of_concurrent_puts_wins,
            deleted_object_is_not_found,
            open_object_stays_readable,
            concurrent_puts_and_deletes_succeed,
            keys_that_look_alike_are_different_objects,
            lists_blob_objects_of_their_tenant_only,
            ping_leaves_no_file,
        }
    };
    ($place:expr; $($claim:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $claim() {
                $crate::blob::contract::$claim(&$place).await;
            }
        )*
    };
}
pub(super) use contract_tests;

pub(super) fn archive(tenant: &str, skill: &str, version: &str) -> Key {
    Key::SkillArchive {
        tenant: tenant.parse().unwrap(),
        skill: skill.parse().unwrap(),
        version: version.parse().unwrap(),
    }
}

pub(super) fn artifacts() -> Key {
    Key::Artifacts {
        tenant: Tenant::default_tenant(),
        execution: ExecutionId::generate(),
    }
}

pub(super) fn source(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

async fn read(object: Object) -> Vec<u8> {
    let size = object.size();
    let mut bytes = Vec::new();
    let mut reader = object.into_reader(0..size).await.unwrap();
    reader.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes.len() as u64, size);
    bytes
}

async fn content(blob: &Blob, key: &Key) -> Vec<u8> {
    read(blob.open(key).await.unwrap()).await
}

pub(super) async fn is_absent(blob: &Blob, key: &Key) -> bool {
    matches!(blob.open(key).await, Err(Error::NotFound))
}

/// Wherever the source's position is.
pub(super) async fn object_reads_back_unchanged(place: &impl Place) {
    let blob = place.open();
    for (size, position) in [(0, 0), (1, 1), (5_000_000, 17)] {
        let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
        let mut file = source(&bytes);
        file.seek(SeekFrom::Start(position)).unwrap();
        let key = artifacts();
        assert_eq!(blob.put(&key, file).await.unwrap(), size as u64);
        assert!(content(&blob, &key).await == bytes, "{size} bytes");
    }
}

pub(super) async fn any_range_of_an_object_can_be_read(place: &impl Place) {
    let blob = place.open();
    let key = artifacts();
    blob.put(&key, source(b"0123456789")).await.unwrap();
    for (range, expected) in [
        (0..10, "0123456789"),
        (0..1, "0"),
        (3..7, "3456"),
        (9..10, "9"),
        (5..5, ""),
        (8..99, "89"),
        (10..11, ""),
        (99..u64::MAX, ""),
    ] {
        let object = blob.open(&key).await.unwrap();
        let mut text = String::new();
        let mut reader = object.into_reader(range.clone()).await.unwrap();
        reader.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, expected, "{range:?}");
    }
}

pub(super) async fn second_put_replaces_the_object(place: &impl Place) {
    let blob = place.open();
    let key = artifacts();
    blob.put(&key, source(b"long and first")).await.unwrap();
    blob.put(&key, source(b"second")).await.unwrap();
    assert_eq!(content(&blob, &key).await, b"second");
}

/// Z-28, O-16.
pub(super) async fn failing_source_changes_nothing(place: &impl Place) {
    let blob = place.open();
    let (new, old) = (artifacts(), artifacts());
    blob.put(&old, source(b"old")).await.unwrap();
    for key in [&new, &old] {
        // Reading a folder as a file fails.
        let refused = blob.put(key, File::open("/").unwrap()).await;
        assert!(matches!(refused, Err(Error::Backend(_))), "{refused:?}");
    }
    assert!(is_absent(&blob, &new).await);
    assert_eq!(content(&blob, &old).await, b"old");
}

pub(super) async fn staged_object_is_found_only_after_placement(place: &impl Place) {
    let blob = place.open();
    let key = archive("acme", "csv", "1.0.0");
    drop(blob.stage(source(b"given up")).await.unwrap());
    let staged = blob.stage(source(b"whole")).await.unwrap();
    assert!(is_absent(&blob, &key).await);
    assert_eq!(blob.place(staged, &key).await.unwrap(), 5);
    assert_eq!(content(&blob, &key).await, b"whole");
}

pub(super) async fn one_of_concurrent_puts_wins(place: &impl Place) {
    let blobs = [place.open(), place.open()];
    let key = artifacts();
    let puts = (0..16u8).zip(blobs.iter().cycle()).map(|(n, blob)| {
        let bytes = vec![n; 100_000 + usize::from(n)];
        let key = &key;
        async move { blob.put(key, source(&bytes)).await.unwrap() }
    });
    futures::future::join_all(puts).await;
    let bytes = content(&blobs[0], &key).await;
    assert_eq!(bytes, vec![bytes[0]; 100_000 + usize::from(bytes[0])]);
}

/// T-12.
pub(super) async fn deleted_object_is_not_found(place: &impl Place) {
    let blob = place.open();
    let (key, other) = (archive("acme", "csv", "1.0.0"), archive("acme", "csv", "1.0.1"));
    blob.put(&key, source(b"x")).await.unwrap();
    blob.put(&other, source(b"y")).await.unwrap();
    blob.delete(&key).await.unwrap();
    assert!(is_absent(&blob, &key).await);
    blob.delete(&key).await.unwrap();
    assert_eq!(content(&blob, &other).await, b"y");
    blob.put(&key, source(b"again")).await.unwrap();
    assert_eq!(content(&blob, &key).await, b"again");
}

pub(super) async fn lists_blob_objects_of_their_tenant_only(place: &impl Place) {
    let blob = place.open();
    let tenant = |name: &str| name.parse::<Tenant>().unwrap();
    let key = |owner: &str, object: &BlobObject| Key::Blob {
        tenant: tenant(owner),
        object: *object,
    };
    let (mine, other) = (BlobObject::generate(), BlobObject::generate());
    blob.put(&key("acme", &mine), source(b"x")).await.unwrap();
    blob.put(&key("bert", &other), source(b"y")).await.unwrap();
    // A skill of that name is none.
    blob.put(&archive("acme", "blobs", "1.0.0"), source(b"z"))
        .await
        .unwrap();
    let mut owners = blob.blob_owners().await.unwrap();
    owners.sort();
    assert_eq!(owners, [tenant("acme"), tenant("bert")]);
    let of = async |owner: &str, max| blob.blob_objects(&tenant(owner), max).await.unwrap();
    assert_eq!(
        (of("acme", 9).await, of("bert", 9).await),
        (vec![mine], vec![other])
    );
    assert!(of("acme", 0).await.is_empty() && of("nobody", 9).await.is_empty());
    blob.delete(&key("acme", &mine)).await.unwrap();
    assert!(of("acme", 9).await.is_empty());
}

/// C-08.
pub(super) async fn open_object_stays_readable(place: &impl Place) {
    let blob = place.open();
    let key = artifacts();
    let bytes = vec![b'a'; 3_000_000];
    blob.put(&key, source(&bytes)).await.unwrap();
    let replaced = blob.open(&key).await.unwrap();
    blob.put(&key, source(b"new")).await.unwrap();
    let deleted = blob.open(&key).await.unwrap();
    blob.delete(&key).await.unwrap();
    assert!(read(replaced).await == bytes);
    assert_eq!(read(deleted).await, b"new");
}

/// The folders on the way come and go.
pub(super) async fn concurrent_puts_and_deletes_succeed(place: &impl Place) {
    let blobs = [place.open(), place.open()];
    let keys = [
        archive("acme", "csv", "1.0.0"),
        archive("acme", "csv", "1.0.1"),
        archive("acme", "tex", "1.0.0"),
    ];
    let work = keys
        .iter()
        .cycle()
        .take(12)
        .zip(blobs.iter().cycle())
        .map(|(key, blob)| async move {
            for _ in 0..20 {
                blob.put(key, source(b"whole")).await.unwrap();
                if let Ok(object) = blob.open(key).await {
                    assert_eq!(read(object).await, b"whole");
                }
                blob.delete(key).await.unwrap();
            }
        });
    futures::future::join_all(work).await;
    for key in &keys {
        assert!(is_absent(&blobs[0], key).await);
    }
}

/// T-11.
pub(super) async fn keys_that_look_alike_are_different_objects(place: &impl Place) {
    let blob = place.open();
    let id = ExecutionId::generate();
    let of_execution = |tenant: &str| Key::Artifacts {
        tenant: tenant.parse().unwrap(),
        execution: id,
    };
    let keys = [
        archive("a", "b-c", "1.0.0"),
        archive("a-b", "c", "1.0.0"),
        archive("a", "b.c", "1.0.0"),
        archive("a", "b", "1.0.0"),
        archive("a", "b", "1.0.0-c"),
        archive("a", "b", "1.0.0+c"),
        archive("a", "b", "1.0.0+c-d"),
        archive("acme", "b", "1.0.0"),
        archive("acme2", "b", "1.0.0"),
        archive("tmp", "b", "1.0.0"),
        archive("acme", &id.to_string(), "1.0.0"),
        of_execution("acme"),
        of_execution("acme2"),
    ];
    for key in &keys {
        blob.put(key, source(key.to_string().as_bytes())).await.unwrap();
    }
    for key in &keys {
        assert_eq!(content(&blob, key).await, key.to_string().as_bytes());
    }
    blob.delete(&keys[0]).await.unwrap();
    for key in &keys[1..] {
        assert!(!is_absent(&blob, key).await, "{key}");
    }
}

pub(super) async fn ping_leaves_no_file(place: &impl Place) {
    let blob = place.open();
    let key = artifacts();
    blob.ping().await.unwrap();
    assert!(is_absent(&blob, &key).await);
}
