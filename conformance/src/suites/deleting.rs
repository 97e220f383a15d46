//! Races of creators for an object that was deleted, and of updaters with a deleter.

use bytes::Bytes;
use leaderelection::StoreErrorKind;
use leaderelection::implement::Precondition::{Absent, Matches};
use leaderelection::implement::Version;

use crate::contract::{Breach, HONEST_ERRORS, WRITTEN};
use crate::patience::TRIES;
use crate::probe::{Finding, Prober};
use crate::race::{self, Answer, Refusal};

impl Prober {
    pub(super) async fn racing_deletions(&self, deletes: bool) -> Finding<()> {
        for number in 0..self.config.rounds {
            let key = &self.new_key("deleted");
            let before = self.write(key, "before the race", &Absent).await?;
            self.remove(key, &before, deletes).await?;
            let base = self.race_creators(key, number).await?;
            if deletes {
                self.race_a_deleter(key, &base).await?;
            }
            self.sweep().await;
        }
        Ok(())
    }

    /// Lets one racer delete the version that all others update.
    async fn race_a_deleter(&self, key: &str, base: &Version) -> Finding<()> {
        let deleter = self.config.writers;
        let body = |racer: usize| Bytes::from(format!("racer {racer} beside a deleter"));
        for _ in 0..TRIES {
            let race = (0..deleter + 1).map(|racer| {
                let (prober, key, base, body) = (self.clone(), key.to_owned(), base.clone(), body(racer));
                async move {
                    let answer = if racer == deleter {
                        prober.call(&key, prober.store.delete(&key, Some(&base))).await.map(|()| None)
                    } else {
                        prober.put_once(&key, body, Matches(base)).await.map(Some)
                    };
                    answer.map_err(Refusal::from)
                }
            });
            let answers: Vec<Answer<Option<Version>>> = race::at_once(race).await;
            let present = match self.get(key).await? {
                None => Some((deleter, None)),
                Some(found) if found.version == *base => None,
                Some(found) => {
                    let racer = (0..deleter).find(|&racer| body(racer) == found.body);
                    let what = "after a race of updaters and a deleter, it holds what none of them wrote";
                    Some((racer.ok_or_else(|| Breach::new(what, WRITTEN))?, Some(found.version)))
                }
            };
            race::winner("updaters and a deleter", &answers, present)?;
            let is_rejected =
                |answer: &Answer<_>| answer.as_ref().is_err_and(|refusal| refusal.kind == StoreErrorKind::Rejected);
            if !answers.iter().all(is_rejected) {
                return Ok(());
            }
            self.pause(None).await;
        }
        Err(Breach::new(format!("in {TRIES} races all updaters and the deleter were rejected"), HONEST_ERRORS).into())
    }
}
