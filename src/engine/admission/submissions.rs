//! A limit on how many submissions of one tenant are recorded at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;

/// Admits a few submissions per tenant at a time, in order. A tenant that submits thousands delays only itself, not the CPU
/// and the database of others. The number of connections limits how many can wait here.
#[derive(Debug)]
pub(in crate::engine) struct SubmissionLimit {
    at_once: usize,
    tenants: Mutex<HashMap<Tenant, Arc<Semaphore>>>,
}

/// Above this number, tenants without a submission are forgotten.
const TENANTS_RETAINED: usize = 64;

impl SubmissionLimit {
    pub(in crate::engine) fn new(at_once: usize) -> Self {
        Self {
            at_once,
            tenants: Mutex::default(),
        }
    }

    /// Waits for a permit, released when dropped.
    pub(in crate::engine) async fn acquire(&self, tenant: &Tenant) -> Result<OwnedSemaphorePermit, Error> {
        let semaphore = self.semaphore(tenant);
        match tokio::time::timeout(limits::QUEUE_WAIT_MAX, semaphore.acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| super::refusal::shutting_down()),
            Err(_elapsed) => Err(super::refusal::busy(
                "too many submissions of this tenant wait to be recorded",
            )),
        }
    }

    fn semaphore(&self, tenant: &Tenant) -> Arc<Semaphore> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= TENANTS_RETAINED {
            tenants.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = tenants
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.at_once)));
        semaphore.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[tokio::test]
    async fn a_tenant_with_many_submissions_delays_only_itself() {
        let limit = SubmissionLimit::new(2);
        let (a, b): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let inside = [limit.acquire(&a).await.unwrap(), limit.acquire(&a).await.unwrap()];
        let mut third = Box::pin(limit.acquire(&a));
        assert!(futures::poll!(&mut third).is_pending());
        drop(limit.acquire(&b).await.unwrap());
        drop(inside);
        drop(third.await.unwrap());
    }

    #[tokio::test]
    async fn tenants_without_submissions_are_forgotten() {
        let limit = SubmissionLimit::new(1);
        let held = limit.acquire(&"held".parse().unwrap()).await.unwrap();
        for n in 0..1000 {
            drop(limit.acquire(&format!("t{n}").parse().unwrap()).await.unwrap());
        }
        assert!(limit.tenants.lock().unwrap().len() <= TENANTS_RETAINED);
        let mut again = Box::pin(async { limit.acquire(&"held".parse().unwrap()).await.map(drop) });
        assert!(futures::poll!(&mut again).is_pending());
        drop(held);
        again.await.unwrap();
    }
}
