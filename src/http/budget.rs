//! Budgets of shared resources, so that no tenant can use up all of one (T-15).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Code, Error};
use crate::ids::Tenant;

/// A total amount. A tenant alone gets three quarters of it; next to others, at most half.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    /// Name of the resource, in the plural, for messages.
    what: &'static str,
    total: u64,
    held: Mutex<HashMap<Tenant, u64>>,
}

/// The share of a tenant, released when dropped.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Budget,
    tenant: Tenant,
    amount: u64,
}

impl Budget {
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let held = Mutex::default();
        Self(Arc::new(BudgetState { what, total, held }))
    }

    /// A share of this amount, or an error if the budget is exhausted.
    pub(crate) fn hold(&self, tenant: &Tenant, amount: u64) -> Result<BudgetShare, Error> {
        let mut held = BudgetShare {
            budget: self.clone(),
            tenant: tenant.clone(),
            amount: 0,
        };
        held.grow_to(amount)?;
        Ok(held)
    }

    /// A share of this amount even beyond the budget. Meanwhile the tenant gets no other share.
    pub(crate) fn take(&self, tenant: &Tenant, amount: u64) -> BudgetShare {
        *self.held().entry(tenant.clone()).or_default() += amount;
        BudgetShare {
            budget: self.clone(),
            tenant: tenant.clone(),
            amount,
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Tenant, u64>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetShare {
    /// Grows the share to `amount`; never shrinks it.
    pub(crate) fn grow_to(&mut self, amount: u64) -> Result<(), Error> {
        let more = amount.saturating_sub(self.amount);
        let shared = &self.budget.0;
        let mut held = self.budget.held();
        let own = held.get(&self.tenant).copied().unwrap_or_default();
        let (alone_max, shared_max) = (shared.total / 4 * 3, shared.total / 2);
        let others = held.iter().filter(|(tenant, _)| **tenant != self.tenant);
        // A share beyond the budget must not reduce the shares of other tenants.
        let others: u64 = others.map(|(_, amount)| (*amount).min(alone_max)).sum();
        let own_max = if others == 0 { alone_max } else { shared_max };
        let wanted = own.saturating_add(more);
        let fits = wanted <= own_max && others.saturating_add(wanted) <= shared.total;
        if more > 0 && !fits {
            let message = format!("too many concurrent {}; try again in a moment", shared.what);
            return Err(Error::new(Code::Busy, message).with_retry_after(Duration::from_secs(1)));
        }
        held.insert(self.tenant.clone(), own + more);
        drop(held);
        self.amount += more;
        Ok(())
    }
}

impl Drop for BudgetShare {
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
    fn limits_one_tenant_in_favour_of_others() {
        let budget = Budget::new("things", 12);
        let (a, b, c): (Tenant, Tenant, Tenant) =
            ("a".parse().unwrap(), "b".parse().unwrap(), "c".parse().unwrap());
        let mut of_a: Vec<_> = (0..9).map(|_| budget.hold(&a, 1).unwrap()).collect();
        let rejected = budget.hold(&a, 1).unwrap_err();
        assert_eq!(rejected.code(), Code::Busy);
        assert!(rejected.retry_after().is_some() && rejected.to_string().contains("things"));
        let of_b = budget.hold(&b, 3).unwrap();
        assert!(budget.hold(&c, 1).is_err(), "the budget is used up");
        of_a[0].grow_to(1).expect("the share does not grow");
        of_a.truncate(6);
        assert!(budget.hold(&a, 1).is_err(), "at most half next to others");
        let more_of_b = budget.hold(&b, 3).unwrap();
        drop((of_b, more_of_b));
        assert!(budget.hold(&a, 3).is_ok(), "three quarters without others");
        drop(of_a);
        assert!(budget.held().is_empty());
    }

    /// T-15.
    #[test]
    fn charges_forced_shares_only_to_their_tenant() {
        let budget = Budget::new("things", 12);
        let (a, b): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let taken = budget.take(&a, 100);
        assert!(budget.hold(&a, 1).is_err());
        drop(budget.hold(&b, 3).unwrap());
        drop(taken);
        assert!(budget.hold(&a, 9).is_ok());
        assert!(budget.held().is_empty());
    }

    #[test]
    fn grows_a_share_up_to_the_limit() {
        let budget = Budget::new("things", 12);
        let mut held = budget.hold(&Tenant::default_tenant(), 1).unwrap();
        held.grow_to(9).unwrap();
        held.grow_to(2).unwrap();
        held.grow_to(10).unwrap_err();
        held.grow_to(u64::MAX).unwrap_err();
        drop(held);
        assert!(budget.held().is_empty());
    }
}
