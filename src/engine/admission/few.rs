//! How many requests of one tenant are taken down at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;

/// Lets a few of each tenant's in, in the order they came. One that sends thousands at once waits for itself: nobody else has
/// its whole crowd before him, at the processor or at the database. How many can wait is bounded by how many can ask.
#[derive(Debug)]
pub(in crate::engine) struct Few {
    at_once: usize,
    doors: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
}

/// Tenants with a door before those that nobody stands at are forgotten.
const DOORS_KEPT: usize = 64;

impl Few {
    pub(in crate::engine) fn new(at_once: usize) -> Self {
        Self {
            at_once,
            doors: Mutex::default(),
        }
    }

    /// Waits to be let in; out again when what this gives is dropped.
    pub(in crate::engine) async fn enter(&self, tenant: &Tenant) -> Result<OwnedSemaphorePermit, Error> {
        let door = self.door(tenant);
        match tokio::time::timeout(limits::QUEUE_WAIT_MAX, door.acquire_owned()).await {
            Ok(entered) => entered.map_err(|_| super::shutting_down()),
            Err(_elapsed) => Err(super::busy("too many submissions of yours wait to be taken down")),
        }
    }

    fn door(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if doors.len() >= DOORS_KEPT {
            doors.retain(|_, door| Arc::strong_count(door) > 1);
        }
        let door = doors
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.at_once)));
        door.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[tokio::test]
    async fn a_crowd_waits_for_itself_alone() {
        let few = Few::new(2);
        let (a, b): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let inside = [few.enter(&a).await.unwrap(), few.enter(&a).await.unwrap()];
        let mut third = Box::pin(few.enter(&a));
        assert!(futures::poll!(&mut third).is_pending());
        drop(few.enter(&b).await.unwrap());
        drop(inside);
        drop(third.await.unwrap());
    }

    #[tokio::test]
    async fn tenants_at_whose_door_nobody_stands_are_forgotten() {
        let few = Few::new(1);
        let stays = few.enter(&"stays".parse().unwrap()).await.unwrap();
        for n in 0..1000 {
            drop(few.enter(&format!("t{n}").parse().unwrap()).await.unwrap());
        }
        assert!(few.doors.lock().unwrap().len() <= DOORS_KEPT);
        let mut again = Box::pin(async { few.enter(&"stays".parse().unwrap()).await.map(drop) });
        assert!(futures::poll!(&mut again).is_pending());
        drop(stays);
        again.await.unwrap();
    }
}
