//! The sequence of the checks, and the meaning of their findings.

use std::time::Duration;

use leaderelection::StoreErrorKind;

use super::calls::Prober;
use super::check::{Check, CheckKind, Finding, Outcome, Stopped};
use crate::contract::{Breach, HONEST_ERRORS};
use crate::race::Refusal;

impl Prober {
    /// Runs the checks, until a required check cannot be made, by an error or by a refusal.
    pub(super) async fn run(&self, checks: &mut Vec<Check>) {
        for kind in self.kinds() {
            let (check, is_refusal) = self.check(kind).await;
            let go_on = !kind.is_required() || matches!(check.outcome, Outcome::Passed | Outcome::Failed);
            checks.push(check);
            self.sweep().await;
            if go_on {
                continue;
            }
            // A store that refuses all updates may still be one that can create.
            if kind == CheckKind::StaleUpdate && is_refusal {
                checks.push(self.check(CheckKind::RacingCreators).await.0);
                self.sweep().await;
            }
            break;
        }
        self.skip_the_rest(checks);
    }

    /// Completes `checks` after the time limit.
    pub(super) fn out_of_time(&self, checks: &mut Vec<Check>) {
        if let Some(&kind) = self.kinds().get(checks.len()) {
            let last_error = self.with_ledger(|ledger| ledger.last_error.clone());
            let because = last_error.map(|error| format!("; the last error was: {error}")).unwrap_or_default();
            let detail = format!("not finished within {:?}{because}", self.config.time_limit);
            checks.push(Check { kind, outcome: Outcome::Inconclusive, detail });
        }
        self.skip_the_rest(checks);
    }

    fn kinds(&self) -> Vec<CheckKind> {
        let of_creations = CheckKind::OF_CREATIONS.into_iter().filter(|_| self.objects.is_some());
        of_creations.chain(CheckKind::ALL).collect()
    }

    fn skip_the_rest(&self, checks: &mut Vec<Check>) {
        for kind in self.kinds() {
            if checks.iter().all(|check| check.kind != kind) {
                checks.push(Check { kind, outcome: Outcome::Skipped, detail: "not tried".to_owned() });
            }
        }
    }

    /// Makes a check. Returns `true` with it if the store says that it cannot do what it was asked for.
    pub(crate) async fn check(&self, kind: CheckKind) -> (Check, bool) {
        const ATTEMPTS: usize = 3;
        let mut attempt = 1;
        loop {
            let attempted = self.attempt(kind).await;
            let is_refusal = attempted.as_ref().is_err_and(Stopped::is_refusal);
            let (outcome, detail) = match attempted {
                Ok(seen) => (Outcome::Passed, seen),
                Err(Stopped::Broken(breach)) => (Outcome::Failed, breach.to_string()),
                // A single lost answer, or a conflict that a proxy's repeated request caused, is bad luck.
                Err(stopped) if attempt < ATTEMPTS && stopped.may_be_bad_luck() => {
                    attempt += 1;
                    self.sweep().await;
                    self.pause(stopped.retry_after()).await;
                    continue;
                }
                Err(Stopped::Refused(what)) => (Outcome::Refused, what),
                Err(Stopped::Unclear(error)) if error.kind() == StoreErrorKind::Conflict => {
                    let what = format!("a call that had nothing to conflict with failed with Conflict ({error})");
                    (Outcome::Failed, Breach::new(what, HONEST_ERRORS).to_string())
                }
                Err(Stopped::Unclear(error)) => (Outcome::Inconclusive, Refusal::from(error).text),
            };
            return (Check { kind, outcome, detail }, is_refusal);
        }
    }

    async fn attempt(&self, kind: CheckKind) -> Finding {
        match (kind, &self.objects) {
            (CheckKind::CreateAgain, Some(objects)) => self.create_again(objects).await,
            (CheckKind::ListedAtOnce, Some(objects)) => self.listed_at_once(objects).await,
            (CheckKind::CreateAgain | CheckKind::ListedAtOnce, None) => Ok("not asked of this store".to_owned()),
            (CheckKind::CreateTwice, _) => self.create_twice().await,
            (CheckKind::StaleUpdate, _) => self.stale_update().await,
            (CheckKind::UpdateMissing, _) => self.update_missing().await,
            (CheckKind::RacingCreators, _) => self.racing_creators().await,
            (CheckKind::RacingUpdaters, _) => self.racing_updaters().await,
            (CheckKind::StaleDelete, _) => self.stale_delete().await,
        }
    }
}

impl Stopped {
    fn may_be_bad_luck(&self) -> bool {
        match self {
            Self::Broken(_) => false,
            Self::Refused(_) => true,
            Self::Unclear(error) => matches!(error.kind(), StoreErrorKind::Ambiguous | StoreErrorKind::Conflict),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unclear(error) => error.retry_after(),
            Self::Broken(_) | Self::Refused(_) => None,
        }
    }
}
