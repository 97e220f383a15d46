//! The objects under a prefix, told apart: locks, and the sessions that hold some of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use leaderelection::admin::Target;
use leaderelection::{ConditionalStore, LockError, VersionedRecord};

use crate::lock::PrefixUrl;
use crate::output::Output;
use crate::view::{SessionObject, SessionRow, View};

/// The number of objects that are read at the same time.
const AT_A_TIME: usize = 16;

/// The locks by their keys, and the sessions.
pub(super) struct Found {
    pub(super) locks: Vec<(String, View)>,
    pub(super) sessions: Vec<SessionRow>,
}

type Read = Result<Option<VersionedRecord>, LockError>;

/// The sessions that were read, by their keys.
#[derive(Default)]
struct Sessions(BTreeMap<String, (Target, Read)>);

impl Found {
    /// Reads every object once.
    pub(super) async fn read(
        prefix: &PrefixUrl,
        store: &Arc<dyn ConditionalStore>,
        keys: Vec<String>,
        output: &Output,
    ) -> Self {
        let mut sessions = Sessions::default();
        let mut locks = Vec::new();
        for (target, read) in read_all(keys.into_iter().map(|key| Target::new(Arc::clone(store), key)), output).await {
            if record(&read).is_some_and(|found| target.session_id(&found.record).is_some()) {
                sessions.add(target, read);
            } else {
                locks.push((target, read));
            }
        }
        // A lock may name a session that is not under the prefix.
        let unread = locks.iter().flat_map(|(lock, read)| sessions.unread(lock, read));
        let unread: BTreeMap<String, Target> = unread.map(|target| (target.key().to_owned(), target)).collect();
        for (target, read) in read_all(unread.into_values(), output).await {
            sessions.add(target, read);
        }
        let mut held = BTreeMap::new();
        let locks = locks.into_iter().map(|(lock, read)| {
            let session = sessions.of(&lock, &read);
            if let Some((session, _)) = session {
                *held.entry(session.key().to_owned()).or_default() += 1;
            }
            (prefix.shown(lock.key()).to_owned(), view(prefix, &lock, read, session))
        });
        Self { locks: locks.collect(), sessions: sessions.rows(prefix, &held) }
    }
}

impl Sessions {
    fn add(&mut self, target: Target, read: Read) {
        self.0.insert(target.key().to_owned(), (target, read));
    }

    /// The objects that have to be read to find the session that a lock names.
    fn unread(&self, lock: &Target, read: &Read) -> Vec<Target> {
        let known = self.of(lock, read).is_some_and(|(_, session)| record(session).is_some());
        let places = if known { Vec::new() } else { places(lock, read) };
        places.into_iter().filter(|target| !self.0.contains_key(target.key())).collect()
    }

    /// The session that a lock names.
    fn of(&self, lock: &Target, read: &Read) -> Option<(&Target, &Read)> {
        let mut read = places(lock, read).into_iter().filter_map(|target| self.0.get(target.key()));
        let first = read.next()?;
        let (target, found) =
            std::iter::once(first).chain(read).find(|(_, read)| record(read).is_some()).unwrap_or(first);
        Some((target, found))
    }

    fn rows(&self, prefix: &PrefixUrl, held: &BTreeMap<String, usize>) -> Vec<SessionRow> {
        let row = |(key, (target, read)): (&String, &(Target, Read))| {
            let record = &record(read)?.record;
            let row = SessionRow::of_record(&prefix.at(key), target.session_id(record)?, record);
            Some(SessionRow { locks: Some(held.get(key).copied().unwrap_or_default()), ..row })
        };
        self.0.iter().filter_map(row).collect()
    }
}

/// The places of the session that a lock names, likeliest first.
fn places(lock: &Target, read: &Read) -> Vec<Target> {
    let id = record(read).and_then(|found| found.record.session.as_ref());
    id.map(|id| lock.sessions(id).collect()).unwrap_or_default()
}

fn record(read: &Read) -> Option<&VersionedRecord> {
    read.as_ref().ok()?.as_ref()
}

async fn read_all(targets: impl ExactSizeIterator<Item = Target>, output: &Output) -> Vec<(Target, Read)> {
    let count = targets.len();
    let reads = targets.map(|target| async move {
        let read = target.get().await;
        (target, read)
    });
    let mut reads = stream::iter(reads).buffered(AT_A_TIME);
    let mut all = Vec::with_capacity(count);
    while let Some(read) = reads.next().await {
        all.push(read);
        output.progress(format_args!("read {} of {count}", all.len()));
    }
    all
}

/// The view of a lock. An object that cannot be read does not hide the others.
fn view(prefix: &PrefixUrl, lock: &Target, read: Read, session: Option<(&Target, &Read)>) -> View {
    let url = prefix.at(lock.key());
    let view = View::of(&url, read).unwrap_or_else(|failure| View::unreachable(&url, &failure));
    match session {
        Some((target, Ok(found))) => view.with_session(SessionObject::of(&prefix.at(target.key()), found.as_ref())),
        Some((_, Err(error))) => View { problem: Some(error.in_full()), ..view },
        None => view,
    }
}
