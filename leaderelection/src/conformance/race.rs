//! Many writers at once, and who may have won.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::panic;
use std::sync::Arc;

use tokio::sync::Barrier;

use super::clause::{HONEST_ERRORS, LINEARIZABLE_READ, LINEARIZABLE_WRITE, broken, demand};
use crate::lock::LockError;
use crate::store::{StoreError, StoreErrorKind};

/// What a racer was told: what its write left behind, or why it did not write.
pub(super) type Answer<T> = Result<T, Refusal>;

/// A store's or a lock's error, as far as a race cares.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) kind: StoreErrorKind,
    text: String,
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self { kind: error.kind(), text: format!("{error}{cause}") }
    }
}

impl From<LockError> for Refusal {
    fn from(error: LockError) -> Self {
        Self { kind: error.kind(), text: error.chain() }
    }
}

/// Starts all attempts at the same moment and waits for every answer, in the order of the racers.
pub(super) async fn race<T, F, A>(racers: usize, attempt: F) -> Vec<Answer<T>>
where
    T: Send + 'static,
    F: Fn(usize) -> A,
    A: Future<Output = Answer<T>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(racers));
    let tasks: Vec<_> = (0..racers)
        .map(|racer| {
            let (start, attempt) = (start.clone(), attempt(racer));
            tokio::spawn(async move {
                start.wait().await;
                attempt.await
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(racers);
    for task in tasks {
        answers.push(task.await.unwrap_or_else(|error| panic::resume_unwind(error.into_panic())));
    }
    answers
}

/// Judges a race on `object` by its answers and by the racer whose write is there now, if any is.
///
/// `None` if nobody won and nobody had to: a store under load may reject every racer.
pub(super) fn winner<T: Clone + Debug + PartialEq>(
    object: &str,
    racers: &str,
    answers: &[Answer<T>],
    present: Option<(usize, T)>,
) -> Option<(usize, T)> {
    let told: Vec<usize> = (0..answers.len()).filter(|&racer| answers[racer].is_ok()).collect();
    let racing = format!("{} racing {racers}", answers.len());
    demand(told.len() <= 1, object, format!("{} of {racing} were told that they won", told.len()), LINEARIZABLE_WRITE);
    for refusal in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        if !matches!(refusal.kind, StoreErrorKind::Conflict | StoreErrorKind::Rejected | StoreErrorKind::Ambiguous) {
            let what = format!("one of {racing} was answered {:?} ({})", refusal.kind, refusal.text);
            broken(object, what, HONEST_ERRORS);
        }
    }
    match (told.first(), &present) {
        (Some(winner), None) => {
            broken(object, format!("racer {winner} of {racing} won, and its write is not there"), LINEARIZABLE_READ)
        }
        (Some(winner), Some((found, _))) if winner != found => broken(
            object,
            format!("racer {winner} of {racing} was told that it won, and the write of racer {found} is there"),
            LINEARIZABLE_WRITE,
        ),
        (None, None) => {
            let conflict =
                answers.iter().any(|answer| matches!(answer, Err(refusal) if refusal.kind == StoreErrorKind::Conflict));
            demand(!conflict, object, format!("none of {racing} won, yet some were answered Conflict"), HONEST_ERRORS);
        }
        (_, Some((found, left_behind))) => match &answers[*found] {
            Ok(told) => demand(
                told == left_behind,
                object,
                format!("racer {found} of {racing} was told {told:?} and left {left_behind:?}"),
                LINEARIZABLE_READ,
            ),
            Err(refusal) => demand(
                refusal.kind == StoreErrorKind::Ambiguous,
                object,
                format!("the write of a racer is there that was answered {:?} ({})", refusal.kind, refusal.text),
                HONEST_ERRORS,
            ),
        },
    }
    present
}
