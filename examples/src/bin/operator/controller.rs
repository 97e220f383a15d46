//! The controller's work: makes the actual state equal to the desired state.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::fence::FencedObject;
use leaderelection::{ConditionalStore, Leadership};

/// The interval between two reconciliations without another trigger.
const RESYNC: Duration = Duration::from_millis(500);

/// A controller that copies the object `<lock>.desired` to the fenced object `<lock>.actual`.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    store: Arc<dyn ConditionalStore>,
    desired: String,
    actual: FencedObject<Arc<dyn ConditionalStore>, String>,
}

impl Controller {
    /// Creates the controller beside the lock at `key`.
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, key: &str) -> Self {
        let actual = FencedObject::new(Arc::clone(&store), format!("{key}.actual"));
        Self { store, desired: format!("{key}.desired"), actual }
    }

    /// Reconciles until leadership is lost.
    pub(crate) async fn run(self, leadership: Leadership) {
        let token = leadership.fencing_token();
        println!("leading with fencing token {token}");
        while let Some(Err(error)) = leadership.run_until_lost(self.reconcile(token)).await {
            tracing::warn!(%error, "could not reconcile; trying again");
            leadership.run_until_lost(tokio::time::sleep(RESYNC)).await;
        }
    }

    /// Reconciles again and again. Returns only if the store fails, or if a later leader has written.
    async fn reconcile(&self, token: u64) -> anyhow::Result<Infallible> {
        // After the claim, no write of an earlier leader succeeds, even if the write is on its way already.
        let mut actual = self.actual.claim(token).await?;
        loop {
            metrics::counter!("operator_reconciliations_total").increment(1);
            let desired = self.desired().await?;
            // Without a desired state, the actual state stays.
            if let Some(state) = desired.filter(|state| actual.as_ref() != Some(state)) {
                self.actual.write(token, &state).await?;
                println!("reconciled: {state}");
                actual = Some(state);
            }
            tokio::time::sleep(RESYNC).await;
        }
    }

    async fn desired(&self) -> anyhow::Result<Option<String>> {
        let object = self.store.get(&self.desired).await?;
        Ok(object.map(|object| String::from_utf8_lossy(&object.body).trim().to_owned()))
    }
}
