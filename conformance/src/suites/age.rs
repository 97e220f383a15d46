//! The check of the ages that a store tells.

use std::time::Duration;

use leaderelection::{ConditionalStore, Precondition};
use tokio::time::{Instant, sleep};

use super::calls::Suite;
use super::clause::{AGE, demand};

/// The grain of the times in HTTP.
const GRAIN: Duration = Duration::from_secs(1);

impl<S: ConditionalStore> Suite<S> {
    /// Requires that no version is said to be older than it is. A store that tells no ages needs no time for this check.
    pub(super) async fn ages(&self) {
        let key = self.key("age");
        let mut precondition = Precondition::Absent;
        for (body, after) in [("first", "its creation"), ("second", "an update")] {
            let sent = Instant::now();
            let version = self.put(&key, body, &precondition).await;
            let Some(age) = self.get(&key).await.and_then(|object| object.age) else { return };
            let most = sent.elapsed() + GRAIN;
            let what = format!("at most {most:?} after {after}, its age is {age:?}");
            demand(age <= most, &self.store.describe(&key), what, AGE);
            if precondition == Precondition::Absent {
                // The object has to be older than the second version may be said to be.
                sleep(GRAIN * 2).await;
            }
            precondition = Precondition::Matches(version);
        }
    }
}
