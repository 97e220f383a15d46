//! The cost of many locks: the requests of an hour, counted on a store while time is paused.

mod case;
mod count;
mod plot;
mod program;
mod table;

pub use case::{Case, Way};
pub use plot::plot;
pub use program::Arguments;
pub use table::{Row, from_csv, table, to_csv};
pub(crate) use table::{dollars, grouped};

pub use crate::counted::Requests;

/// The numbers of locks that are counted.
pub const LOCKS: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// The numbers of processes that are counted.
pub const PROCESSES: [usize; 2] = [3, 30];

/// The number of processes in the plot.
pub const PLOTTED_PROCESSES: usize = 3;
