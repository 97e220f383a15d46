//! An arena for processes that compete for a lock: started, signalled, observed and judged.
//!
//! The arena has two faces. The demonstration `failover` shows it to a person, and the contest of the integration
//! tests plays it at random on every store.
//!
//! | module | |
//! |---|---|
//! | `candidate` | one of the processes, as an example of an election in an application |
//! | `fenced_log` | the resource that the leader writes to |
//! | `report` | the messages of a candidate about itself |
//! | `process` | the candidates as seen by the program that started them |
//! | `verdict` | the comparison of the log with the reports |
//! | `logs`, `shutdown` | the parts of any program that leads |

#[cfg(unix)]
pub mod candidate;
pub mod fenced_log;
pub mod logs;
#[cfg(unix)]
pub mod process;
pub mod report;
pub mod shutdown;
pub mod verdict;
