//! A store with versions as Google has them, whose client repeats writes, and whose answers may be wrong.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// The fault of one write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The write is not committed, and is answered so.
    Answered(fn() -> Error),
    /// The write is committed, and is answered so.
    CommitsAnd(fn() -> Error),
    /// The write is committed twice, and the second answer is the one that is passed on.
    Repeated,
    /// The client waits before it sends the next attempt, and there is always a next one.
    RepeatedForEver,
}

/// A call, until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn count(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(running))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) struct Faulty {
    inner: InMemory,
    faults: Mutex<VecDeque<Fault>>,
    attempts: watch::Sender<usize>,
    running: Arc<AtomicUsize>,
}

impl Faulty {
    pub(super) fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::on(InMemory::new(), faults)
    }

    /// A client of a store that others use, too.
    pub(super) fn on(inner: InMemory, faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = Mutex::new(faults.into_iter().collect());
        Self { inner, faults, attempts: watch::Sender::default(), running: Arc::default() }
    }

    /// The number of calls that have neither an answer nor been given up.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// The number of writes that were sent.
    pub(super) fn attempts(&self) -> usize {
        *self.attempts.borrow()
    }

    pub(super) async fn wait_for_attempts(&self, wanted: usize) {
        let mut attempts = self.attempts.subscribe();
        let waiting = attempts.wait_for(|attempts| *attempts >= wanted);
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("attempts in time").expect("kept");
    }

    async fn attempt(&self, location: &Path, payload: PutPayload, options: &PutOptions) -> Result<PutResult> {
        self.attempts.send_modify(|attempts| *attempts += 1);
        let mut options = options.clone();
        if let PutMode::Update(expected) = &mut options.mode {
            // Only the version counts.
            let version = expected.version.take();
            expected.e_tag = version.and_then(|version| Some(format!("\"{}\"", version.strip_prefix('v')?)));
        }
        self.inner.put_opts(location, payload, options).await.map(|mut written| {
            written.version = version(written.e_tag.as_deref());
            written
        })
    }
}

fn version(e_tag: Option<&str>) -> Option<String> {
    Some(format!("v{}", e_tag?.trim_matches('"')))
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let _running = Running::count(&self.running);
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::Answered(error)) => {
                self.attempts.send_modify(|attempts| *attempts += 1);
                Err(error())
            }
            Some(Fault::CommitsAnd(error)) => {
                self.attempt(location, payload, &options).await?;
                Err(error())
            }
            Some(Fault::Repeated) => {
                self.attempt(location, payload.clone(), &options).await?;
                self.attempt(location, payload, &options).await
            }
            Some(Fault::RepeatedForEver) => loop {
                self.attempts.send_modify(|attempts| *attempts += 1);
                tokio::time::sleep(Duration::from_millis(1)).await;
            },
            None => self.attempt(location, payload, &options).await,
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await.map(|mut found| {
            found.meta.version = version(found.meta.e_tag.as_deref());
            found
        })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("a record is small")
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
