//! Promises about lists: complete, in order, stable, and each with its own cursors.

use super::Place;
use super::samples::{at, execution, key, outcome, skill, tenant};
use crate::auth::KeyRecord;
use crate::execution::{Execution, ExecutionKey, Failure, NewExecution, Outcome, Status};
use crate::ids::{ExecutionId, KeyId, Tenant};
use crate::limits;
use crate::store::{Cursor, Error, ExecutionFilter, ExecutionSource, Page, Store};

/// Follows a list to its end in pages of `$rows`, each cursor written out and read back as a caller's would be.
macro_rules! all_pages {
    ($store:ident.$list:ident($($of:expr),*), $rows:expr) => {{
        let (mut items, mut after) = (Vec::new(), None);
        loop {
            let page = $store.$list($($of,)* after, $rows).await.unwrap();
            items.extend(page.items);
            match page.next {
                Some(next) => after = Some(next.to_string().parse::<Cursor>().unwrap()),
                None => break items,
            }
        }
    }};
}

fn default_tenant() -> Tenant {
    Tenant::default_tenant()
}

pub(in crate::store) async fn skills_are_listed_once_each_by_name(place: &impl Place) {
    let store = place.open().await;
    for label in [
        "b@1.0.0",
        "b@3.0.0",
        "b@2.0.0",
        "a@1.0.0-rc.1",
        "c.d@0.1.0",
        "a-a@1.0.0",
        "d@1.0.0",
    ] {
        store.publish(skill(label)).await.unwrap();
    }
    for rows in [1, 2, 5, 100] {
        let found = all_pages!(store.skills(&default_tenant()), rows);
        let labels: Vec<String> = found
            .iter()
            .map(|s| format!("{}@{}", s.name, s.version))
            .collect();
        assert_eq!(
            labels,
            ["a@1.0.0-rc.1", "a-a@1.0.0", "b@3.0.0", "c.d@0.1.0", "d@1.0.0"],
            "{rows}"
        );
    }
}

pub(in crate::store) async fn versions_are_listed_last_push_first(place: &impl Place) {
    let store = place.open().await;
    for label in ["b@1.0.0", "b@3.0.0", "a@1.0.0", "b@2.0.0", "b@4.0.0-rc.1"] {
        store.publish(skill(label)).await.unwrap();
    }
    let name = "b".parse().unwrap();
    for rows in [1, 2, 100] {
        let found = all_pages!(store.versions(&default_tenant(), &name), rows);
        let versions: Vec<String> = found.iter().map(|s| s.version.to_string()).collect();
        assert_eq!(versions, ["4.0.0-rc.1", "2.0.0", "3.0.0", "1.0.0"], "{rows}");
    }
}

pub(in crate::store) async fn lists_of_skills_omit_instructions(place: &impl Place) {
    let store = place.open().await;
    let mut listed = skill("b@1.0.0");
    store.publish(listed.clone()).await.unwrap();
    listed.manifest.instructions = String::new();
    let skills = store.skills(&default_tenant(), None, 10).await.unwrap();
    assert_eq!(skills.items, [listed.clone()]);
    let versions = store.versions(&default_tenant(), &listed.name, None, 10).await;
    assert_eq!(versions.unwrap().items, [listed]);
}

async fn begin(store: &Store, new: NewExecution) -> ExecutionId {
    let id = new.id;
    store.insert_running(new, || ()).await.unwrap();
    id
}

fn ids(executions: &[Execution]) -> Vec<ExecutionId> {
    executions.iter().map(|e| e.new.id).collect()
}

/// The big values stay where they are.
pub(in crate::store) async fn executions_are_listed_newest_first(place: &impl Place) {
    let store = place.open().await;
    let mut newest_first = Vec::new();
    for micros in 0..7 {
        newest_first.insert(0, begin(&store, execution(micros)).await);
    }
    let end = outcome(Status::Failed);
    store
        .finish(&default_tenant(), newest_first[2], end.clone())
        .await
        .unwrap();
    for rows in [1, 3, 7, 100] {
        let found = all_pages!(
            store.executions(&default_tenant(), &ExecutionFilter::default()),
            rows
        );
        assert_eq!(ids(&found), newest_first, "{rows}");
        let slim = Outcome {
            error: end.error.clone().map(|failure| Failure {
                exception: None,
                ..failure
            }),
            output: None,
            results: Vec::new(),
            results_truncated: false,
            logs: Default::default(),
            files: Vec::new(),
            skipped: Vec::new(),
            blobs: Vec::new(),
            ..end.clone()
        };
        assert_eq!(found[2].outcome.as_ref(), Some(&slim));
    }
}

pub(in crate::store) async fn lists_all_executions_of_one_microsecond(place: &impl Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for _ in 0..5 {
        expected.insert(0, begin(&store, execution(3)).await);
    }
    let found = all_pages!(
        store.executions(&default_tenant(), &ExecutionFilter::default()),
        2
    );
    assert_eq!(ids(&found), expected);
}

fn fits(filter: &ExecutionFilter, new: &NewExecution, status: Status) -> bool {
    let mut wanted = filter.statuses.iter();
    (filter.statuses.is_empty() || wanted.any(|wanted| wanted == status))
        && match &filter.source {
            None => true,
            Some(ExecutionSource::Code) => new.skill.is_none(),
            Some(ExecutionSource::Skill(name)) => new.skill.as_ref() == Some(name),
        }
        && filter
            .key
            .is_none_or(|id| new.key.as_ref().is_some_and(|key| key.id == id))
        && filter.since.is_none_or(|at| new.created_at >= at)
        && filter.until.is_none_or(|at| new.created_at < at)
}

///
pub(in crate::store) async fn filters_select_exactly_matching_executions(place: &impl Place) {
    let store = place.open().await;
    let skills = [None, Some("csv".parse().unwrap()), Some("tex".parse().unwrap())];
    let key = |name: &str| ExecutionKey {
        id: KeyId::generate(),
        name: name.to_owned(),
    };
    let keys = [None, Some(key("a")), Some(key("b")), Some(key("a"))];
    let mut all = Vec::new();
    for micros in 0..24 {
        let new = NewExecution {
            skill: skills[micros % 3].clone(),
            key: keys[micros % 4].clone(),
            ..execution(i64::try_from(micros).unwrap())
        };
        store.insert_running(new.clone(), || ()).await.unwrap();
        let status = [Status::Running, Status::Failed, Status::Success][micros / 3 % 3];
        if status.is_final() {
            store.finish(&new.tenant, new.id, outcome(status)).await.unwrap();
        }
        all.insert(0, (new, status));
    }
    let (running, failed, oom) = (Status::Running, Status::Failed, Status::Oom);
    let statuses: [&[Status]; 5] = [&[], &[running], &[oom], &[failed, running], &Status::ALL];
    let sources = [
        None,
        Some(ExecutionSource::Code),
        skills[1].clone().map(ExecutionSource::Skill),
    ];
    let ids_of_keys = [None, keys[1].as_ref().map(|key| key.id), Some(KeyId::generate())];
    let bounds = [None, Some(at(2)), Some(at(9))];
    for (statuses, source) in statuses
        .iter()
        .flat_map(|s| sources.iter().map(move |source| (*s, source)))
    {
        for (key, (since, until)) in ids_of_keys.into_iter().flat_map(|key| {
            let pairs = bounds.into_iter().flat_map(|s| bounds.map(|u| (s, u)));
            pairs.map(move |pair| (key, pair))
        }) {
            let filter = ExecutionFilter {
                statuses: statuses.iter().copied().collect(),
                source: source.clone(),
                key,
                since,
                until,
            };
            let matching = all.iter().filter(|(new, status)| fits(&filter, new, *status));
            let expected: Vec<_> = matching.map(|(new, _)| new.id).collect();
            let found = all_pages!(store.executions(&default_tenant(), &filter), 2);
            assert_eq!(ids(&found), expected, "{filter:?}");
        }
    }
}

pub(in crate::store) async fn pages_are_complete_while_rows_are_added(place: &impl Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for micros in 0..6 {
        expected.insert(0, begin(&store, execution(micros)).await);
    }
    let (mut found, mut after, mut micros) = (Vec::new(), None, 100);
    loop {
        let page = store
            .executions(&default_tenant(), &ExecutionFilter::default(), after, 2)
            .await
            .unwrap();
        found.extend(ids(&page.items));
        begin(&store, execution(micros)).await;
        micros += 1;
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(found, expected);
}

pub(in crate::store) async fn keys_are_listed_newest_first(place: &impl Place) {
    let store = place.open().await;
    let mut expected = Vec::new();
    for micros in 0..5 {
        let record = KeyRecord {
            created_at: at(micros / 2),
            ..key(&micros.to_string())
        };
        store.add_key(record.clone()).await.unwrap();
        expected.insert(0, record);
    }
    for rows in [1, 2, 100] {
        assert_eq!(
            all_pages!(store.keys(&default_tenant()), rows),
            expected,
            "{rows}"
        );
    }
}

///
pub(in crate::store) async fn a_cursor_of_another_list_is_refused(place: &impl Place) {
    let store = place.open().await;
    for (n, label) in ["a@1.0.0", "b@1.0.0", "a@2.0.0"].into_iter().enumerate() {
        store.publish(skill(label)).await.unwrap();
        store.add_key(key(&n.to_string())).await.unwrap();
        begin(&store, execution(0)).await;
    }
    let (mine, all) = (default_tenant(), ExecutionFilter::default());
    let failed = ExecutionFilter {
        statuses: Some(Status::Failed).into(),
        ..ExecutionFilter::default()
    };
    let (a, b) = ("a".parse().unwrap(), "b".parse().unwrap());
    let skills = store.skills(&mine, None, 1).await.unwrap().next;
    let keys = store.keys(&mine, None, 1).await.unwrap().next;
    let versions = store.versions(&mine, &a, None, 1).await.unwrap().next;
    let executions = store.executions(&mine, &all, None, 1).await.unwrap().next;
    assert!(
        [&skills, &keys, &versions, &executions]
            .iter()
            .all(|c| c.is_some())
    );
    refused(store.skills(&mine, keys.clone(), 1).await);
    refused(store.skills(&tenant("other"), skills.clone(), 1).await);
    refused(store.keys(&mine, executions.clone(), 1).await);
    refused(store.versions(&mine, &b, versions, 1).await);
    refused(store.executions(&mine, &failed, executions, 1).await);
    refused(store.executions(&mine, &all, skills, 1).await);
}

fn refused<T: std::fmt::Debug>(page: Result<Page<T>, Error>) {
    assert!(matches!(page, Err(Error::Cursor(_))), "{page:?}");
}

///
pub(in crate::store) async fn page_size_is_clamped(place: &impl Place) {
    let store = place.open().await;
    let (mine, all) = (default_tenant(), ExecutionFilter::default());
    for micros in 0..=limits::PAGE_ROWS_MAX {
        begin(&store, execution(micros.into())).await;
    }
    for (asked, rows) in [(0, 1), (u32::MAX, limits::PAGE_ROWS_MAX)] {
        let page = store.executions(&mine, &all, None, asked).await.unwrap();
        assert_eq!(page.items.len(), usize::try_from(rows).unwrap());
        assert!(page.next.is_some());
    }
}
