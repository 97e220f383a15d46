//! The controller, which reconciles while its replica leads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::runtime::controller::{self, Action};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use leaderelection::{Leadership, Timings};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::copy::{self, COPIES, ORIGINALS, Refusal, Write};
use crate::reach::{self, CutOff};
use crate::standby::Gate;

/// The pause after a reconciliation that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// A controller that keeps a copy of every ConfigMap that has the label `operator.example/copy=true`.
#[derive(Clone, Debug)]
pub struct Controller {
    timings: Timings,
    config_maps: Api<ConfigMap>,
    gate: Gate,
    is_warm: bool,
}

/// The client of a reconciliation, and the gate to it.
struct Context {
    config_maps: Api<ConfigMap>,
    gate: Gate,
}

#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Controller {
    /// Creates the controller for the namespace of the client. It gives leadership up when the API server has not answered
    /// for the renew deadline of these timings.
    ///
    /// With a warm standby, a follower watches, too: [`stand_by`](Self::stand_by). Without it, a follower costs the API server
    /// nothing, and a new leader begins with a listing.
    pub fn new(client: Client, timings: Timings, is_warm: bool) -> Self {
        Self { timings, config_maps: Api::default_namespaced(client), gate: Gate::default(), is_warm }
    }

    /// Reconciles until leadership is lost.
    ///
    /// At the end no reconciliation begins, and those that run go on to their end. The lock is released after them, and the
    /// elector drops this future, and with it the reconciliations, if they take longer than the lease allows.
    ///
    /// # Errors
    ///
    /// If the API server does not answer any more. The elector then ends the term, releases the lock, and lets others go first.
    pub async fn run(self, leadership: Leadership) -> Result<(), CutOff> {
        println!("leading with fencing token {}", leadership.fencing_token());
        let (client, lost) = (self.config_maps.clone().into_client(), leadership.cancellation_token());
        let reconciling = async {
            let watching = async {
                if !self.is_warm {
                    self.watch(lost).await;
                }
            };
            tokio::join!(self.gate.open(leadership), watching);
        };
        tokio::select! {
            () = reconciling => Ok(()),
            cut_off = reach::lost(&client, self.timings.renew_deadline(), self.timings.retry_period()) => Err(cut_off),
        }
    }

    /// Watches until `stop`, if the standby is warm: the caches are then filled when leadership comes.
    pub async fn stand_by(self, stop: CancellationToken) {
        if self.is_warm {
            self.watch(stop).await;
        }
    }

    async fn watch(&self, stop: CancellationToken) {
        let context = Context { config_maps: self.config_maps.clone(), gate: self.gate.clone() };
        kube::runtime::Controller::new(self.config_maps.clone(), watcher::Config::default().labels(ORIGINALS))
            .owns(self.config_maps.clone(), watcher::Config::default().labels(COPIES))
            .reconcile_all_on(self.gate.openings())
            .graceful_shutdown_on(stop.cancelled_owned())
            .run(reconcile, after_failure, Arc::new(context))
            .for_each(async |result| match result {
                // `after_failure` has reported a failure, and an original that is gone needs no copy.
                Ok(_) | Err(controller::Error::ReconcilerFailed(..) | controller::Error::ObjectNotFound(_)) => {}
                Err(error) => tracing::warn!(%error, "the controller could not watch; it tries again"),
            })
            .await;
    }
}

async fn reconcile(original: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Failure> {
    let work = |leadership: Leadership| copy(&original, &context.config_maps, leadership.fencing_token().into());
    // A follower only fills its caches. Everything is reconciled when the gate opens.
    context.gate.pass(work).await.unwrap_or(Ok(Action::await_change()))
}

async fn copy(original: &ConfigMap, config_maps: &Api<ConfigMap>, token: u64) -> Result<Action, Failure> {
    let name = copy::name(original);
    let present = config_maps.get_opt(&name).await?;
    match copy::due(original, present, token)? {
        None => {}
        Some(Write::Create(copy)) => drop(config_maps.create(&PostParams::default(), &copy).await?),
        Some(Write::Replace(copy)) => drop(config_maps.replace(&name, &PostParams::default(), &copy).await?),
    }
    metrics::counter!("operator_reconciliations_total", "result" => "ok").increment(1);
    println!("reconciled {} under fencing token {token}", original.name_any());
    Ok(Action::await_change())
}

fn after_failure(original: Arc<ConfigMap>, failure: &Failure, _context: Arc<Context>) -> Action {
    metrics::counter!("operator_reconciliations_total", "result" => "error").increment(1);
    tracing::warn!(original = original.name_any(), %failure, "could not reconcile; trying again");
    Action::requeue(PAUSE)
}
