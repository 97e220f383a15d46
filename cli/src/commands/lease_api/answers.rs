//! What those who know tokens have said.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// The time for which an answer counts, and a refusal.
const FRESH: Duration = Duration::from_secs(60);
const REFUSED: Duration = Duration::from_secs(10);

/// The time for which an answer counts while nobody gives another: an outage of the cluster ends no lease.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// The time of a review, and the pause behind one that has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The answers that are remembered. A stranger can only add refusals, which make room first.
const MOST_KNOWN: usize = 8192;

/// The reviews at a time.
const REVIEWS: usize = 16;

type Digest = [u8; 32];

/// An answer about a token.
#[derive(Clone, Debug)]
struct Known {
    /// `None` if it is nobody's.
    name: Option<String>,
    at: Instant,
    /// The time of the last review that has failed.
    failed: Option<Instant>,
}

impl Known {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < if self.name.is_some() { FRESH } else { REFUSED }
    }

    fn is_kept(&self) -> bool {
        self.name.is_some() && self.at.elapsed() < KEPT
    }
}

/// The answers about tokens. A token is remembered by its SHA-256.
#[derive(Debug)]
pub(super) struct Answers {
    known: Mutex<HashMap<Digest, Known>>,
    reviews: Semaphore,
}

impl Default for Answers {
    fn default() -> Self {
        Self { known: Mutex::default(), reviews: Semaphore::new(REVIEWS) }
    }
}

impl Answers {
    /// Returns the owner of a token; `None` if it has none. The token is reviewed unless the answer is known.
    ///
    /// # Errors
    ///
    /// The problem of a review that has failed, if no answer counts any more.
    pub(super) async fn of(
        &self,
        token: &str,
        review: impl Future<Output = Result<Option<String>, String>>,
    ) -> Result<Option<String>, String> {
        let digest = Sha256::digest(token.as_bytes()).into();
        let known = self.with(|known| known.get(&digest).cloned());
        let has_just_failed = |known: &Known| known.failed.is_some_and(|at| at.elapsed() < PATIENCE);
        if let Some(known) = &known
            && (known.is_fresh() || known.is_kept() && has_just_failed(known))
        {
            return Ok(known.name.clone());
        }
        let review = timeout(PATIENCE, async {
            let _turn = self.reviews.acquire().await;
            review.await
        });
        let late = || Err(format!("nobody has answered within {} s", PATIENCE.as_secs()));
        let review = review.await.unwrap_or_else(|_| late());
        if let Err(problem) = &review {
            tracing::warn!(problem, "cannot find the owner of a token");
        }
        let answer = match (review, known.filter(Known::is_kept)) {
            (Ok(name), _) => Known { name, at: Instant::now(), failed: None },
            (Err(_), Some(kept)) => Known { failed: Some(Instant::now()), ..kept },
            (Err(problem), None) => return Err(problem),
        };
        self.with(|known| {
            if known.len() >= MOST_KNOWN {
                known.retain(|_, known| known.is_kept());
            }
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(digest, answer.clone());
        });
        Ok(answer.name)
    }

    fn with<T>(&self, change: impl FnOnce(&mut HashMap<Digest, Known>) -> T) -> T {
        // No change can panic half-way.
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_minute_and_for_five_while_nobody_gives_another() {
        let (answers, asked) = (Answers::default(), Cell::new(0));
        let me = || Ok(Some("me".to_owned()));
        let ask = async |answer: Result<Option<String>, String>| {
            let review = async {
                asked.set(asked.get() + 1);
                answer
            };
            (answers.of("token", review).await, asked.take())
        };
        let down = || Err("down".to_owned());
        assert_eq!(ask(down()).await, (down(), 1), "nobody knows");
        assert_eq!(ask(me()).await, (me(), 1), "a failure is not remembered");
        advance(FRESH - Duration::from_millis(1)).await;
        assert_eq!(ask(Ok(None)).await, (me(), 0));
        advance(Duration::from_millis(1)).await;
        assert_eq!(ask(down()).await, (me(), 1));
        assert_eq!(ask(Ok(None)).await, (me(), 0), "nobody is asked again at once");
        advance(PATIENCE).await;
        assert_eq!(ask(me()).await, (me(), 1));
        advance(KEPT).await;
        assert_eq!(ask(down()).await, (down(), 1));
        assert_eq!(ask(me()).await, (me(), 1));
        advance(FRESH).await;
        assert_eq!(ask(Ok(None)).await, (Ok(None), 1), "a refusal counts at once");
        assert_eq!(ask(me()).await, (Ok(None), 0));
        advance(REFUSED).await;
        assert_eq!(ask(me()).await, (me(), 1));
        let late = answers.of("another", pending()).await;
        assert!(late.is_err_and(|problem| problem.contains("within 2 s")));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_make_room_before_answers() {
        let answers = Answers::default();
        let me = Ok(Some("me".to_owned()));
        answers.of("mine", ready(me.clone())).await.unwrap();
        for stranger in 0..2 * MOST_KNOWN {
            assert_eq!(answers.of(&stranger.to_string(), ready(Ok(None))).await, Ok(None));
            assert!(answers.with(|known| known.len()) <= MOST_KNOWN);
        }
        assert_eq!(answers.of("mine", ready(Ok(None))).await, me);
    }
}
