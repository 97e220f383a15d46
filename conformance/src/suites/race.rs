//! The start of a race, and its judgement for a suite.

use std::fmt::Debug;

use leaderelection::StoreErrorKind;
use tokio::time::sleep;

use crate::patience::{PAUSE, TRIES};
use crate::race::{self, Answer};

/// Starts all attempts at the same moment and returns every answer, in the order of the racers. Repeats the
/// race if the store rejects all attempts, as a store with a rate limit does: such a race has no loser.
pub(super) async fn race<T, F, A>(racers: usize, attempt: F) -> Vec<Answer<T>>
where
    T: Send + 'static,
    F: Fn(usize) -> A,
    A: Future<Output = Answer<T>> + Send + 'static,
{
    let is_rejected = |answer: &Answer<T>| matches!(answer, Err(refusal) if refusal.kind == StoreErrorKind::Rejected);
    for _ in 1..TRIES {
        let answers = race::at_once((0..racers).map(&attempt)).await;
        if !answers.iter().all(is_rejected) {
            return answers;
        }
        sleep(PAUSE).await;
    }
    race::at_once((0..racers).map(&attempt)).await
}

/// Judges a race on `object`: see [`race::winner`].
pub(super) fn winner<T: Clone + Debug + PartialEq>(
    object: &str,
    racers: &str,
    answers: &[Answer<T>],
    present: Option<(usize, T)>,
) -> Option<(usize, T)> {
    race::winner(racers, answers, present).unwrap_or_else(|breach| panic!("{object}: {breach}"))
}
