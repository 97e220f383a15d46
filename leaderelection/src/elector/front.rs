//! The methods of every elector, whether its lock has a lease of its own or is held by a session.

/// Adds the methods of an elector to a type with these private methods:
///
/// - `compete`, `candidacy`: a candidacy for one term, which borrows the elector or outlives it
/// - `whole`: what surrounds an election from its beginning to its end
/// - `cool_down`, `on_start`, `terms`, `clock`: its settings, and the terms in the hands of its callers
///
/// The examples call `elector(identity)`, which the lines of `$elector` define.
macro_rules! front {
    ($type:ty, $elector:literal) => {
        impl $type {
            /// Competes until it leads, leads until the term ends, and returns: client-go's `Run`.
            ///
            /// Errors of the store are logged, and the request is tried again. Such errors never end a candidacy. A second
            /// call waits until the first call has ended, or until `cancel` is cancelled.
            ///
            /// # Errors
            ///
            /// [`StoreUnfit`](crate::store::StoreUnfit) if the store fails the [check](crate::store::StoreCheck) that is
            /// demanded.
            pub async fn run(
                &self,
                cancel: CancellationToken,
            ) -> Result<$crate::RunOutcome, $crate::store::StoreUnfit> {
                let work = StartWork::Callback(self.on_start());
                self.whole(self.compete(&cancel, work, Duration::ZERO)).await
            }

            /// Competes and leads, again and again, until `cancel` is cancelled.
            ///
            /// After a [step-down](crate::LeaderHandle::step_down), a panic or an error of its work, the elector lets other
            /// candidates go first for the cool-down: one lease duration, unless an elector with a lease of its own is
            /// [configured otherwise](crate::LeaderElectionConfigBuilder::step_down_cool_down).
            ///
            /// # Errors
            ///
            /// [`StoreUnfit`](crate::store::StoreUnfit) if the store fails the [check](crate::store::StoreCheck) that is
            /// demanded.
            pub async fn campaign(&self, cancel: CancellationToken) -> Result<(), $crate::store::StoreUnfit> {
                let campaign = async {
                    let mut stand_back = Duration::ZERO;
                    while !cancel.is_cancelled() {
                        let work = StartWork::Callback(self.on_start());
                        let outcome = self.compete(&cancel, work, stand_back).await?;
                        // The former leader knows first that the lock is free, and would win it back each time.
                        let cools_down = outcome.reason().is_some_and($crate::TermEndReason::cools_down);
                        stand_back = if cools_down { self.cool_down() } else { Duration::ZERO };
                    }
                    Ok(())
                };
                self.whole(campaign).await
            }

            /// Competes and leads on a task of its own, as [`campaign`](Self::campaign) does, and returns the handle and the
            /// task.
            ///
            /// Dropping the [`JoinHandle`](tokio::task::JoinHandle) changes nothing. Aborting the task has the effect of
            /// dropping the future of a campaign. A program that ends has to wait for the task after it has cancelled
            /// `cancel`, because the task releases the lock.
            ///
            /// ```
            /// # use leaderelection::*;
            /// # use tokio_util::sync::CancellationToken;
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let store = MemoryStore::new();
            #[doc = $elector]
            /// # let elector = elector("a");
            /// let shutdown = CancellationToken::new();
            /// let (mut handle, task) = elector.spawn(shutdown.clone());
            /// println!("leading with fencing token {}", handle.elected().await?.fencing_token());
            /// shutdown.cancel();
            /// task.await??;
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Panics
            ///
            /// Outside of a tokio runtime.
            pub fn spawn(
                self,
                cancel: CancellationToken,
            ) -> ($crate::LeaderHandle, tokio::task::JoinHandle<Result<(), $crate::store::StoreUnfit>>) {
                (self.handle(), tokio::spawn(async move { self.campaign(cancel).await }))
            }

            /// Competes and leads as [`campaign`](Self::campaign) does, and runs a service meanwhile: a server for probes
            /// and metrics, or whatever else every candidate runs, leader or not.
            ///
            /// The service runs on a task of its own from now on. Its token is cancelled when the campaign is over and the
            /// lock is released, so that the service outlives the work of the last term. This function then waits for the
            /// service, without a limit.
            ///
            /// ```
            /// # use std::time::Duration;
            /// # use leaderelection::*;
            /// # use tokio_util::sync::CancellationToken;
            /// # async fn serve(probes: Probes, stop: CancellationToken) -> std::io::Result<()> { Ok(stop.cancelled().await) }
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let store = MemoryStore::new();
            #[doc = $elector]
            /// # let elector = elector("a");
            /// # let shutdown = CancellationToken::new();
            /// let probes = Probes::new(elector.handle(), elector.health_check(Duration::from_secs(20)));
            /// # shutdown.cancel();
            /// elector.campaign_with(shutdown, |stop| serve(probes, stop)).await?;
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// A service that ends by itself with `()` or `Ok` leaves the campaign as it is.
            ///
            /// # Cancellation safety
            ///
            /// Dropping the future drops the campaign and aborts the service.
            ///
            /// # Errors
            ///
            /// [`CampaignError::Service`](crate::CampaignError::Service) if the service fails or panics. The campaign was
            /// then ended as by `cancel`, so that no work runs any more and the lock is released, as after any cancellation.
            /// [`CampaignError::StoreUnfit`](crate::CampaignError::StoreUnfit) as for [`campaign`](Self::campaign).
            pub async fn campaign_with<F, S>(
                &self,
                cancel: CancellationToken,
                service: F,
            ) -> Result<(), $crate::CampaignError>
            where
                F: FnOnce(CancellationToken) -> S,
                S: Future<Output: $crate::config::WorkOutcome> + Send + 'static,
            {
                $crate::elector::service::beside(|cancel| self.campaign(cancel), cancel, service).await
            }

            /// Competes until it leads, and returns the term: leading without callbacks. Returns `None` when `cancel` is
            /// cancelled.
            ///
            /// ```
            /// # use leaderelection::*;
            /// # use tokio_util::sync::CancellationToken;
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let store = MemoryStore::new();
            #[doc = $elector]
            /// # let elector = elector("a");
            /// let mut reconciled = 0; // State lives here: no callback has to own it.
            /// let shutdown = CancellationToken::new();
            /// while let Some(term) = elector.next_term(&shutdown).await? {
            ///     let token = term.fencing_token();
            ///     let work = async {
            ///         reconciled += 1;
            ///         println!("reconciling with fencing token {token}");
            ///     };
            ///     if term.run_until_lost(work).await.is_some() {
            ///         shutdown.cancel();
            ///     }
            ///     term.release().await; // Or let it go out of scope.
            /// }
            /// assert_eq!(reconciled, 1);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// The caller does the leader's work, in place of `on_start_leading`. The other callbacks are called as always.
            /// `cancel` also ends the term that was returned. The lock of a session is then released, and a lease unless
            /// [configured otherwise](crate::LeaderElectionConfigBuilder::release_on_cancel).
            ///
            /// After a term that its owner has dropped, other candidates go first for the cool-down, as in a
            /// [`campaign`](Self::campaign). While a term is held, a further call waits for its end, or for `cancel`. `None`
            /// comes after the release of a term that was dropped before, so a program may end on it.
            ///
            /// # Cancellation safety
            ///
            /// Dropping the future ends the candidacy, and no term gets lost: a term begins in the poll that returns it, and
            /// the term of a session's lock that has begun by then ends at once. A write under way may still win a lease,
            /// which then runs out, unless the elector competes again and finds its own write.
            ///
            /// # Errors
            ///
            /// [`StoreUnfit`](crate::store::StoreUnfit) if the store fails the [check](crate::store::StoreCheck) that is
            /// demanded.
            pub async fn next_term(
                &self,
                cancel: &CancellationToken,
            ) -> Result<Option<$crate::Term>, $crate::store::StoreUnfit> {
                let compete = |work, stand_back| self.candidacy(cancel.clone(), work, stand_back);
                self.terms().next(cancel, self.clock(), || self.cool_down(), compete).await
            }

            /// Makes one attempt to lead: returns the term if the lock is free, and the name of the leader if another
            /// candidate leads.
            ///
            /// ```
            /// # use leaderelection::*;
            /// # use tokio_util::sync::CancellationToken;
            /// # #[tokio::main(flavor = "current_thread")]
            /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
            /// # let store = MemoryStore::new();
            #[doc = $elector]
            /// let (a, b) = (elector("a"), elector("b"));
            /// let term = a.try_lead().await?;
            /// let Err(TryLeadError::Led { leader }) = b.try_lead().await else { panic!("two leaders") };
            /// assert_eq!(leader, "a");
            /// term.release().await;
            /// b.try_lead().await?.release().await;
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// An attempt is a read, and a write if the lock is free. A request whose outcome is unknown is read again once.
            /// The lease of a leader that has crashed is not free before it has run out, which an elector notices only by
            /// watching it for a whole lease duration: [`next_term`](Self::next_term) does, and so do attempts that are
            /// repeated.
            ///
            /// The caller does the leader's work, as with [`next_term`](Self::next_term). The attempt waits for the end of an
            /// earlier term or candidacy of this elector. Dropping the future ends the attempt.
            ///
            /// # Errors
            ///
            /// [`TryLeadError`](crate::TryLeadError).
            pub async fn try_lead(&self) -> Result<$crate::Term, $crate::TryLeadError> {
                let attempt = |work| self.candidacy(CancellationToken::new(), work, Duration::ZERO);
                $crate::elector::try_lead::attempt(self.handle(), self.terms(), self.clock(), attempt).await
            }

            /// Wins one term, runs `work` on a task of its own, releases the lock, and returns the output. After a
            /// cancellation by `cancel`, a lease is released unless
            /// [configured otherwise](crate::LeaderElectionConfigBuilder::release_on_cancel).
            ///
            /// `work` takes the place of `on_start_leading`. The other callbacks are called as always. The output of `work` is
            /// returned in two cases, whatever happens to the term afterwards: `work` is complete before its window closes, or
            /// `work` was told to stop by `cancel` and is complete before its lease has run out.
            ///
            /// # Errors
            ///
            /// [`RunError::Cancelled`](crate::RunError::Cancelled) or [`RunError::StoreUnfit`](crate::RunError::StoreUnfit) if
            /// `work` was never started; [`RunError::Lost`](crate::RunError::Lost) if leadership ended before `work` was
            /// complete, if `work` panicked, or if `work` did not stop in time.
            pub async fn run_while_leading<F, W, T>(
                &self,
                cancel: CancellationToken,
                work: F,
            ) -> Result<T, $crate::RunError>
            where
                F: FnOnce($crate::Leadership) -> W + Send + 'static,
                W: Future<Output = T> + Send + 'static,
                T: Send + 'static,
            {
                let (work, output) = Output::of(work);
                output.after(self.whole(self.compete(&cancel, work, Duration::ZERO)).await?)
            }

            /// Does the job `id`, unless the lock says that the job is done: a job that has to succeed only once, on any
            /// number of machines.
            ///
            /// All candidates compete and wait, as for [`run_while_leading`](Self::run_while_leading). A candidate whose
            /// `work` returns `Ok` writes the job into the record with its release, in one write. A candidate that reads a
            /// record with the job returns [`JobOutcome::AlreadyDone`](crate::lock::JobOutcome::AlreadyDone) without running
            /// `work`. After an error of `work`, a panic or a crash there is no such mark, so the next candidate does the job.
            /// No clock decides anything: a candidate that starts late finds the mark, as long as the record remembers the job
            /// ([`REMEMBERED_JOBS`](crate::lock::REMEMBERED_JOBS)).
            ///
            /// A process that crashes after the success of `work` and before that write leaves no mark, so the job is done
            /// again. So does a session that ends with the work: its one write frees all locks and marks none. Let the job
            /// check the fencing token, or be harmless when it is repeated.
            ///
            /// # Errors
            ///
            /// As [`run_while_leading`](Self::run_while_leading). An error of `work` is no error of this function:
            /// [`JobOutcome::Failed`](crate::lock::JobOutcome::Failed).
            pub async fn run_once<F, W, T, E>(
                &self,
                cancel: CancellationToken,
                id: &$crate::lock::JobId,
                work: F,
            ) -> Result<$crate::lock::JobOutcome<T, E>, $crate::RunError>
            where
                F: FnOnce($crate::Leadership) -> W + Send + 'static,
                W: Future<Output = Result<T, E>> + Send + 'static,
                T: Send + 'static,
                E: Send + 'static,
            {
                let (work, output) = Output::of_job(id, work);
                output.after_job(self.whole(self.compete(&cancel, work, Duration::ZERO)).await?)
            }
        }
    };
}

pub(crate) use front;
