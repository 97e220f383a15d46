//! The parts of a session that its locks need.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::line::Line;
use super::settings::Settings;
use crate::elector::new_leader::CallbackPool;
use crate::handle::status::StatusWriter;
use crate::util::sync::Mutex;

/// The settings of a session, and the way of news from its locks to its driver.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) settings: Settings,
    pub(super) identity: Arc<str>,
    pub(super) pool: Arc<CallbackPool>,
    /// The errors of the session, which are those of all its locks.
    pub(super) status: StatusWriter,
    pub(super) line: Line,
    /// Rings when the driver has something to attend to.
    pub(super) bell: Notify,
    /// The names of the locks whose terms have news.
    news: Mutex<VecDeque<Arc<str>>>,
}

impl Common {
    pub(super) fn new(settings: Settings) -> Self {
        let identity = settings.rules.election.identity.as_str().into();
        let (pool, status) = (Arc::default(), StatusWriter::new());
        Self { settings, identity, pool, status, line: Line::new(), bell: Notify::new(), news: Mutex::default() }
    }

    /// Tells the driver that the term of a lock may have news.
    pub(super) fn term_has_news(&self, lock: &Arc<str>) {
        self.news.lock().push_back(Arc::clone(lock));
        // One ring is enough for many locks: the driver takes all news before it waits again.
        self.bell.notify_one();
    }

    /// The next lock whose term may have news.
    pub(super) fn next_news(&self) -> Option<Arc<str>> {
        self.news.lock().pop_front()
    }

    /// Forgets the news of terms that an earlier run has left open.
    pub(super) fn forget_news(&self) {
        self.news.lock().clear();
    }
}
