//! The explored setups.

use super::world::{Listing, Setup};

/// A setup of this model.
pub type Question = crate::exploring::Question<Setup>;

/// Returns the setups in which a test run checks every promise.
pub fn standard() -> Vec<Question> {
    vec![
        question("late requests", two()),
        question("listings key by key", Setup { listing: Listing::Ascending, ..two() }),
        question("failures", Setup { failures: true, ..two() }),
        question("deletions", Setup { deletions: true, ..two() }),
        question("creations that are delivered twice", Setup { duplicates: true, ..two() }),
    ]
}

/// Returns the setups that take longer: more late requests, more kept objects, and crashes.
pub fn larger() -> Vec<Question> {
    vec![
        question("two kept objects", Setup { keep: 2, last_number: 4, writes: vec![4, 1], ..two() }),
        question("two late requests", Setup { late: 2, ..two() }),
        question("crashes", Setup { crashes: true, ..two() }),
        question(
            "failures and deletions, key by key",
            Setup { failures: true, deletions: true, listing: Listing::Ascending, ..two() },
        ),
    ]
}

fn question(name: &'static str, setup: Setup) -> Question {
    Question { name, setup }
}

/// Returns a setup of two processes and one late request. With one kept object, the fewest writes remove a number that a
/// stalled process is about to create.
fn two() -> Setup {
    Setup {
        keep: 1,
        last_number: 3,
        writes: vec![3, 1],
        late: 1,
        listing: Listing::Snapshot,
        crashes: false,
        failures: false,
        deletions: false,
        duplicates: false,
    }
}
