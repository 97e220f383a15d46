//! An arena for processes that compete for a lock, shared by the demonstration `failover` and by the contest of
//! the integration tests.

pub mod fenced_log;
pub mod logs;
pub mod shutdown;
