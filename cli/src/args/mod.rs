//! Arguments that several commands share.

pub(crate) mod bookkeeping;
pub(crate) mod following;
pub(crate) mod parts;
pub(crate) mod peers;
pub(crate) mod require_probe;
pub(crate) mod store_clock;
pub(crate) mod timing;
