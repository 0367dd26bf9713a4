//! Promises about skills.

use super::Place;
use super::samples::{skill, tenant};
use crate::ids::{Digest, Tenant};
use crate::skill::Selector;
use crate::store::{Conflict, Error, Published, SkillRecord, Store};

async fn publish_all(store: &Store, labels: &[&str]) {
    for label in labels {
        assert_eq!(
            store.publish(skill(label)).await.unwrap(),
            Published::New,
            "{label}"
        );
    }
}

async fn latest(store: &Store) -> String {
    let found = store
        .skill(
            &Tenant::default_tenant(),
            &"csv".parse().unwrap(),
            &Selector::Latest,
        )
        .await;
    found.unwrap().version.to_string()
}

fn with_content(label: &str, content: &str) -> SkillRecord {
    SkillRecord {
        digest: Digest::of(content.as_bytes()),
        ..skill(label)
    }
}

pub(in crate::store) async fn record_reads_back_unchanged(place: &impl Place) {
    let store = place.open().await;
    let record = skill("csv@1.2.0");
    store.publish(record.clone()).await.unwrap();
    let found = store
        .skill(&record.tenant, &record.name, &Selector::Latest)
        .await
        .unwrap();
    assert_eq!(found, record);
}

/// Design §4: `skills.crm.leads` is either a module of `crm` or the skill `crm.leads`.
pub(in crate::store) async fn rejects_skill_with_import_path_of_another(place: &impl Place) {
    let store = place.open().await;
    let with_modules = |label: &str, modules: &[&str]| {
        let mut record = skill(label);
        record.manifest.modules = modules.iter().map(|module| (*module).to_owned()).collect();
        record
    };
    store
        .publish(with_modules("crm@1.0.0", &["leads", "new_deals"]))
        .await
        .unwrap();
    for taken in ["crm.leads@1.0.0", "crm.new-deals.eu@1.0.0"] {
        let refused = store.publish(skill(taken)).await;
        assert!(
            matches!(refused, Err(Error::Conflict { conflict: Conflict::SameImport(name), .. }) if name.as_str() == "crm"),
            "{taken}"
        );
    }
    store.publish(skill("crm.calls@1.0.0")).await.unwrap();
    store.publish(skill("crm-calls@1.0.0")).await.unwrap();
    let refused = store.publish(with_modules("crm@1.1.0", &["calls"])).await;
    assert!(
        matches!(refused, Err(Error::Conflict { conflict: Conflict::SameImport(name), .. }) if name.as_str() == "crm.calls")
    );
    let elsewhere = SkillRecord {
        tenant: tenant("other"),
        ..skill("crm.leads@1.0.0")
    };
    store.publish(elsewhere).await.unwrap();
}

pub(in crate::store) async fn packages_of_a_version_change_alone(place: &impl Place) {
    let store = place.open().await;
    let record = skill("csv@1.2.0");
    let other = skill("csv@1.3.0");
    for published in [&record, &other] {
        store.publish(published.clone()).await.unwrap();
    }
    // Read before, so that a cached record would show.
    let read = async |version: &SkillRecord| {
        let selector = Selector::Version(version.version.clone());
        store
            .skill(&version.tenant, &version.name, &selector)
            .await
            .unwrap()
    };
    assert_eq!(read(&record).await, record);
    let SkillRecord {
        tenant,
        name,
        version,
        ..
    } = &record;
    store
        .set_requirements(tenant, name, version, vec!["six".to_owned()])
        .await
        .unwrap();
    let changed = SkillRecord {
        requirements: vec!["six".to_owned()],
        ..record.clone()
    };
    assert_eq!((read(&record).await, read(&other).await), (changed, other));
    let elsewhere = "other".parse().unwrap();
    let missing = store
        .set_requirements(&elsewhere, name, version, Vec::new())
        .await;
    assert!(matches!(missing, Err(Error::NotFound(_))));
}

pub(in crate::store) async fn publishing_same_content_again_changes_nothing(place: &impl Place) {
    let store = place.open().await;
    let first = skill("csv@1.2.0");
    store.publish(first.clone()).await.unwrap();
    let again = SkillRecord {
        files: 99,
        ..first.clone()
    };
    assert_eq!(
        store.publish(again).await.unwrap(),
        Published::Same(Box::new(first))
    );
}

/// W-14, Z-25.
pub(in crate::store) async fn rejects_other_content_under_published_version(place: &impl Place) {
    let store = place.open().await;
    let first = skill("csv@1.2.0");
    store.publish(first.clone()).await.unwrap();
    let other = store.publish(with_content("csv@1.2.0", "other")).await;
    assert!(matches!(
        other,
        Err(Error::Conflict {
            conflict: Conflict::VersionExists,
            ..
        })
    ));
    let found = store
        .skill(&first.tenant, &first.name, &Selector::Latest)
        .await
        .unwrap();
    assert_eq!(found, first);
}

/// C-02.
pub(in crate::store) async fn one_of_concurrent_publications_wins(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let records: Vec<_> = (0..20)
        .map(|n| with_content("csv@1.2.0", &n.to_string()))
        .collect();
    let uploads = records
        .iter()
        .zip(stores.iter().cycle())
        .map(|(record, store)| store.publish(record.clone()));
    let results = futures::future::join_all(uploads).await;
    let (mut won, mut lost) = (Vec::new(), 0);
    for (record, result) in records.iter().zip(results) {
        match result {
            Ok(Published::New) => won.push(record),
            Err(Error::Conflict {
                conflict: Conflict::VersionExists,
                ..
            }) => lost += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((won.len(), lost), (1, 19));
    let name = "csv".parse().unwrap();
    let found = stores[0]
        .skill(&Tenant::default_tenant(), &name, &Selector::Latest)
        .await;
    assert_eq!(&found.unwrap(), won[0]);
}

pub(in crate::store) async fn latest_is_the_highest_release(place: &impl Place) {
    let store = place.open().await;
    publish_all(
        &store,
        &["csv@2.0.0-rc.1", "csv@1.10.0", "csv@1.9.0", "csv@0.0.0+abc"],
    )
    .await;
    assert_eq!(latest(&store).await, "1.10.0");
    publish_all(&store, &["csv@18446744073709551615.0.0", "csv@99999.0.0"]).await;
    assert_eq!(latest(&store).await, "18446744073709551615.0.0");
}

pub(in crate::store) async fn last_push_of_equal_releases_is_latest(place: &impl Place) {
    let store = place.open().await;
    publish_all(&store, &["csv@0.0.0+fff", "csv@0.0.0+aaa", "csv@0.0.0-rc.1"]).await;
    assert_eq!(latest(&store).await, "0.0.0+aaa");
}

/// Pushing A, B, A without versions means A. A declared version keeps its place.
pub(in crate::store) async fn repeated_push_without_version_is_latest(place: &impl Place) {
    let store = place.open().await;
    let mut unnamed = [skill("csv@0.0.0+aaa"), skill("csv@0.0.0+bbb")];
    for record in &mut unnamed {
        record.manifest.version = None;
    }
    let [a, b] = unnamed;
    for record in [&a, &b] {
        assert_eq!(store.publish(record.clone()).await.unwrap(), Published::New);
    }
    for record in [&a, &a, &b, &a] {
        let again = store.publish(record.clone()).await.unwrap();
        assert_eq!(again, Published::Same(Box::new(record.clone())));
        assert_eq!(latest(&store).await, record.version.to_string());
    }
    let by_other_key = SkillRecord {
        pushed_by: "01900000-0000-7000-8000-000000000002".parse().ok(),
        ..a.clone()
    };
    for record in [&b, &by_other_key] {
        store.publish(record.clone()).await.unwrap();
    }
    let selector = Selector::Version(a.version.clone());
    let found = store.skill(&a.tenant, &a.name, &selector).await.unwrap();
    assert_eq!(found, by_other_key, "it names the last push");
    let listed = store.versions(&a.tenant, &a.name, None, 10).await.unwrap().items;
    assert_eq!(
        listed
            .iter()
            .map(|skill| skill.version.clone())
            .collect::<Vec<_>>(),
        [a.version.clone(), b.version]
    );
    let mut declared = [skill("csv@1.0.0+x"), skill("csv@1.0.0+y"), skill("csv@0.9.0")];
    for record in &mut declared {
        record.manifest.version = Some(record.version.clone());
        store.publish(record.clone()).await.unwrap();
    }
    for record in declared.iter().chain([&a]) {
        store.publish(record.clone()).await.unwrap();
        assert_eq!(latest(&store).await, "1.0.0+y", "after {}", record.version);
    }
}

pub(in crate::store) async fn last_push_is_latest_without_release(place: &impl Place) {
    let store = place.open().await;
    publish_all(&store, &["csv@2.0.0-rc.1", "csv@1.0.0-rc.1"]).await;
    assert_eq!(latest(&store).await, "1.0.0-rc.1");
}

/// W-14: a digest names one content.
pub(in crate::store) async fn a_skill_is_found_by_version_and_by_digest(place: &impl Place) {
    let store = place.open().await;
    publish_all(&store, &["csv@1.0.0", "csv@2.0.0", "other@1.0.0"]).await;
    let old = skill("csv@1.0.0");
    for selector in [
        Selector::Version(old.version.clone()),
        Selector::Digest(old.digest),
    ] {
        let found = store.skill(&old.tenant, &old.name, &selector).await;
        assert_eq!(found.unwrap(), old, "{selector}");
    }
    let elsewhere = Selector::Digest(skill("other@1.0.0").digest);
    let found = store.skill(&old.tenant, &old.name, &elsewhere).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
}

pub(in crate::store) async fn deleted_version_is_not_found(place: &impl Place) {
    let store = place.open().await;
    publish_all(&store, &["csv@1.0.0", "csv@2.0.0"]).await;
    let gone = skill("csv@2.0.0");
    let deleted = store
        .delete_version(&gone.tenant, &gone.name, &gone.version)
        .await;
    assert_eq!(deleted.unwrap(), gone);
    assert_eq!(latest(&store).await, "1.0.0");
    assert!(!store.skill_digest_is_used(&gone.digest).await.unwrap());
    assert!(
        store
            .skill_digest_is_used(&skill("csv@1.0.0").digest)
            .await
            .unwrap()
    );
    let again = store
        .delete_version(&gone.tenant, &gone.name, &gone.version)
        .await;
    assert!(matches!(again, Err(Error::NotFound(_))));
}

/// T-02, T-11.
pub(in crate::store) async fn a_tenant_never_sees_the_skills_of_another(place: &impl Place) {
    let store = place.open().await;
    let mine = skill("csv@1.0.0");
    store.publish(mine.clone()).await.unwrap();
    let foreign = tenant("default2");
    for selector in [
        Selector::Latest,
        Selector::Version(mine.version.clone()),
        Selector::Digest(mine.digest),
    ] {
        let found = store.skill(&foreign, &mine.name, &selector).await;
        assert!(matches!(found, Err(Error::NotFound(_))), "{selector}");
    }
    let deleted = store.delete_version(&foreign, &mine.name, &mine.version).await;
    assert!(matches!(deleted, Err(Error::NotFound(_))));
    assert!(store.skills(&foreign, None, 10).await.unwrap().items.is_empty());
    assert!(
        store
            .versions(&foreign, &mine.name, None, 10)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let theirs = SkillRecord {
        tenant: foreign,
        ..with_content("csv@1.0.0", "theirs")
    };
    assert_eq!(store.publish(theirs).await.unwrap(), Published::New);
}

/// A reader may remember what it read; it never answers what was true a moment ago.
pub(in crate::store) async fn changes_of_another_process_are_visible_at_once(place: &impl Place) {
    let (store, other) = (place.open().await, place.open().await);
    let first = skill("csv@1.0.0");
    publish_all(&other, &["csv@1.0.0"]).await;
    for _ in 0..2 {
        let found = store.skill(&first.tenant, &first.name, &Selector::Latest).await;
        assert_eq!(found.unwrap(), first);
    }
    let deleted = other
        .delete_version(&first.tenant, &first.name, &first.version)
        .await;
    deleted.unwrap();
    let found = store.skill(&first.tenant, &first.name, &Selector::Latest).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
    // The same version, the same number of its push, the same content: pushed again a moment later.
    let mut again = skill("csv@1.0.0");
    again.created_at += jiff::SignedDuration::from_micros(1);
    again.manifest.description = "Another".to_owned();
    other.publish(again.clone()).await.unwrap();
    let found = store.skill(&first.tenant, &first.name, &Selector::Latest).await;
    assert_eq!(found.unwrap(), again);
}
