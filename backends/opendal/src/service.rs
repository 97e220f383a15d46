//! The calls of an operator, each bounded in time and size.

use std::fmt::{self, DebugStruct};
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, TryStreamExt as _};
use leaderelection::implement::{ListedObject, Listing};
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::fresh::Fresh;
use leaderelection_store_support::request::{self, Body, Operation, bounded};
use opendal::options::{ListOptions, WriteOptions};
use opendal::{Capability, ErrorKind, HttpTransporter, Metadata, Operator};

use crate::{error, key};

#[derive(Clone)]
pub(crate) struct Service {
    operator: Operator,
    /// The same operator, with the present connections.
    connected: Fresh<Operator>,
    pub(crate) request_timeout: Duration,
}

impl Service {
    /// Refuses an operator that cannot create on a condition, which every election needs.
    pub(crate) fn new(operator: Operator) -> Result<(Self, Capability), StoreError> {
        let capability = operator.info().capability();
        let connected = Fresh::fixed(operator.clone());
        let service = Self { operator, connected, request_timeout: request::DEFAULT_TIMEOUT };
        let Capability { read, write_with_if_not_exists, list, delete, .. } = capability;
        if !(read && list && delete) {
            return Err(service.unfit("cannot read, list and delete; use another service, such as s3, azblob or oss"));
        }
        if !write_with_if_not_exists {
            return Err(service.unfit(
                "can neither create nor replace an object on a condition; use a service that can, such as s3, azblob or \
                 oss",
            ));
        }
        Ok((service, capability))
    }

    /// Takes another HTTP transport of `make` after each call without an answer.
    pub(crate) fn renewed_by(&mut self, make: impl Fn() -> opendal::Result<HttpTransporter> + Send + Sync + 'static) {
        let operator = self.operator.clone();
        self.connected = self.connected.renewed_by(move || {
            let transport = make().map(|transport| operator.context().with_http_transport(transport));
            ready(transport.map(|context| operator.clone().with_context(context)).map_err(Into::into)).boxed()
        });
    }

    async fn ask<T>(
        &self,
        object: &str,
        call: impl AsyncFnOnce(Operator) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        bounded(self.request_timeout, object, self.connected.ask(object, call)).await
    }

    /// The error of a service that lacks something.
    pub(crate) fn unfit(&self, lack: &str) -> StoreError {
        let message = format!("{}: the service {} of opendal {lack}", self.describe(""), self.operator.info().scheme());
        StoreError::new(StoreErrorKind::Fatal, message)
    }

    pub(crate) fn describe(&self, key: &str) -> String {
        let info = self.operator.info();
        format!("{}://{}{}{key}", info.scheme(), info.name(), info.root())
    }

    /// Reads an object of at most `most` bytes, and its metadata from the same response if the service has sent any.
    pub(crate) async fn read(&self, key: &str, most: usize) -> Result<Option<(Bytes, Option<Metadata>)>, StoreError> {
        let object = self.describe(key);
        key::check(key, &object)?;
        let explain = |failure| error::explain(Operation::Get, &object, &failure);
        self.ask(&object, async |operator| {
            let reader = operator.reader(key).await.map_err(explain)?;
            let mut chunks = reader.into_stream(..).await.map_err(explain)?;
            let metadata = match chunks.metadata().await {
                Ok(metadata) => Some(metadata),
                Err(failure) if error::is_absent(&failure) => return Ok(None),
                // The service has no metadata for a read.
                Err(failure) if failure.kind() == ErrorKind::Unsupported => None,
                Err(failure) => return Err(explain(failure)),
            };
            let mut body = Body::new(&object, most, metadata.as_ref().map(Metadata::content_length))?;
            loop {
                match chunks.try_next().await {
                    Ok(Some(chunk)) => body.push(&chunk.to_bytes())?,
                    Ok(None) => return Ok(Some((body.finish(), metadata))),
                    Err(failure) if error::is_absent(&failure) => return Ok(None),
                    Err(failure) => return Err(request::broke_off(&object, error::words(&failure))),
                }
            }
        })
        .await
    }

    pub(crate) async fn write(
        &self,
        operation: Operation,
        key: &str,
        body: Bytes,
        mut condition: WriteOptions,
    ) -> Result<Metadata, StoreError> {
        let object = self.describe(key);
        key::check(key, &object)?;
        let capability = self.operator.info().capability();
        condition.cache_control = capability.write_with_cache_control.then(|| "no-store".to_owned());
        condition.content_type = capability.write_with_content_type.then(|| "application/json".to_owned());
        self.ask(&object, async |operator| {
            let written = operator.write_options(key, body, condition).await;
            written.map_err(|failure| error::explain(operation, &object, &failure))
        })
        .await
    }

    pub(crate) async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let object = self.describe(key);
        key::check(key, &object)?;
        self.ask(&object, async |operator| match operator.delete(key).await {
            Err(failure) if error::is_absent(&failure) => Ok(()),
            removed => removed.map_err(|failure| error::explain(Operation::Delete, &object, &failure)),
        })
        .await
    }

    /// Returns the keys that start with `prefix`, sorted. `after` saves the transfer of smaller keys if it can.
    pub(crate) async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<String>, StoreError> {
        let object = self.describe(prefix);
        let folder = key::folder(prefix, &object)?;
        let can_skip = self.operator.info().capability().list_with_start_after;
        let start_after = after.filter(|_| can_skip).map(ToOwned::to_owned);
        let options = ListOptions { recursive: true, start_after, ..ListOptions::default() };
        let explain = |failure| error::explain(Operation::List, &object, &failure);
        let listing = self.connected.ask(&object, async |operator| {
            let listing = bounded(self.request_timeout, &object, async {
                match operator.lister_options(folder, options).await {
                    Err(failure) if error::is_absent(&failure) => Ok(None),
                    lister => lister.map(Some).map_err(explain),
                }
            });
            let mut keys = Listing::new(&*object);
            let Some(mut lister) = listing.await? else { return Ok(Vec::new()) };
            loop {
                let entry = bounded(self.request_timeout, &object, async {
                    match lister.try_next().await {
                        // A directory that is missing has no files.
                        Err(failure) if error::is_absent(&failure) => Ok(None),
                        entry => entry.map_err(explain),
                    }
                });
                let Some(entry) = entry.await? else { return Ok(ListedObject::keys(keys.sorted())) };
                if entry.metadata().is_file() && entry.path().starts_with(prefix) {
                    keys.add(ListedObject::new(entry.path(), None))?;
                }
            }
        });
        listing.await
    }

    /// Google accepts about one write per second to an object.
    pub(crate) fn min_write_interval(&self) -> Option<Duration> {
        (self.operator.info().scheme() == "gcs").then_some(Duration::from_secs(1))
    }

    pub(crate) fn show(&self, shown: &mut DebugStruct<'_, '_>) -> fmt::Result {
        shown.field("service", &self.describe("")).field("request_timeout", &self.request_timeout).finish()
    }
}
