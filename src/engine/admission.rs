//! Who may run now, who waits, who is sent away.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Code, Error};

/// A fixed number of slots and a bounded queue before them.
#[derive(Debug)]
pub(super) struct Admission {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    wait: Duration,
}

/// The right to run one execution, until dropped.
#[derive(Debug)]
pub(super) struct Slot(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Admission {
    pub(super) fn new(concurrency: usize, queue: usize, wait: Duration) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(concurrency)),
            waiting: AtomicUsize::new(0),
            queue,
            wait,
        }
    }

    /// A slot, now or after a bounded wait.
    pub(super) async fn admit(&self) -> Result<Slot, Error> {
        if let Ok(permit) = self.slots.clone().try_acquire_owned() {
            return Ok(Slot(permit));
        }
        let place = Place::take(&self.waiting, self.queue)?;
        let permit = tokio::time::timeout(self.wait, self.slots.clone().acquire_owned()).await;
        drop(place);
        match permit {
            Ok(Ok(permit)) => Ok(Slot(permit)),
            Ok(Err(_closed)) => Err(Error::new(Code::Busy, "the server is shutting down")),
            Err(_elapsed) => Err(busy("no slot became free in time")),
        }
    }

    /// Lets nobody in any more; who waits is sent away.
    pub(super) fn close(&self) {
        self.slots.close();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.slots.is_closed()
    }
}

fn busy(why: &str) -> Error {
    let message = format!("{why}; try again later, or raise limits.concurrency or limits.queue");
    Error::new(Code::Busy, message).with_retry_after(Duration::from_secs(5))
}

/// A place in the queue, given back when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, queue: usize) -> Result<Self, Error> {
        if waiting.fetch_add(1, Ordering::SeqCst) >= queue {
            waiting.fetch_sub(1, Ordering::SeqCst);
            return Err(busy("all slots and the queue are full"));
        }
        Ok(Self(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_sends_away_and_a_long_wait_ends() {
        let admission = Arc::new(Admission::new(1, 1, Duration::from_secs(10)));
        let slot = admission.admit().await.unwrap();
        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move { admission.admit().await }
        });
        tokio::task::yield_now().await;
        let refused = admission.admit().await.unwrap_err();
        assert_eq!(refused.code(), Code::Busy);
        assert!(refused.retry_after().is_some());
        let waited = waiter.await.unwrap().unwrap_err();
        assert_eq!(waited.code(), Code::Busy);
        drop(slot);
        assert!(admission.admit().await.is_ok());
    }

    fn wait(
        admission: &Arc<Admission>,
        turns: &tokio::sync::mpsc::UnboundedSender<usize>,
        turn: usize,
    ) -> tokio::task::JoinHandle<Result<(), Error>> {
        let (admission, turns) = (admission.clone(), turns.clone());
        tokio::spawn(async move {
            let _slot = admission.admit().await?;
            turns.send(turn).unwrap();
            Ok(())
        })
    }

    #[tokio::test]
    async fn who_came_first_goes_first_and_who_leaves_gives_up_the_place() {
        let admission = Arc::new(Admission::new(1, 3, Duration::from_secs(10)));
        let (turns, mut taken) = tokio::sync::mpsc::unbounded_channel();
        let slot = admission.admit().await.unwrap();
        let mut waiters = Vec::new();
        for turn in 0..3 {
            waiters.push(wait(&admission, &turns, turn));
            tokio::task::yield_now().await;
        }
        assert!(admission.admit().await.is_err(), "the queue is full");
        waiters[1].abort();
        tokio::task::yield_now().await;
        waiters.push(wait(&admission, &turns, 3));
        tokio::task::yield_now().await;
        drop((slot, turns));
        let mut order = Vec::new();
        while let Some(turn) = taken.recv().await {
            order.push(turn);
        }
        assert_eq!(order, [0, 2, 3]);
        assert_eq!(admission.waiting.load(Ordering::SeqCst), 0);
        assert!(admission.admit().await.is_ok());
    }

    #[tokio::test]
    async fn a_closing_server_sends_the_waiting_away() {
        let admission = Arc::new(Admission::new(1, 3, Duration::from_secs(10)));
        let (turns, _taken) = tokio::sync::mpsc::unbounded_channel();
        let _slot = admission.admit().await.unwrap();
        let waiter = wait(&admission, &turns, 0);
        tokio::task::yield_now().await;
        admission.close();
        for refused in [waiter.await.unwrap(), admission.admit().await.map(drop)] {
            let refused = refused.unwrap_err();
            assert_eq!(
                (refused.code(), refused.to_string().as_str()),
                (Code::Busy, "the server is shutting down")
            );
        }
    }

    #[tokio::test]
    async fn who_waits_gets_the_slot_that_is_freed() {
        let admission = Arc::new(Admission::new(1, 1, Duration::from_secs(10)));
        let slot = admission.admit().await.unwrap();
        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move { admission.admit().await }
        });
        drop(slot);
        assert!(waiter.await.unwrap().is_ok());
    }
}
