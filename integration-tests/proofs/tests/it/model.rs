//! The state machine, explored: every history of a few candidates, however long.

use leaderelection_proofs::kit::{Ask, Question};
use leaderelection_proofs::model::{A, B, Setup, StoreClock, questions};

use crate::{keeps_every_promise, report};

#[test]
fn every_history_keeps_every_promise() {
    keeps_every_promise("election");
}

/// Lease / deadline against fastest / slowest, on both sides of the line and on it.
#[test]
fn exclusion_holds_exactly_where_the_formula_says() {
    let two = questions().into_iter().find(|question| question.name == "late and lost requests").expect("such a setup");
    let mut settings = [0, 0];
    for (fast, slow) in [(1, 1), (2, 1), (3, 2)] {
        for lease in [fast, 2 * fast] {
            for renew in 1..=lease + 1 {
                let nodes = vec![(A, fast), (B, slow)];
                // The lease that is taken too soon is no reason to stop: two must be seen to lead.
                let setup = Setup { nodes, lease, renew, late_writes: 0, only_exclusion: true, ..two.setup.clone() };
                let holds = lease * slow >= renew * fast;
                let kept = Question::new("exclusion only", setup).explore(usize::MAX).broken.is_none();
                assert_eq!(kept, holds, "lease {lease}, deadline {renew}, clocks {fast} : {slow}");
                settings[usize::from(holds)] += 1;
            }
        }
    }
    let [outside, within] = settings;
    report(format!(
        "model, the exact bound: two leaders in all {outside} settings outside, in none of {within} within"
    ));
    assert!(outside > 5 && within > 5, "only {outside} settings outside the bound, and {within} within");
}

/// The rate of the store's clock, and the time by which its clocks disagree, on both sides of the line and on it.
#[test]
fn ages_are_safe_exactly_where_the_slack_and_the_rates_say() {
    let two = questions().into_iter().find(|question| question.name == "late and lost requests").expect("such a setup");
    let mut settings = [0, 0];
    for (lease, renew) in [(2, 2), (3, 2)] {
        for rate in [1, 2] {
            for (error, slack) in [(0, 0), (1, 0), (1, 1), (2, 1)] {
                let store_clock = Some(StoreClock { rate, error, slack });
                let setup =
                    Setup { lease, renew, store_clock, late_writes: 0, only_exclusion: true, ..two.setup.clone() };
                // A takeover comes when the store's clock shows this age, and no age is shown between two ticks.
                let taken_after = (lease + slack).saturating_sub(error).div_ceil(rate).min(lease);
                let holds = taken_after >= renew;
                let kept = Question::new("exclusion only", setup).explore(usize::MAX).broken.is_none();
                assert_eq!(kept, holds, "lease {lease}, deadline {renew}, a clock of rate {rate}, {error} - {slack}");
                settings[usize::from(holds)] += 1;
            }
        }
    }
    let [outside, within] = settings;
    report(format!(
        "model, the store's clock: two leaders in all {outside} settings outside, in none of {within} within"
    ));
    assert!(outside > 5 && within > 5, "only {outside} settings outside the bound, and {within} within");
}
