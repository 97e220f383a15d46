//! The smallest record of a session or a lock that the rules can tell apart.

use std::time::Duration;

use leaderelection_protocol::record::{Content, Record};
use leaderelection_protocol::session::{LockContent, SessionRecord};

use crate::kernel::{Id, TheJob};

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tiny {
    pub(super) holder: Option<Id>,
    pub(super) session: Option<Id>,
    pub(super) lease: Duration,
    pub(super) token: u64,
    pub(super) write_id: Option<Id>,
}

impl Record for Tiny {
    type Identity = Id;
    type WriteId = Id;
    type Version = Id;
    type Job = TheJob;
    type SessionId = Id;
    type Decoration = ();

    fn holder(&self) -> Option<&Id> {
        self.holder.as_ref()
    }

    fn lease_duration(&self) -> Duration {
        self.lease
    }

    fn token(&self) -> u64 {
        self.token
    }

    fn write_id(&self) -> Option<&Id> {
        self.write_id.as_ref()
    }

    fn preferred(&self) -> Option<&Id> {
        None
    }

    fn is_done(&self, _: &TheJob) -> bool {
        false
    }

    fn replacing(_: Option<&Self>, content: Content<'_, Self>, (): ()) -> Self {
        let Content { holder, lease_duration, token, write_id, .. } = content;
        Self { holder: holder.copied(), session: None, lease: lease_duration, token, write_id }
    }
}

impl SessionRecord for Tiny {
    fn session(&self) -> Option<Id> {
        self.session
    }

    fn session_lease(&self) -> Option<Duration> {
        self.session.map(|_| self.lease)
    }

    fn of_lock(content: LockContent<'_, Self>, (): ()) -> Self {
        let LockContent { holder, token, write_id } = content;
        let write_id = Some(write_id);
        match holder {
            Some((holder, session, lease)) => {
                Self { holder: Some(*holder), session: Some(*session), lease, token, write_id }
            }
            None => Self { holder: None, session: None, lease: Duration::ZERO, token, write_id },
        }
    }
}
