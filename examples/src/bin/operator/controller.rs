//! The work: makes what is like what is desired.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::{ConditionalStore, Leadership, Precondition, StoreError};

/// How often the controller looks, if nothing tells it to.
const RESYNC: Duration = Duration::from_millis(500);

/// Makes the object `<lock>.actual` say what `<lock>.desired` says.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    store: Arc<dyn ConditionalStore>,
    desired: String,
    actual: String,
}

impl Controller {
    /// The controller beside the lock at `key`.
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, key: &str) -> Self {
        Self { store, desired: format!("{key}.desired"), actual: format!("{key}.actual") }
    }

    /// Reconciles until leadership is lost.
    pub(crate) async fn run(self, leadership: Leadership) {
        println!("leading with fencing token {}", leadership.fencing_token());
        while leadership.is_valid() {
            if let Err(error) = self.reconcile(&leadership).await {
                tracing::warn!(%error, "could not reconcile; trying again");
            }
            tokio::select! {
                biased;
                () = leadership.lost() => break,
                () = tokio::time::sleep(RESYNC) => {}
            }
        }
    }

    async fn reconcile(&self, leadership: &Leadership) -> Result<(), StoreError> {
        metrics::counter!("operator_reconciliations_total").increment(1);
        let Some(desired) = self.store.get(&self.desired).await? else { return Ok(()) };
        let wanted = String::from_utf8_lossy(&desired.body);
        let actual = self.store.get(&self.actual).await?;
        // The token is part of what is written: a leader of the past finds a larger one, and gives up.
        let written = format!("{} {}", leadership.fencing_token(), wanted.trim());
        let (is_so, fenced) = match &actual {
            None => (false, false),
            Some(object) => {
                let body = String::from_utf8_lossy(&object.body);
                let (token, state) = body.split_once(' ').unwrap_or(("0", &body));
                let newest = token.parse().unwrap_or(0);
                (state == wanted.trim(), newest > leadership.fencing_token())
            }
        };
        if is_so || fenced {
            return Ok(());
        }
        let precondition = actual.map_or(Precondition::Absent, |object| Precondition::Matches(object.version));
        self.store.put(&self.actual, written.into(), &precondition).await?;
        println!("reconciled: {}", wanted.trim());
        Ok(())
    }
}
