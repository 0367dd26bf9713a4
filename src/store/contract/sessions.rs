//! Promises about sessions and sign-in links.

use super::Place;
use super::samples::{at, key, tenant};
use crate::auth::{KeyRecord, SessionRecord, SignInLink};
use crate::ids::{Digest, SessionId, Tenant};
use crate::store::{Cursor, Error, SessionEnd, SessionQuota, Store};

const NO_QUOTA: SessionQuota = SessionQuota {
    per_key: 100,
    per_tenant: 100,
};

/// A session that `key` opened some microseconds after the start of time.
fn session(key: &KeyRecord, micros: i64) -> SessionRecord {
    let id = SessionId::generate();
    SessionRecord {
        id,
        tenant: key.tenant.clone(),
        key: key.id,
        cookie_hash: Digest::of(format!("cookie {id}").as_bytes()),
        page_hash: Digest::of(format!("page {id}").as_bytes()),
        created_at: at(micros),
        used_at: at(micros),
        expires_at: at(1_000_000),
    }
}

fn link(key: &KeyRecord, token: &str, micros: i64) -> SignInLink {
    SignInLink {
        hash: Digest::of(token.as_bytes()),
        tenant: key.tenant.clone(),
        key: key.id,
        expires_at: at(micros),
    }
}

/// Nothing is idle at this time.
fn end_at(micros: i64) -> SessionEnd {
    SessionEnd {
        now: at(micros),
        idle_since: at(-1),
    }
}

async fn added(store: &Store, key: &KeyRecord, micros: i64) -> SessionRecord {
    let new = session(key, micros);
    store.add_session(new.clone(), NO_QUOTA).await.unwrap();
    new
}

async fn live(store: &Store, tenant: &Tenant, end: SessionEnd) -> Vec<SessionId> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.sessions(tenant, end, after, 2).await.unwrap();
        found.extend(page.items.iter().map(|found| found.session.id));
        match page.next {
            Some(next) => after = Some(next.to_string().parse::<Cursor>().unwrap()),
            None => return found,
        }
    }
}

async fn exists(store: &Store, session: &SessionRecord) -> bool {
    store.session(&session.tenant, session.id).await.is_ok()
}

pub(in crate::store) async fn a_session_is_found_by_its_cookie_with_its_key(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let key = key("secret");
    stores[0].add_key(key.clone()).await.unwrap();
    let new = added(&stores[0], &key, 3).await;
    added(&stores[0], &key, 4).await;
    let found = stores[1].session_by_cookie(&new.cookie_hash).await.unwrap();
    assert_eq!((&found.session, &found.key), (&new, &key));
    for unknown in [new.page_hash, Digest::of(b"guess")] {
        let unknown = stores[1].session_by_cookie(&unknown).await;
        assert!(matches!(unknown, Err(Error::NotFound(_))));
    }
}

/// T-07: another process sees the end of a key with the next look-up.
pub(in crate::store) async fn a_session_shows_current_state_of_its_key(place: &impl Place) {
    let (store, other) = (place.open().await, place.open().await);
    let key = key("secret");
    store.add_key(key.clone()).await.unwrap();
    let new = added(&store, &key, 0).await;
    assert_eq!(live(&store, &key.tenant, end_at(1)).await, [new.id]);
    other.revoke_key(&key.tenant, key.id, at(5)).await.unwrap();
    let found = store.session_by_cookie(&new.cookie_hash).await.unwrap();
    assert_eq!(found.key.revoked_at, Some(at(5)));
    assert!(live(&store, &key.tenant, end_at(1)).await.is_empty());
}

pub(in crate::store) async fn use_of_a_session_never_moves_back(place: &impl Place) {
    let store = place.open().await;
    let key = key("secret");
    store.add_key(key.clone()).await.unwrap();
    let new = added(&store, &key, 0).await;
    for (used, recorded) in [(9, 9), (5, 9), (12, 12)] {
        store.use_session(&key.tenant, new.id, at(used)).await.unwrap();
        let found = store.session(&key.tenant, new.id).await.unwrap();
        assert_eq!(found.session.used_at, at(recorded));
    }
}

pub(in crate::store) async fn sessions_are_listed_newest_first_until_they_end(place: &impl Place) {
    let store = place.open().await;
    let (lasting, expiring) = (key("lasting"), key("expiring"));
    let lasting = KeyRecord {
        expires_at: None,
        ..lasting
    };
    let expiring = KeyRecord {
        expires_at: Some(at(50)),
        ..expiring
    };
    for key in [&lasting, &expiring] {
        store.add_key(key.clone()).await.unwrap();
    }
    let mut newest_first = Vec::new();
    for micros in [0, 1, 1, 2, 3] {
        newest_first.insert(0, added(&store, &lasting, micros).await.id);
    }
    let of_expiring = added(&store, &expiring, 4).await;
    let all = [&[of_expiring.id][..], &newest_first].concat();
    assert_eq!(live(&store, &lasting.tenant, end_at(49)).await, all);
    assert_eq!(live(&store, &lasting.tenant, end_at(50)).await, newest_first);
    assert!(live(&store, &lasting.tenant, end_at(1_000_000)).await.is_empty());
    let idle = SessionEnd {
        idle_since: at(2),
        ..end_at(10)
    };
    assert_eq!(
        live(&store, &lasting.tenant, idle).await,
        [of_expiring.id, newest_first[0]]
    );
}

/// A key or tenant that signs in again and again ends its own oldest sessions only.
pub(in crate::store) async fn least_recently_used_session_is_deleted_beyond_quota(place: &impl Place) {
    let store = place.open().await;
    let (one, two) = (key("one"), key("two"));
    let foreign = KeyRecord {
        tenant: tenant("other"),
        ..key("three")
    };
    for key in [&one, &two, &foreign] {
        store.add_key(key.clone()).await.unwrap();
    }
    let of_foreign = added(&store, &foreign, 0).await;
    let first = added(&store, &one, 1).await;
    let second = added(&store, &one, 2).await;
    store.use_session(&one.tenant, first.id, at(3)).await.unwrap();
    let quota = SessionQuota {
        per_key: 2,
        per_tenant: 3,
    };
    let third = session(&one, 4);
    store.add_session(third.clone(), quota).await.unwrap();
    assert!(!exists(&store, &second).await && exists(&store, &first).await);

    for micros in [5, 6] {
        store.add_session(session(&two, micros), quota).await.unwrap();
    }
    assert!(!exists(&store, &first).await && exists(&store, &third).await);
    assert!(exists(&store, &of_foreign).await);
}

pub(in crate::store) async fn ended_sessions_are_deleted(place: &impl Place) {
    let store = place.open().await;
    let (lasting, revoked, expired) = (key("lasting"), key("revoked"), key("expired"));
    let expired = KeyRecord {
        expires_at: Some(at(50)),
        ..expired
    };
    let mut made = Vec::new();
    for key in [&lasting, &revoked, &expired] {
        store.add_key(key.clone()).await.unwrap();
        made.push(added(&store, key, 10).await);
    }
    let idle = added(&store, &lasting, 5).await;
    store
        .add_sign_in_link(link(&lasting, "old", 50), 9)
        .await
        .unwrap();
    store
        .add_sign_in_link(link(&lasting, "new", 51), 9)
        .await
        .unwrap();
    store
        .revoke_key(&revoked.tenant, revoked.id, at(20))
        .await
        .unwrap();
    let end = SessionEnd {
        now: at(50),
        idle_since: at(5),
    };
    store.delete_ended_sessions(end, 100).await.unwrap();
    assert!(exists(&store, &made[0]).await);
    for ended in [&made[1], &made[2], &idle] {
        assert!(!exists(&store, ended).await);
    }
    // Asked at a time when both would be valid.
    let take = async |token: &str| {
        store
            .take_sign_in_link(&Digest::of(token.as_bytes()), at(0))
            .await
    };
    assert!(matches!(take("old").await, Err(Error::NotFound(_))));
    assert!(take("new").await.is_ok());
}

/// W-09: two browsers race for one link, one gets in.
pub(in crate::store) async fn a_sign_in_link_is_taken_once(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let key = key("secret");
    stores[0].add_key(key.clone()).await.unwrap();
    stores[0]
        .add_sign_in_link(link(&key, "token", 9), 9)
        .await
        .unwrap();
    let hash = Digest::of(b"token");
    let races = (0..16).zip(stores.iter().cycle());
    let races = races.map(|(_, store)| store.take_sign_in_link(&hash, at(1)));
    let taken: Vec<KeyRecord> = futures::future::join_all(races)
        .await
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    assert_eq!(taken, [key]);
}

pub(in crate::store) async fn an_expired_sign_in_link_is_not_found(place: &impl Place) {
    let store = place.open().await;
    let key = key("secret");
    store.add_key(key.clone()).await.unwrap();
    store.add_sign_in_link(link(&key, "token", 9), 9).await.unwrap();
    let hash = Digest::of(b"token");
    for (now, is_found) in [(10, false), (9, false), (8, true)] {
        let taken = store.take_sign_in_link(&hash, at(now)).await;
        assert_eq!(taken.is_ok(), is_found, "{now}");
    }
}

pub(in crate::store) async fn sign_in_links_of_a_key_are_limited(place: &impl Place) {
    let store = place.open().await;
    let key = key("secret");
    store.add_key(key.clone()).await.unwrap();
    for micros in 1..=4 {
        let new = link(&key, &micros.to_string(), micros);
        store.add_sign_in_link(new, 2).await.unwrap();
    }
    for (token, is_found) in [("1", false), ("2", false), ("3", true), ("4", true)] {
        let taken = store
            .take_sign_in_link(&Digest::of(token.as_bytes()), at(0))
            .await;
        assert_eq!(taken.is_ok(), is_found, "{token}");
    }
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_sessions_of_another(place: &impl Place) {
    let store = place.open().await;
    let (key, foreign) = (key("mine"), tenant("default2"));
    store.add_key(key.clone()).await.unwrap();
    let mine = added(&store, &key, 0).await;
    assert!(live(&store, &foreign, end_at(1)).await.is_empty());
    let found = store.session(&foreign, mine.id).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
    let deleted = store.delete_session(&foreign, mine.id).await;
    assert!(matches!(deleted, Err(Error::NotFound(_))));
    store.use_session(&foreign, mine.id, at(9)).await.unwrap();
    assert_eq!(store.session(&key.tenant, mine.id).await.unwrap().session, mine);
    store.delete_session(&key.tenant, mine.id).await.unwrap();
    assert!(!exists(&store, &mine).await);
}
