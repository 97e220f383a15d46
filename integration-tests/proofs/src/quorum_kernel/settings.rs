//! The explored setups: those of every test run, and those that are explored on demand.

use super::setup::Setup;
use crate::kit::{Question, questions};

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "two of three": most();
        new "two of three, and a fault": most(), faults: 1;
        new "two of three in the background": most(), background: true;
        new "all of three": all();
        new "all of three, of which one is hostile": all(), hostile: 1, forgeries: 1;
        new "all of three, of which two are hostile": all(), hostile: 2, forgeries: 1;
    }
}

/// Returns the larger setups.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "all of three, and a fault": all(), faults: 1;
        new "all of three, of which two are hostile, for longer": all(), hostile: 2, forgeries: 2;
        new "two of three, and stops": most(), stops: true;
    }
}

/// Returns the setups outside the bound.
pub fn broken() -> Vec<Question<Setup>> {
    questions! {
        new "two of three, of which one is hostile": most(), any_order: true, hostile: 1, forgeries: 1;
        new "all of three, of which all are hostile": all(), hostile: 3, forgeries: 3;
    }
}

/// Two candidates with good clocks that need two of three parts, and L/D equal to the ratio of the clocks.
fn most() -> Setup {
    Setup { rates: vec![1, 1], lease: 1, deadline: 1, parts: 3, needed: 2, ..Setup::default() }
}

fn all() -> Setup {
    Setup { needed: 3, ..most() }
}
