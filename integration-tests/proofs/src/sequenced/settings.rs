//! The explored setups.

use super::setup::{Listing, Setup};
use crate::kit::Question;

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    let question = Question::new;
    vec![
        question("late requests", two()),
        question("listings key by key", Setup { listing: Listing::Ascending, ..two() }),
        question("failures", Setup { failures: true, ..two() }),
        question("deletions", Setup { deletions: true, ..two() }),
        question("creations that are delivered twice", Setup { duplicates: true, ..two() }),
    ]
}

/// Returns the larger setups: more late requests, more kept objects, and crashes.
pub fn larger() -> Vec<Question<Setup>> {
    let question = Question::new;
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
