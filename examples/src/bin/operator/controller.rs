//! The controller's work: makes the actual state equal to the desired state.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::{ConditionalStore, Leadership, Precondition, StoreError};

/// The interval between two reconciliations without another trigger.
const RESYNC: Duration = Duration::from_millis(500);

/// A controller that copies the object `<lock>.desired` to `<lock>.actual`.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    store: Arc<dyn ConditionalStore>,
    desired: String,
    actual: String,
}

impl Controller {
    /// Creates the controller beside the lock at `key`.
    pub(crate) fn new(store: Arc<dyn ConditionalStore>, key: &str) -> Self {
        Self { store, desired: format!("{key}.desired"), actual: format!("{key}.actual") }
    }

    /// Reconciles until leadership is lost.
    pub(crate) async fn run(self, leadership: Leadership) {
        println!("leading with fencing token {}", leadership.fencing_token());
        while leadership.is_valid() {
            if let Err(error) = self.reconcile(leadership.fencing_token()).await {
                tracing::warn!(%error, "could not reconcile; trying again");
            }
            tokio::select! {
                biased;
                () = leadership.lost() => break,
                () = tokio::time::sleep(RESYNC) => {}
            }
        }
    }

    async fn reconcile(&self, token: u64) -> Result<(), StoreError> {
        metrics::counter!("operator_reconciliations_total").increment(1);
        match self.look(token).await? {
            Some(change) => self.make(change).await,
            None => Ok(()),
        }
    }

    /// Returns the write that the leader with this token has to send, if there is one.
    async fn look(&self, token: u64) -> Result<Option<Change>, StoreError> {
        let desired = self.store.get(&self.desired).await?;
        let actual = self.store.get(&self.actual).await?;
        let body = actual.as_ref().map(|object| String::from_utf8_lossy(&object.body)).unwrap_or_default();
        let (writer, state) = body.split_once(' ').unwrap_or(("", &body));
        let writer: Option<u64> = writer.parse().ok();
        // Without a desired state, the actual state stays.
        let wanted = match &desired {
            Some(object) => String::from_utf8_lossy(&object.body).trim().to_owned(),
            None => state.to_owned(),
        };
        // An earlier leader that finds a larger token stops. But a leader that was frozen after this check
        // compares no tokens any more: only a changed version stops its write. Every leader therefore writes
        // its token first, even if the state is already correct.
        if writer > Some(token) || (writer == Some(token) && state == wanted) {
            return Ok(None);
        }
        let precondition = actual.map_or(Precondition::Absent, |object| Precondition::Matches(object.version));
        Ok(Some(Change { token, state: wanted, precondition }))
    }

    async fn make(&self, Change { token, state, precondition }: Change) -> Result<(), StoreError> {
        self.store.put(&self.actual, format!("{token} {state}").into(), &precondition).await?;
        println!("reconciled: {state}");
        Ok(())
    }
}

/// A write that has not been sent yet.
#[derive(Debug)]
struct Change {
    token: u64,
    state: String,
    precondition: Precondition,
}

#[cfg(test)]
mod tests {
    use leaderelection::{MemoryStore, StoreErrorKind};

    use super::*;

    fn controller() -> Controller {
        Controller::new(Arc::new(MemoryStore::new()), "lock")
    }

    async fn desire(Controller { store, desired, .. }: &Controller, state: Option<&'static str>) {
        if let Some(object) = store.get(desired).await.unwrap() {
            store.delete(desired, &object.version).await.unwrap();
        }
        if let Some(state) = state {
            store.put(desired, state.into(), &Precondition::Absent).await.unwrap();
        }
    }

    async fn assert_actual(Controller { store, actual, .. }: &Controller, expected: &str) {
        assert_eq!(store.get(actual).await.unwrap().unwrap().body, expected);
    }

    #[tokio::test]
    async fn a_leader_that_finds_nothing_to_do_shuts_out_one_frozen_before_its_write() {
        let controller = controller();
        desire(&controller, Some("one")).await;
        controller.reconcile(0).await.unwrap();
        desire(&controller, Some("two")).await;
        let frozen = controller.look(0).await.unwrap().unwrap();

        desire(&controller, Some("one")).await;
        controller.reconcile(1).await.unwrap();
        let refused = controller.make(frozen).await;
        assert_actual(&controller, "1 one").await;
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Conflict);

        controller.reconcile(0).await.unwrap();
        assert_actual(&controller, "1 one").await;
    }

    #[tokio::test]
    async fn so_does_a_leader_for_whom_nothing_is_desired() {
        let controller = controller();
        desire(&controller, Some("one")).await;
        let frozen = controller.look(0).await.unwrap().unwrap();

        desire(&controller, None).await;
        controller.reconcile(1).await.unwrap();
        let refused = controller.make(frozen).await;
        assert_actual(&controller, "1 ").await;
        assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Conflict);
    }

    #[tokio::test]
    async fn what_is_already_so_is_written_once_a_leader() {
        let controller = controller();
        desire(&controller, Some("one\n")).await;
        assert!(controller.look(0).await.unwrap().is_some());
        controller.reconcile(0).await.unwrap();
        assert!(controller.look(0).await.unwrap().is_none());
        assert!(controller.look(1).await.unwrap().is_some());
    }
}
