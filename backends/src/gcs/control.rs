//! The client for deletions and listings, created by the first of them.

use std::error::Error as StdError;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use google_cloud_storage::client::StorageControl;
use leaderelection::{StoreError, StoreErrorKind};
use tokio::sync::OnceCell;

use crate::request::{Words, failed};

type Made = Result<StorageControl, Box<dyn StdError + Send + Sync>>;

#[derive(Clone)]
pub(super) struct Control {
    make: Arc<dyn Fn() -> BoxFuture<'static, Made> + Send + Sync>,
    client: Arc<OnceCell<StorageControl>>,
}

impl Control {
    pub(super) fn new(make: impl Fn() -> BoxFuture<'static, Made> + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), client: Arc::default() }
    }

    /// Returns the client, and creates it if need be. A failure is not kept: the next call tries again.
    pub(super) async fn client(&self, object: &str) -> Result<&StorageControl, StoreError> {
        self.client.get_or_try_init(|| (self.make)()).await.map_err(|error| {
            let advice = "no gRPC client can be made; check the credentials and the endpoint";
            failed(object, (StoreErrorKind::Fatal, advice), Words::of_error(&*error))
        })
    }
}
