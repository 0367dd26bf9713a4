//! A rate limit of execution requests per tenant.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Code, Error};
use crate::ids::Tenant;

/// A token bucket per tenant: one minute of requests, refilled evenly.
#[derive(Debug)]
pub(in crate::engine) struct Rate {
    /// `None` for no limit.
    per_minute: Option<u32>,
    /// When the bucket of each tenant is full again; full buckets have no entry.
    full_at: Mutex<HashMap<Tenant, Instant>>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Rate {
    pub(in crate::engine) fn new(per_minute: Option<u32>) -> Self {
        Self {
            per_minute,
            full_at: Mutex::default(),
        }
    }

    /// Takes one request out of the tenant's bucket.
    pub(in crate::engine) fn take(&self, tenant: &Tenant, now: Instant) -> Result<(), Error> {
        let Some(per_minute) = self.per_minute else {
            return Ok(());
        };
        let each = MINUTE / per_minute.max(1);
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.get(tenant).copied().unwrap_or(now).max(now) + each;
        if let Some(early) = full
            .checked_duration_since(now + MINUTE)
            .filter(|early| !early.is_zero())
        {
            let message =
                format!("more than {per_minute} executions of this tenant in a minute; try again later");
            return Err(Error::new(Code::RateLimited, message).with_retry_after(early));
        }
        full_at.retain(|_, full| *full > now);
        full_at.insert(tenant.clone(), full);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_requests_per_minute_and_tenant() {
        let rate = Rate::new(Some(3));
        let (a, b): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let now = Instant::now();
        for _ in 0..3 {
            rate.take(&a, now).unwrap();
        }
        let refused = rate.take(&a, now).unwrap_err();
        assert_eq!(refused.code(), Code::RateLimited);
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(20)));
        rate.take(&b, now).unwrap();
        rate.take(&a, now + Duration::from_secs(20)).unwrap();
        rate.take(&a, now + Duration::from_secs(21)).unwrap_err();
        for _ in 0..3 {
            rate.take(&a, now + Duration::from_secs(120)).unwrap();
        }
        Rate::new(None).take(&a, now).unwrap();
    }
}
