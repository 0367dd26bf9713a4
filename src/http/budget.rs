//! What there is only so much of, shared so that no tenant keeps the others out (T-15).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Code, Error};
use crate::ids::Tenant;

/// So much in all, and at most half of it for one tenant.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// What is shared, in the plural.
    what: &'static str,
    total: u64,
    held: Mutex<HashMap<Tenant, u64>>,
}

/// A tenant's share, given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Budget,
    tenant: Tenant,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let held = Mutex::default();
        Self(Arc::new(Shared { what, total, held }))
    }

    /// A share of this amount, or why there is none now.
    pub(crate) fn hold(&self, tenant: &Tenant, amount: u64) -> Result<Held, Error> {
        let mut held = Held {
            budget: self.clone(),
            tenant: tenant.clone(),
            amount: 0,
        };
        held.grow_to(amount)?;
        Ok(held)
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Tenant, u64>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Makes the share as large as `amount`; a larger one stays as it is.
    pub(crate) fn grow_to(&mut self, amount: u64) -> Result<(), Error> {
        let more = amount.saturating_sub(self.amount);
        let shared = &self.budget.0;
        let mut held = self.budget.held();
        let all: u64 = held.values().sum();
        let own = held.get(&self.tenant).copied().unwrap_or_default();
        if all.saturating_add(more) > shared.total || own.saturating_add(more) > shared.total / 2 {
            let message = format!("too many {} at once; try again in a moment", shared.what);
            return Err(Error::new(Code::Busy, message).with_retry_after(Duration::from_secs(1)));
        }
        held.insert(self.tenant.clone(), own + more);
        drop(held);
        self.amount += more;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        if let Some(own) = held.get_mut(&self.tenant) {
            *own -= self.amount;
            if *own == 0 {
                held.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T-15.
    #[test]
    fn one_tenant_leaves_half_to_the_others() {
        let budget = Budget::new("things", 10);
        let (a, b, c): (Tenant, Tenant, Tenant) =
            ("a".parse().unwrap(), "b".parse().unwrap(), "c".parse().unwrap());
        let of_a: Vec<_> = (0..5).map(|_| budget.hold(&a, 1).unwrap()).collect();
        let refused = budget.hold(&a, 1).unwrap_err();
        assert_eq!(refused.code(), Code::Busy);
        assert!(refused.retry_after().is_some() && refused.to_string().contains("things"));
        let of_b = budget.hold(&b, 5).unwrap();
        assert!(budget.hold(&c, 1).is_err(), "all is given out");
        drop(of_b);
        assert!(budget.hold(&c, 5).is_ok());
        drop(of_a);
        assert!(budget.hold(&a, 5).is_ok());
        assert!(budget.held().is_empty());
    }

    #[test]
    fn a_share_grows_as_far_as_there_is_room() {
        let budget = Budget::new("things", 10);
        let mut held = budget.hold(&Tenant::default_tenant(), 1).unwrap();
        held.grow_to(5).unwrap();
        held.grow_to(2).unwrap();
        held.grow_to(6).unwrap_err();
        held.grow_to(u64::MAX).unwrap_err();
        drop(held);
        assert!(budget.held().is_empty());
    }
}
