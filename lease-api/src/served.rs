//! What the requests of a server share.

use std::sync::Arc;

use crate::audit::Audit;
use crate::leases::Leases;
use crate::quota::Quota;
use crate::shares::Shares;
use crate::watch::Listings;

#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) leases: Arc<Leases>,
    pub(crate) listings: Arc<Listings>,
    pub(crate) shares: Shares,
    pub(crate) audit: Audit,
    pub(crate) quota: Quota,
}
