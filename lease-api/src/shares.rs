//! A fair share for each tenant: what one of them asks for does not keep the others waiting.
//!
//! One thread answers all requests. Those that may take it for more than a moment are answered a few at a time for each tenant,
//! so a renewal waits for no more than these, however many clients another tenant has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::caller::Caller;
use crate::status::Failure;

/// The number of tenants that are remembered while nothing is done for them.
const MOST_IDLE: usize = 1024;

/// The kinds of work that a tenant may ask for a few times at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// A request with a large body, or about a large Lease.
    Large,
    /// A listing, and the first events of a watch: whoever reads them slowly keeps the Leases of that moment in memory.
    Listing,
    /// A watch, which is also a connection that others do not get.
    Watch,
    /// The next changes for a watch, which it reads in one go.
    Changes,
}

impl Work {
    /// The size from which on a body or a Lease is large, in bytes.
    pub(crate) const LARGE: usize = 8 * 1024;

    fn at_a_time(self) -> usize {
        match self {
            Self::Large | Self::Listing | Self::Changes => 4,
            Self::Watch => 500,
        }
    }
}

/// Whose share it is: the caller's, whatever it asks for. Without tokens nobody is kept from anything, and a namespace is the best
/// sign of who asks: behind a balancer, all come from one address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tenant(String);

impl Tenant {
    pub(crate) fn of(caller: Option<&Caller>, namespace: Option<&str>) -> Self {
        let name = caller.map(|caller| &*caller.name);
        // Who may make one account in a namespace of a cluster may make any number.
        let account = name.filter(|name| name.starts_with(ACCOUNT)).and_then(|name| name.rsplit_once(':'));
        let of_all_accounts = account.map(|(of_namespace, _)| of_namespace);
        Self(of_all_accounts.or(name).or(namespace).unwrap_or_default().to_owned())
    }
}

/// The beginning of the name of a service account, in front of its namespace.
const ACCOUNT: &str = "system:serviceaccount:";

/// The shares of all tenants.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<HashMap<(Tenant, Work), Arc<Semaphore>>>);

/// A part of a share, until it is dropped.
pub(crate) type Share = OwnedSemaphorePermit;

impl Shares {
    /// Waits for a part of the tenant's share.
    ///
    /// # Errors
    ///
    /// If there is none before the deadline.
    pub(crate) async fn take(&self, tenant: &Tenant, work: Work, deadline: Instant) -> Result<Share, Failure> {
        let taken = timeout_at(deadline, self.of(tenant, work).acquire_owned()).await;
        taken.ok().and_then(Result::ok).ok_or_else(|| Self::none(work))
    }

    /// Takes a part of the tenant's share if there is one.
    pub(crate) fn try_take(&self, tenant: &Tenant, work: Work) -> Result<Share, Failure> {
        self.of(tenant, work).try_acquire_owned().map_err(|_| Self::none(work))
    }

    /// The share of a tenant, of which a part is taken for each work.
    pub(crate) fn of(&self, tenant: &Tenant, work: Work) -> Arc<Semaphore> {
        // No change can panic half-way.
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.len() > MOST_IDLE {
            // Whoever has a part, or waits for one, has a clone.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = shares.entry((tenant.clone(), work));
        Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(work.at_a_time()))))
    }

    fn none(work: Work) -> Failure {
        let (most, what) = (
            work.at_a_time(),
            match work {
                Work::Large => "requests about large Leases",
                Work::Listing => "listings",
                Work::Watch => "watches",
                Work::Changes => "turns of watches",
            },
        );
        Failure::crowded(format!("{most} {what} of this token or namespace go on, and no more at a time; try again"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::caller::Role;

    #[tokio::test(start_paused = true)]
    async fn a_tenant_waits_for_itself_only() {
        let shares = Shares::default();
        let [one, other] = ["a", "b"].map(|namespace| Tenant::of(None, Some(namespace)));
        let soon = || Instant::now() + Duration::from_secs(1);
        let mut taken = Vec::new();
        for _ in 0..Work::Large.at_a_time() {
            taken.push(shares.take(&one, Work::Large, soon()).await.unwrap());
        }
        let began = Instant::now();
        shares.take(&one, Work::Large, soon()).await.unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(1));
        assert!(shares.try_take(&other, Work::Large).is_ok());
        assert!(shares.try_take(&one, Work::Listing).is_ok());
        taken.pop();
        assert!(shares.try_take(&one, Work::Large).is_ok());
    }

    #[test]
    fn a_token_has_one_share_and_so_have_all_accounts_of_a_namespace() {
        let of = |name: &str, namespace: Option<&str>| {
            let caller = Caller { name: name.to_owned(), everywhere: Some(Role::Write), ..Caller::default() };
            Tenant::of(Some(&caller), namespace)
        };
        assert_eq!(of("1a2b3c4d", Some("a")), of("1a2b3c4d", Some("b")), "a token for everything");
        assert_eq!(of("1a2b3c4d", Some("a")), of("1a2b3c4d", None));
        assert_ne!(of("1a2b3c4d", Some("a")), of("5e6f7a8b", Some("a")));
        let account = |namespace: &str, name: &str| of(&format!("{ACCOUNT}{namespace}:{name}"), Some("a"));
        assert_eq!(account("prod", "web"), account("prod", "batch"));
        assert_ne!(account("prod", "web"), account("test", "web"));
        assert_ne!(Tenant::of(None, Some("a")), Tenant::of(None, Some("b")), "nobody has a token");
    }

    #[test]
    fn who_has_a_part_is_remembered_beside_any_number_of_others() {
        let shares = Shares::default();
        let tenant = |number: usize| Tenant::of(None, Some(&number.to_string()));
        let taken: Vec<_> = (0..4).map(|_| shares.try_take(&tenant(0), Work::Large).unwrap()).collect();
        for number in 1..3 * MOST_IDLE {
            assert!(shares.try_take(&tenant(number), Work::Large).is_ok());
        }
        assert!(shares.0.lock().unwrap().len() <= MOST_IDLE + 1);
        assert!(shares.try_take(&tenant(0), Work::Large).is_err());
        drop(taken);
    }
}
