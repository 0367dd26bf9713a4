//! The warm pool: sandboxes created before a run needs them, each used by one run, with a pre-started interpreter if
//! possible.
//!
//! They contain no input, argument, secret or file of a request, and are as restricted as any other sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::guest::wire::{self, Warm};
use crate::limits;
use crate::sandbox::warm_key::WarmKey;
use crate::sandbox::{Error, Job, SandboxSpec};
use crate::telemetry::WarmPoolStats;

/// Size of the warm pool.
///
/// The default has no slots; the operator's settings are `pool.slots`, `pool.memory` and `pool.idle` (`config::settings`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmPoolSettings {
    /// Maximum number of warm sandboxes; 0 disables the pool.
    pub slots: usize,
    /// Maximum memory of all warm sandboxes, estimated by [`limits::WARM_PYTHON_BYTES`] and similar.
    pub memory_bytes: u64,
    /// Idle time after which a warm sandbox is evicted.
    pub idle: Duration,
}

/// Creates sandboxes for the pool.
pub(super) trait WarmFactory: Send + Sync + 'static {
    type Sandbox: Send + 'static;

    /// Delay of a refill after a run, whose result is recorded and answered first.
    const REFILL_DELAY: Duration;
    /// Whether [`Self::refill_others`] has work after a run that needs no warm sandbox.
    const REFILLS_OTHERS: bool;

    fn is_connected(sandbox: &mut Self::Sandbox) -> bool;

    /// Creates a sandbox with its pre-started interpreter.
    fn create_warm(
        self: &Arc<Self>,
        pending: &PendingSandbox<Self::Sandbox>,
    ) -> impl Future<Output = Result<Self::Sandbox, Error>> + Send;

    /// Refills the backend's other stocks, until the tracker is closed.
    fn refill_others(self: &Arc<Self>, background: &TaskTracker) -> impl Future<Output = ()> + Send;

    /// Waits for the background work of evicted and ended sandboxes.
    fn release(self: &Arc<Self>) -> impl Future<Output = ()> + Send;
}

/// A warm sandbox that is being created.
#[derive(Debug)]
pub(super) struct PendingSandbox<T> {
    key: WarmKey,
    pub(super) spec: SandboxSpec,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    /// Sandboxes to end before this one is created.
    evicted: Vec<T>,
}

impl<T> PendingSandbox<T> {
    fn new(key: WarmKey, job: &Job, evicted: Vec<T>) -> Self {
        let mut spec = job.sandbox.clone();
        // The sandbox may wait before its program's time begins.
        spec.limits.timeout = limits::TIMEOUT_MAX + limits::WARM_IDLE_MAX;
        Self {
            key,
            spec,
            argv: key.argv(job),
            env: key.env(job),
            evicted,
        }
    }

    pub(super) fn command(&self) -> Warm {
        Warm {
            version: wire::VERSION,
            skill: self.spec.skill.as_ref().map(|skill| skill.name.to_string()),
            argv: self.argv.clone(),
            env: self.env.clone(),
        }
    }
}

#[derive(Debug)]
pub(super) struct WarmPool<T> {
    state: Arc<Mutex<PoolState<T>>>,
    background: TaskTracker,
}

#[derive(Debug)]
struct PoolState<T> {
    settings: WarmPoolSettings,
    /// In order of creation.
    sandboxes: Vec<WarmSandbox<T>>,
    pending: HashMap<WarmKey, usize>,
    /// Wanted number of sandboxes per key: increased by each miss, decreased by each unused expiry.
    wanted: HashMap<WarmKey, usize>,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct WarmSandbox<T> {
    key: WarmKey,
    created: Instant,
    sandbox: T,
}

impl<T: Send + 'static> WarmPool<T> {
    /// Disabled until configured. `background` runs refills.
    pub(super) fn new(background: TaskTracker) -> Self {
        let state = PoolState {
            settings: WarmPoolSettings::default(),
            sandboxes: Vec::new(),
            pending: HashMap::new(),
            wanted: HashMap::new(),
            hits: 0,
            misses: 0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            background,
        }
    }

    pub(super) fn configure(&self, settings: WarmPoolSettings) {
        self.state().settings = settings;
    }

    pub(super) fn stats(&self) -> WarmPoolStats {
        let state = self.state();
        WarmPoolStats {
            hits: state.hits,
            misses: state.misses,
            waiting: state.sandboxes.len() as u64,
            bytes: state.sandboxes.iter().map(|warm| warm.key.bytes).sum(),
        }
    }

    /// Removes a connected warm sandbox of this key.
    pub(super) fn checkout<F: WarmFactory<Sandbox = T>>(&self, key: WarmKey) -> Option<T> {
        let found = std::iter::from_fn(|| self.checkout_any(key))
            .find_map(|mut sandbox| F::is_connected(&mut sandbox).then_some(sandbox));
        let mut state = self.state();
        if found.is_some() {
            state.hits += 1;
        } else if state.settings.slots > 0 {
            state.misses += 1;
        }
        drop(state);
        found
    }

    /// The newest, since its pages are most likely in caches.
    fn checkout_any(&self, key: WarmKey) -> Option<T> {
        let mut state = self.state();
        let found = state.sandboxes.iter().rposition(|warm| warm.key == key);
        if found.is_none() && state.settings.slots > 0 {
            let slots = state.settings.slots;
            let wanted = state.wanted.entry(key).or_insert(0);
            *wanted = (*wanted + 1).min(slots);
            state.forget_unused();
        }
        found.map(|index| state.sandboxes.remove(index).sandbox)
    }

    /// Creates another sandbox for jobs like this in the background, if one is wanted.
    pub(super) fn refill<F>(&self, factory: &Arc<F>, key: Option<WarmKey>, job: &Job)
    where
        F: WarmFactory<Sandbox = T>,
    {
        if self.background.is_closed() {
            return;
        }
        let pending = key.and_then(|key| Some(PendingSandbox::new(key, job, self.reserve(key)?)));
        if pending.is_none() && !F::REFILLS_OTHERS {
            return;
        }
        let (factory, pool) = (factory.clone(), self.clone());
        self.background.spawn(async move {
            if !F::REFILL_DELAY.is_zero() {
                tokio::time::sleep(F::REFILL_DELAY).await;
            }
            if let Some(mut pending) = pending {
                pending.evicted.clear();
                let created = factory.create_warm(&pending).await;
                let created = created.inspect_err(
                    |error| tracing::warn!(%error, "Warm sandbox not created; the next run creates its own"),
                );
                pool.complete(pending.key, created.ok());
            }
            factory.refill_others(&pool.background).await;
        });
    }

    /// Counts another one as pending if it is wanted. Returns the oldest sandboxes of other keys, evicted to make
    /// space.
    fn reserve(&self, key: WarmKey) -> Option<Vec<T>> {
        let mut state = self.state();
        let wanted = state.wanted.get(&key).copied().unwrap_or(0);
        let pending = state.pending.get(&key).copied().unwrap_or(0);
        let ready = state.sandboxes.iter().filter(|warm| warm.key == key).count();
        if ready + pending >= wanted {
            return None;
        }
        // Evict only if eviction frees enough memory.
        if !state.fits(key, |warm| warm.key == key) {
            return None;
        }
        let mut evicted = Vec::new();
        while !state.fits(key, |_| true) {
            let oldest = state.sandboxes.iter().position(|warm| warm.key != key)?;
            evicted.push(state.sandboxes.remove(oldest).sandbox);
        }
        *state.pending.entry(key).or_insert(0) += 1;
        Some(evicted)
    }

    fn complete(&self, key: WarmKey, created: Option<T>) {
        let mut state = self.state();
        if let Some(count) = state.pending.get_mut(&key) {
            *count = count.saturating_sub(1);
        }
        state.pending.retain(|_, count| *count > 0);
        if let Some(sandbox) = created {
            state.sandboxes.push(WarmSandbox {
                key,
                created: Instant::now(),
                sandbox,
            });
        }
    }

    pub(super) fn evict_expired(&self) -> Vec<T> {
        let mut state = self.state();
        let idle = state.settings.idle;
        let expired = state
            .sandboxes
            .extract_if(.., |warm| warm.created.elapsed() >= idle);
        let expired: Vec<_> = expired.collect();
        for warm in &expired {
            if let Some(wanted) = state.wanted.get_mut(&warm.key) {
                *wanted = wanted.saturating_sub(1);
            }
        }
        state.wanted.retain(|_, wanted| *wanted > 0);
        expired.into_iter().map(|warm| warm.sandbox).collect()
    }

    /// Ends all warm sandboxes and waits for background work.
    pub(super) async fn drain<F>(&self, factory: Option<&Arc<F>>)
    where
        F: WarmFactory<Sandbox = T>,
    {
        self.background.close();
        drop(self.evict_all());
        self.background.wait().await;
        // Sandboxes that were pending.
        drop(self.evict_all());
        self.background.wait().await;
        if let Some(factory) = factory {
            factory.release().await;
        }
        self.background.reopen();
    }

    fn evict_all(&self) -> Vec<T> {
        let mut state = self.state();
        state.wanted.clear();
        let all = std::mem::take(&mut state.sandboxes);
        all.into_iter().map(|warm| warm.sandbox).collect()
    }

    fn state(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for WarmPool<T> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            background: self.background.clone(),
        }
    }
}

impl<T> PoolState<T> {
    /// Limits the wanted keys to those with sandboxes, once there are too many.
    fn forget_unused(&mut self) {
        if self.wanted.len() > limits::WARM_KEYS_MAX {
            let (sandboxes, pending) = (&self.sandboxes, &self.pending);
            self.wanted
                .retain(|key, _| pending.contains_key(key) || sandboxes.iter().any(|warm| warm.key == *key));
        }
    }

    /// Whether another one of this key fits next to pending sandboxes and those that stay.
    fn fits(&self, key: WarmKey, stays: impl Fn(&WarmSandbox<T>) -> bool) -> bool {
        let (mut count, mut bytes) = (0, key.bytes);
        for (pending, sandboxes) in &self.pending {
            count += sandboxes;
            bytes += pending.bytes * *sandboxes as u64;
        }
        for warm in self.sandboxes.iter().filter(|warm| stays(warm)) {
            count += 1;
            bytes += warm.key.bytes;
        }
        count < self.settings.slots && bytes <= self.settings.memory_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(slots: usize, memory_bytes: u64) -> WarmPool<&'static str> {
        let pool = WarmPool::new(TaskTracker::new());
        pool.configure(WarmPoolSettings {
            slots,
            memory_bytes,
            idle: Duration::from_secs(60),
        });
        pool
    }

    fn key(name: &str) -> WarmKey {
        WarmKey::named(name, 1)
    }

    /// Creates a sandbox if one is wanted; returns the evicted ones.
    fn create(pool: &WarmPool<&'static str>, name: &'static str) -> Option<Vec<&'static str>> {
        let evicted = pool.reserve(key(name))?;
        pool.complete(key(name), Some(name));
        Some(evicted)
    }

    #[test]
    fn creates_one_sandbox_after_a_miss() {
        let pool = pool(4, 4);
        assert_eq!(create(&pool, "a"), None);
        assert_eq!(pool.checkout_any(key("a")), None);
        assert_eq!(create(&pool, "a"), Some(vec![]));
        assert_eq!(create(&pool, "a"), None);
        assert_eq!(pool.checkout_any(key("b")), None);
        assert_eq!(pool.checkout_any(key("a")), Some("a"));
        assert_eq!(pool.checkout_any(key("a")), None);
    }

    #[test]
    fn creates_more_sandboxes_after_more_misses() {
        let pool = pool(3, 9);
        for _ in 0..9 {
            assert_eq!(pool.checkout_any(key("a")), None);
        }
        let made = std::iter::repeat_with(|| create(&pool, "a")).take_while(Option::is_some);
        assert_eq!(made.count(), 3);
    }

    #[test]
    fn evicts_the_oldest_sandbox_of_another_key() {
        let pool = pool(2, 9);
        for name in ["a", "b", "c"] {
            assert_eq!(pool.checkout_any(key(name)), None);
        }
        assert_eq!(
            (create(&pool, "a"), create(&pool, "b")),
            (Some(vec![]), Some(vec![]))
        );
        assert_eq!(create(&pool, "c"), Some(vec!["a"]));
        assert_eq!(pool.checkout_any(key("b")), Some("b"));
    }

    #[test]
    fn memory_limits_the_pool() {
        let pool = pool(9, 1);
        assert_eq!(
            (pool.checkout_any(key("a")), pool.checkout_any(key("a"))),
            (None, None)
        );
        assert_eq!(create(&pool, "a"), Some(vec![]));
        assert_eq!(create(&pool, "a"), None);
    }

    #[test]
    fn evicts_only_when_eviction_frees_enough() {
        let pool = pool(9, 4);
        let large = WarmKey::named("a", 3);
        for key in [large, large, key("b")] {
            assert_eq!(pool.checkout_any(key), None);
        }
        assert_eq!(pool.reserve(large), Some(vec![]));
        pool.complete(large, Some("a"));
        assert_eq!(create(&pool, "b"), Some(vec![]));
        assert_eq!(pool.reserve(large), None);
        assert_eq!(pool.checkout_any(key("b")), Some("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_sandbox_is_evicted_and_not_created_again() {
        let pool = pool(4, 4);
        assert_eq!(pool.checkout_any(key("a")), None);
        assert_eq!(create(&pool, "a"), Some(vec![]));
        assert_eq!(pool.evict_expired(), Vec::<&str>::new());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(pool.evict_expired(), ["a"]);
        assert_eq!(create(&pool, "a"), None);
    }

    #[test]
    fn disabled_pool_creates_nothing() {
        let pool = pool(0, 9);
        assert_eq!(pool.checkout_any(key("a")), None);
        assert_eq!(create(&pool, "a"), None);
    }

    #[test]
    fn failed_creation_is_not_pending() {
        let pool = pool(1, 9);
        assert_eq!(pool.checkout_any(key("a")), None);
        assert_eq!(pool.reserve(key("a")), Some(vec![]));
        assert_eq!(pool.reserve(key("a")), None);
        pool.complete(key("a"), None);
        assert_eq!(create(&pool, "a"), Some(vec![]));
    }
}
