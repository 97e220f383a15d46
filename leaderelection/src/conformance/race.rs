//! Many writers at once.

use std::fmt::Debug;
use std::panic;
use std::sync::Arc;

use tokio::sync::Barrier;

use crate::clock::TokioClock;
use crate::patience::{TRIES, pause};
use crate::race;
pub(super) use crate::race::{Answer, Refusal};
use crate::store::StoreErrorKind;

/// Starts all attempts at the same moment and waits for every answer, in the order of the racers. Again if
/// the store rejects them all, as one does that limits rates: nobody has lost such a race.
pub(super) async fn race<T, F, A>(racers: usize, attempt: F) -> Vec<Answer<T>>
where
    T: Send + 'static,
    F: Fn(usize) -> A,
    A: Future<Output = Answer<T>> + Send + 'static,
{
    let is_rejected = |answer: &Answer<T>| matches!(answer, Err(refusal) if refusal.kind == StoreErrorKind::Rejected);
    for _ in 1..TRIES {
        let answers = start(racers, &attempt).await;
        if !answers.iter().all(is_rejected) {
            return answers;
        }
        pause(&TokioClock::new(), None).await;
    }
    start(racers, &attempt).await
}

async fn start<T, F, A>(racers: usize, attempt: &F) -> Vec<Answer<T>>
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

/// Judges a race on `object`: see [`race::winner`].
pub(super) fn winner<T: Clone + Debug + PartialEq>(
    object: &str,
    racers: &str,
    answers: &[Answer<T>],
    present: Option<(usize, T)>,
) -> Option<(usize, T)> {
    race::winner(racers, answers, present).unwrap_or_else(|breach| panic!("{object}: {breach}"))
}
