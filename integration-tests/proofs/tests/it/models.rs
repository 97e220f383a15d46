//! The models, explored: every history of a few processes, however long.

use leaderelection_proofs::kit::Question;
use leaderelection_proofs::majority::broken;
use leaderelection_proofs::model::{A, B, Setup, StoreClock, questions};
use leaderelection_proofs::session_kernel;

use crate::{keeps_every_promise, report};

#[test]
fn every_history_of_an_arbitrary_policy_keeps_every_promise() {
    keeps_every_promise("kernel");
}

#[test]
fn every_history_of_sessions_with_an_arbitrary_policy_keeps_every_promise() {
    keeps_every_promise("session-kernel");
}

/// The bound on clocks is necessary for sessions, too.
#[test]
fn sessions_outside_the_bound_on_clocks_break_a_promise() {
    for (question, promise) in session_kernel::broken() {
        let found = question.explore(usize::MAX).broken.unwrap_or_else(|| panic!("{}: all is kept", question.name));
        assert_eq!(found.promise, promise, "{}: {}", question.name, found.steps.join(", "));
        report(format!("{}: breaks {promise:?} after {} steps", question.name, found.steps.len()));
    }
}

#[test]
fn an_arbitrary_policy_of_several_objects_keeps_every_promise() {
    keeps_every_promise("quorum-kernel");
}

/// Rule M12 is exact: with one hostile part more, two lead.
#[test]
fn more_hostile_parts_than_the_rules_bear_break_a_promise() {
    for question in leaderelection_proofs::quorum_kernel::broken() {
        let found = question.explore(usize::MAX).broken.unwrap_or_else(|| panic!("{}: all is kept", question.name));
        report(format!(
            "quorum-kernel, {}: breaks {:?} after {} steps",
            question.name,
            found.promise,
            found.steps.len()
        ));
    }
}

#[test]
fn every_history_keeps_every_promise() {
    keeps_every_promise("election");
}

#[test]
fn every_history_of_sessions_keeps_every_promise() {
    keeps_every_promise("sessions");
}

#[test]
fn every_interleaving_keeps_the_contract_of_a_store() {
    keeps_every_promise("sequenced");
}

#[test]
fn every_interleaving_of_a_move_keeps_every_promise() {
    keeps_every_promise("majority");
}

/// Rule M8 is necessary: each of its two halves, in either direction.
#[test]
fn a_rollout_that_does_not_wait_breaks_a_promise() {
    for (question, promise) in broken() {
        let found = question.explore(usize::MAX).broken.unwrap_or_else(|| panic!("{}: all is kept", question.name));
        assert_eq!(found.promise, promise, "{}: {}", question.name, found.steps.join(", "));
        report(format!("majority, {}: breaks {promise:?} after {} steps", question.name, found.steps.len()));
    }
}

/// Lease / deadline against fastest / slowest, on both sides of the line and on it.
#[cfg(feature = "all-tests")]
#[test]
fn exclusion_holds_exactly_where_the_formula_says() {
    let mut settings = Vec::new();
    for (fast, slow) in [(1, 1), (2, 1), (3, 2)] {
        for lease in [fast, 2 * fast] {
            for renew in 1..=lease + 1 {
                let nodes = vec![(A, fast), (B, slow)];
                settings.push((lease * slow >= renew * fast, Setup { nodes, lease, renew, ..two() }));
            }
        }
    }
    only_one_leads_exactly_where("the exact bound", settings);
}

/// The rate of the store's clock, and the time by which its clocks disagree, on both sides of the line and on it.
#[cfg(feature = "all-tests")]
#[test]
fn ages_are_safe_exactly_where_the_slack_and_the_rates_say() {
    let mut settings = Vec::new();
    for (lease, renew) in [(2, 2), (3, 2)] {
        for rate in [1, 2] {
            for (error, slack) in [(0, 0), (1, 0), (1, 1), (2, 1)] {
                let store_clock = Some(StoreClock { rate, error, slack });
                // A takeover comes when the store's clock shows this age, and no age is shown between two ticks.
                let taken_after = (lease + slack).saturating_sub(error).div_ceil(rate).min(lease);
                settings.push((taken_after >= renew, Setup { lease, renew, store_clock, ..two() }));
            }
        }
    }
    only_one_leads_exactly_where("the store's clock", settings);
}

/// Two candidates of which only the exclusion is asked. The lease that is taken too soon is no reason to stop: two must be seen
/// to lead.
fn two() -> Setup {
    let two = questions().into_iter().find(|question| question.name == "late and lost requests").expect("such a setup");
    Setup { late_writes: 0, only_exclusion: true, ..two.setup }
}

/// Checks settings, each with `true` if it is within a bound: two lead in each that is outside, and in no other.
fn only_one_leads_exactly_where(bound: &str, settings: Vec<(bool, Setup)>) {
    let mut counts = [0, 0];
    for (holds, setup) in settings {
        let what = format!("{setup:?}");
        let kept = Question::new("exclusion only", setup).explore(usize::MAX).broken.is_none();
        assert_eq!(kept, holds, "{what}");
        counts[usize::from(holds)] += 1;
    }
    let [outside, within] = counts;
    report(format!("model, {bound}: two leaders in all {outside} settings outside, in none of {within} within"));
    assert!(outside > 5 && within > 5, "only {outside} settings outside the bound, and {within} within");
}
