//! The winner of a race, judged by the answers of the racers and by the current object.

use std::fmt::Debug;
use std::sync::Arc;

use leaderelection::causes::{one_line, with_causes};
use leaderelection::{StoreError, StoreErrorKind};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::contract::{Breach, HONEST_ERRORS, LINEARIZABLE_READ, LINEARIZABLE_WRITE};

/// The answer of the store to a racer: the version that its write created, or the reason why it did not write.
pub(crate) type Answer<T> = Result<T, Refusal>;

/// The part of a store's error that matters to a race.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: StoreErrorKind,
    pub(crate) text: String,
}

/// The longest text of a store's error that is repeated, in characters: the advice of a store of ours, and its cause.
pub(crate) const MOST_OF_A_TEXT: usize = 600;

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self { kind: error.kind(), text: one_line(&with_causes(&error), MOST_OF_A_TEXT) }
    }
}

/// Lets all attempts begin at the same moment, each as a task of its own. Returns their results in order.
pub(crate) async fn at_once<A>(attempts: impl ExactSizeIterator<Item = A>) -> Vec<A::Output>
where
    A: Future<Output: Send + 'static> + Send + 'static,
{
    let start = Arc::new(Barrier::new(attempts.len()));
    let mut running = JoinSet::new();
    for (racer, attempt) in attempts.enumerate() {
        let start = Arc::clone(&start);
        let race = async move {
            start.wait().await;
            (racer, attempt.await)
        };
        running.spawn(race.in_current_span());
    }
    let mut results = running.join_all().await;
    results.sort_unstable_by_key(|(racer, _)| *racer);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Judges a race by the answers and by the racer whose write is the current object, if there is one.
///
/// Returns `None` if no racer won and none had to: a store under load may reject every racer.
pub(crate) fn winner<T: Clone + Debug + PartialEq>(
    racers: &str,
    answers: &[Answer<T>],
    present: Option<(usize, T)>,
) -> Result<Option<(usize, T)>, Breach> {
    let told = told_that_it_won(racers, answers)?;
    let racing = format!("{} racing {racers}", answers.len());
    for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        if !matches!(refusal.kind, StoreErrorKind::Conflict | StoreErrorKind::Rejected | StoreErrorKind::Ambiguous) {
            let what = format!("one of {racing} was answered {:?} ({})", refusal.kind, refusal.text);
            return Err(Breach::new(what, HONEST_ERRORS));
        }
    }
    match (told, &present) {
        (Some(winner), None) => {
            let what = format!("racer {winner} of {racing} won, and its write is not there");
            return Err(Breach::new(what, LINEARIZABLE_READ));
        }
        (Some(winner), Some((found, _))) if winner != *found => {
            let what =
                format!("racer {winner} of {racing} was told that it won, and the write of racer {found} is there");
            return Err(Breach::new(what, LINEARIZABLE_WRITE));
        }
        (None, None) => {
            let any = |kind| answers.iter().any(|answer| matches!(answer, Err(refusal) if refusal.kind == kind));
            // A write without an answer may still be in flight, and may have caused the conflicts of the
            // others.
            let unexplained = any(StoreErrorKind::Conflict) && !any(StoreErrorKind::Ambiguous);
            let what = format!("none of {racing} won, but some failed with Conflict");
            Breach::unless(!unexplained, what, HONEST_ERRORS)?;
        }
        (_, Some((found, left_behind))) => match &answers[*found] {
            Ok(told) => {
                let what = format!("racer {found} of {racing} was told {told:?} and left {left_behind:?}");
                Breach::unless(told == left_behind, what, LINEARIZABLE_READ)?;
            }
            Err(refusal) => {
                let what =
                    format!("the write of a racer is there that was answered {:?} ({})", refusal.kind, refusal.text);
                Breach::unless(refusal.kind == StoreErrorKind::Ambiguous, what, HONEST_ERRORS)?;
            }
        },
    }
    Ok(present)
}

/// Returns the racer that was told that it won, if there is one. Two such racers are a breach, whatever a read
/// shows.
pub(crate) fn told_that_it_won<T>(racers: &str, answers: &[Answer<T>]) -> Result<Option<usize>, Breach> {
    let told: Vec<usize> = (0..answers.len()).filter(|&racer| answers[racer].is_ok()).collect();
    let what = format!("{} of {} racing {racers} were told that they won", told.len(), answers.len());
    Breach::unless(told.len() <= 1, what, LINEARIZABLE_WRITE)?;
    Ok(told.first().copied())
}
