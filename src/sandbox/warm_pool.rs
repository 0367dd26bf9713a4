//! Sandboxes that are made before anybody asks, each for one execution of what was run before: with the interpreter started,
//! waiting in its own start-up, where it is one that can wait.
//!
//! Nothing of a request is in them: no input, argument, secret or file of it. They are as restricted as any other.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::execution::{JsonText, ResourceLimits};
use crate::guest::wire::{self, Warm};
use crate::ids::{Digest, ExecutionId};
use crate::limits;
use crate::sandbox::{Collect, Environment, Error, Job, Urgency};
use crate::secret::Mask;
use crate::telemetry::WarmPoolStats;

/// How many sandboxes may wait for a program, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmPoolSettings {
    /// Sandboxes at most; none are made in advance if 0.
    pub slots: usize,
    /// Bytes that they may take together, by [`limits::WARM_PYTHON_BYTES`] and its like.
    pub memory_bytes: u64,
    /// How long one waits before it is given up.
    pub idle: Duration,
}

impl Default for WarmPoolSettings {
    fn default() -> Self {
        Self {
            slots: limits::WARM_SLOTS,
            memory_bytes: limits::WARM_MEMORY_BYTES,
            idle: limits::WARM_IDLE,
        }
    }
}

/// Says what a waiting sandbox is good for: everything about it but the request.
pub(super) type Key = Digest;

/// A job that may come again.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarmKey {
    key: Key,
    /// Arguments that its interpreter is started with before anybody asks; of other programs nothing is started.
    pre_started_arguments: usize,
    /// What is in the sandbox takes while it waits.
    bytes: u64,
}

/// Of a command, how many arguments an interpreter can be started with that waits for the rest, and what it takes then:
/// `python3 FILE …`, `python3 -m MODULE …` and `node FILE …`.
fn pre_started_arguments(argv: &[String]) -> (usize, u64) {
    let [interpreter, file, ..] = argv else {
        return (0, limits::WARM_SANDBOX_BYTES);
    };
    match (interpreter.as_str(), file.as_str()) {
        ("python3", "-m") if argv.len() > 2 => (3, limits::WARM_PYTHON_BYTES),
        ("python3", file) if !file.starts_with('-') => (2, limits::WARM_PYTHON_BYTES),
        ("node", file) if !file.starts_with('-') => (2, limits::WARM_NODE_BYTES),
        _ => (0, limits::WARM_SANDBOX_BYTES),
    }
}

/// Variables that interpreters, their loader and their libraries read as they start.
const START_UP_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TZ"];
const START_UP_PREFIXES: [&str; 7] = ["PYTHON", "NODE_", "LC_", "LD_", "MALLOC_", "GLIBC_", "UV_"];

/// Nothing is read where nothing is started.
fn start_up_variables(pre_started_arguments: usize, env: &Environment) -> Vec<(String, String)> {
    let is_read = |name: &str| {
        START_UP_VARIABLES.contains(&name) || START_UP_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let all = env.variables().iter();
    all.filter(|(name, _)| pre_started_arguments > 0 && is_read(name))
        .cloned()
        .collect()
}

impl WarmKey {
    pub(super) fn of(job: &Job) -> Option<Self> {
        if !job.recurs || job.egress.is_some() || job.collect == Collect::Packages {
            return None;
        }
        let (pre_started_arguments, bytes) = pre_started_arguments(&job.argv);
        let mounts = job.mounts().into_iter();
        let mounts: Vec<_> = mounts.map(|mounted| (mounted.at, mounted.name)).collect();
        let limits = ResourceLimits {
            // Counted from its start, by the guest.
            timeout: Duration::ZERO,
            ..job.limits
        };
        let (argv, env) = (
            job.argv.get(..pre_started_arguments)?,
            start_up_variables(pre_started_arguments, &job.env),
        );
        // One of the mounts is the skill that runs, or none is.
        let skill = job.skill.as_ref().map(|skill| &skill.name);
        let text = format!("{} {skill:?} {argv:?} {env:?} {mounts:?} {limits:?}", job.image);
        Some(Self {
            key: Digest::of(text.as_bytes()),
            pre_started_arguments,
            bytes,
        })
    }

    /// The job without its request: all that a sandbox is made from that waits for such a job.
    fn without_request(&self, job: &Job) -> Job {
        let nothing = JsonText::parse(b"{}");
        Job {
            execution: ExecutionId::generate(),
            image: job.image.clone(),
            image_of: job.image_of,
            skill: job.skill.clone(),
            mounted: job.mounted.clone(),
            deps: job.deps.clone(),
            argv: job.argv[..self.pre_started_arguments].to_vec(),
            env: start_up_variables(self.pre_started_arguments, &job.env).into(),
            mask: Mask::default(),
            input: nothing.unwrap_or_else(|_| job.input.clone()),
            code: None,
            stdin: None,
            files: Vec::new(),
            blobs: Vec::new(),
            collect: job.collect,
            egress: None,
            recurs: false,
            urgency: Urgency::Deferred,
            limits: ResourceLimits {
                // Of the whole sandbox: it may wait before its time begins, which may be another's.
                timeout: limits::TIMEOUT_MAX + limits::WARM_IDLE_MAX,
                ..job.limits
            },
        }
    }
}

/// One that is being made.
#[derive(Debug)]
pub(super) struct PendingSandbox<T> {
    warm_key: WarmKey,
    /// What it is made from.
    pub(super) job: Job,
    /// Those that make room for it, to be ended.
    evicted: Vec<T>,
}

impl<T> PendingSandbox<T> {
    pub(super) fn drop_evicted(&mut self) {
        self.evicted.clear();
    }

    /// What its guest is told.
    pub(super) fn warm(&self) -> Warm {
        Warm {
            version: wire::VERSION,
            skill: self.job.skill.as_ref().map(|skill| skill.name.to_string()),
            argv: self.job.argv.clone(),
            env: self.job.env.variables().to_vec(),
        }
    }
}

/// Those that wait.
#[derive(Debug)]
pub(super) struct WarmPool<T>(Mutex<PoolState<T>>);

#[derive(Debug)]
struct PoolState<T> {
    pool: WarmPoolSettings,
    waiting: Vec<WarmSandbox<T>>,
    /// How many of each are being made.
    pending: HashMap<Key, (usize, u64)>,
    /// How many of each are worth their room: one more whenever one was missed, one less whenever one waited in vain.
    wanted: HashMap<Key, usize>,
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct WarmSandbox<T> {
    key: Key,
    bytes: u64,
    since: Instant,
    item: T,
}

impl<T> WarmPool<T> {
    /// One that takes nothing until it is allowed to.
    pub(super) fn empty() -> Self {
        Self(Mutex::new(PoolState {
            pool: WarmPoolSettings {
                slots: 0,
                ..WarmPoolSettings::default()
            },
            waiting: Vec::new(),
            pending: HashMap::new(),
            wanted: HashMap::new(),
            hits: 0,
            misses: 0,
        }))
    }

    pub(super) fn configure(&self, pool: WarmPoolSettings) {
        self.state().pool = pool;
    }

    /// One that waits for this and is still there, and is nobody else's from now on.
    pub(super) fn checkout(&self, warm_key: &WarmKey, is_connected: impl Fn(&mut T) -> bool) -> Option<T> {
        let taken = std::iter::from_fn(|| self.checkout_any(&warm_key.key))
            .find_map(|mut item| is_connected(&mut item).then_some(item));
        let mut state = self.state();
        if taken.is_some() {
            state.hits += 1;
        } else if state.pool.slots > 0 {
            state.misses += 1;
        }
        drop(state);
        taken
    }

    /// What became of the work.
    pub(super) fn stats(&self) -> WarmPoolStats {
        let state = self.state();
        WarmPoolStats {
            hits: state.hits,
            misses: state.misses,
            waiting: state.waiting.len() as u64,
            bytes: state.waiting.iter().map(|slot| slot.bytes).sum(),
        }
    }

    /// The youngest: its pages are in caches still.
    fn checkout_any(&self, key: &Key) -> Option<T> {
        let mut state = self.state();
        let found = state.waiting.iter().rposition(|slot| slot.key == *key);
        if found.is_none() && state.pool.slots > 0 {
            let slots = state.pool.slots;
            let wanted = state.wanted.entry(*key).or_insert(0);
            *wanted = (*wanted + 1).min(slots);
            state.forget_unused();
        }
        found.map(|place| state.waiting.remove(place).item)
    }

    /// Leave to make one more for jobs like this, if one more is wanted.
    pub(super) fn reserve_for(&self, warm_key: WarmKey, job: &Job) -> Option<PendingSandbox<T>> {
        let evicted = self.reserve(&warm_key.key, warm_key.bytes)?;
        Some(PendingSandbox {
            warm_key,
            job: warm_key.without_request(job),
            evicted,
        })
    }

    /// Room for one more is made by those that have waited longest.
    fn reserve(&self, key: &Key, bytes: u64) -> Option<Vec<T>> {
        let mut state = self.state();
        let wanted = state.wanted.get(key).copied().unwrap_or(0);
        let pending = state.pending.get(key).map_or(0, |(count, _)| *count);
        let there = state.waiting.iter().filter(|slot| slot.key == *key).count();
        if there + pending >= wanted {
            return None;
        }
        if !state.has_capacity(bytes, |slot| slot.key != *key) {
            return None;
        }
        let mut ended = Vec::new();
        while !state.has_capacity(bytes, |_| false) {
            let others = state.waiting.iter().position(|slot| slot.key != *key)?;
            ended.push(state.waiting.remove(others).item);
        }
        let (count, sum) = state.pending.entry(*key).or_insert((0, 0));
        *count += 1;
        *sum += bytes;
        Some(ended)
    }

    /// It was made, or could not be.
    pub(super) fn complete(&self, pending: PendingSandbox<T>, made: Result<T, Error>) {
        let made = made.inspect_err(
            |error| tracing::warn!(%error, "Could not make a sandbox in advance; the next run makes its own"),
        );
        self.release(&pending.warm_key.key, pending.warm_key.bytes, made.ok());
    }

    fn release(&self, key: &Key, bytes: u64, made: Option<T>) {
        let mut state = self.state();
        if let Some((count, sum)) = state.pending.get_mut(key) {
            *count = count.saturating_sub(1);
            *sum = sum.saturating_sub(bytes);
        }
        state.pending.retain(|_, (count, _)| *count > 0);
        if let Some(item) = made {
            state.waiting.push(WarmSandbox {
                key: *key,
                bytes,
                since: Instant::now(),
                item,
            });
        }
    }

    /// Takes those that waited in vain.
    pub(super) fn evict_expired(&self) -> Vec<T> {
        let mut state = self.state();
        let idle = state.pool.idle;
        let old = state.waiting.extract_if(.., |slot| slot.since.elapsed() >= idle);
        let old: Vec<_> = old.collect();
        for slot in &old {
            if let Some(wanted) = state.wanted.get_mut(&slot.key) {
                *wanted = wanted.saturating_sub(1);
            }
        }
        state.wanted.retain(|_, wanted| *wanted > 0);
        old.into_iter().map(|slot| slot.item).collect()
    }

    /// Takes all.
    pub(super) fn evict_all(&self) -> Vec<T> {
        let mut state = self.state();
        state.wanted.clear();
        let all = std::mem::take(&mut state.waiting);
        all.into_iter().map(|slot| slot.item).collect()
    }

    fn state(&self) -> MutexGuard<'_, PoolState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> PoolState<T> {
    /// Of many that were wanted once, those remain that are there.
    fn forget_unused(&mut self) {
        if self.wanted.len() > limits::WARM_KEYS_MAX {
            let (waiting, pending) = (&self.waiting, &self.pending);
            self.wanted
                .retain(|key, _| pending.contains_key(key) || waiting.iter().any(|slot| slot.key == *key));
        }
    }

    /// Whether there is room for one that takes so much, or would be without those that `goes` names.
    fn has_capacity(&self, bytes: u64, goes: impl Fn(&WarmSandbox<T>) -> bool) -> bool {
        let pending = self.pending.values().copied();
        let waiting = self.waiting.iter().filter(|slot| !goes(slot));
        let waiting = waiting.map(|slot| (1, slot.bytes));
        let (count, sum) = pending
            .chain(waiting)
            .fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        count < self.pool.slots && sum + bytes <= self.pool.memory_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(slots: usize, memory_bytes: u64) -> WarmPool<&'static str> {
        let pool = WarmPool::empty();
        pool.configure(WarmPoolSettings {
            slots,
            memory_bytes,
            idle: Duration::from_secs(60),
        });
        pool
    }

    fn key(text: &str) -> Key {
        Digest::of(text.as_bytes())
    }

    /// Makes one, if it may be made; returns what had to go.
    fn make(pool: &WarmPool<&'static str>, text: &'static str) -> Option<Vec<&'static str>> {
        let gone = pool.reserve(&key(text), 1)?;
        pool.release(&key(text), 1, Some(text));
        Some(gone)
    }

    #[test]
    fn only_an_interpreter_with_a_file_or_a_module_is_started_ahead() {
        let started = |command: &str| {
            let argv: Vec<_> = command.split(' ').map(ToOwned::to_owned).collect();
            pre_started_arguments(&argv).0
        };
        let commands = [
            "python3 main.py -v",
            "python3 -m pack.age",
            "node main.js",
            "python3 -c 1",
            "python3",
            "python3 -m",
            "bash main.sh",
            "./tool",
        ];
        assert_eq!(commands.map(started), [2, 3, 2, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn one_is_made_for_what_was_asked_for_and_missed() {
        let pool = pool(4, 4);
        assert_eq!(make(&pool, "a"), None);
        assert_eq!(pool.checkout_any(&key("a")), None);
        assert_eq!(make(&pool, "a"), Some(vec![]));
        assert_eq!(make(&pool, "a"), None);
        assert_eq!(pool.checkout_any(&key("b")), None);
        assert_eq!(pool.checkout_any(&key("a")), Some("a"));
        // Nobody else's.
        assert_eq!(pool.checkout_any(&key("a")), None);
    }

    #[test]
    fn more_are_made_for_what_was_missed_more_often() {
        let pool = pool(3, 9);
        for _ in 0..9 {
            assert_eq!(pool.checkout_any(&key("a")), None);
        }
        let made = std::iter::repeat_with(|| make(&pool, "a")).take_while(Option::is_some);
        assert_eq!(made.count(), 3);
    }

    #[test]
    fn those_that_waited_longest_make_room() {
        let pool = pool(2, 9);
        for name in ["a", "b", "c"] {
            assert_eq!(pool.checkout_any(&key(name)), None);
        }
        assert_eq!((make(&pool, "a"), make(&pool, "b")), (Some(vec![]), Some(vec![])));
        assert_eq!(make(&pool, "c"), Some(vec!["a"]));
        assert_eq!(pool.checkout_any(&key("b")), Some("b"));
    }

    #[test]
    fn memory_bounds_them_too() {
        let pool = pool(9, 1);
        assert_eq!(
            (pool.checkout_any(&key("a")), pool.checkout_any(&key("a"))),
            (None, None)
        );
        assert_eq!(make(&pool, "a"), Some(vec![]));
        assert_eq!(make(&pool, "a"), None);
    }

    /// Where that would not make enough room, nobody goes.
    #[test]
    fn nobody_makes_room_in_vain() {
        let pool = pool(9, 4);
        for name in ["a", "a", "b"] {
            assert_eq!(pool.checkout_any(&key(name)), None);
        }
        let reserve = |name: &str, bytes| pool.reserve(&key(name), bytes);
        assert_eq!(reserve("a", 3), Some(vec![]));
        pool.release(&key("a"), 3, Some("a"));
        assert_eq!(make(&pool, "b"), Some(vec![]));
        assert_eq!(reserve("a", 3), None);
        assert_eq!(pool.checkout_any(&key("b")), Some("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_in_vain_goes_and_is_not_made_again() {
        let pool = pool(4, 4);
        assert_eq!(pool.checkout_any(&key("a")), None);
        assert_eq!(make(&pool, "a"), Some(vec![]));
        assert_eq!(pool.evict_expired(), Vec::<&str>::new());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(pool.evict_expired(), ["a"]);
        assert_eq!(make(&pool, "a"), None);
    }

    #[test]
    fn nothing_is_made_where_it_is_switched_off() {
        let pool = pool(0, 9);
        assert_eq!(pool.checkout_any(&key("a")), None);
        assert_eq!(make(&pool, "a"), None);
    }

    #[test]
    fn the_dropped_do_not_count_as_being_made() {
        let pool = pool(1, 9);
        assert_eq!(pool.checkout_any(&key("a")), None);
        assert_eq!(pool.reserve(&key("a"), 1), Some(vec![]));
        assert_eq!(pool.reserve(&key("a"), 1), None);
        pool.release(&key("a"), 1, None);
        assert_eq!(make(&pool, "a"), Some(vec![]));
    }
}
