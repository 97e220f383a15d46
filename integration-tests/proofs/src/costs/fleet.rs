//! The processes of a count, as tasks.

use leaderelection::clock::TokioClock;
use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, ObjectLock, Session};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::case::{Case, Way};
use super::store::Counted;
use crate::switchboard::Switchboard;

/// Running processes. Dropping them stops everything.
pub(super) struct Fleet {
    locks: usize,
    handles: Vec<LeaderHandle>,
    tasks: JoinSet<()>,
}

impl Fleet {
    pub(super) fn start(case: Case, store: &Counted, board: Option<&Switchboard>) -> Self {
        let mut fleet = Self { locks: case.locks, handles: Vec::new(), tasks: JoinSet::new() };
        for process in 0..case.processes {
            match case.way {
                Way::Leases => fleet.start_leases(store, process),
                Way::Sessions => fleet.start_session(store, process, board),
            }
        }
        fleet
    }

    fn start_leases(&mut self, store: &Counted, process: usize) {
        for lock in 0..self.locks {
            let object = ObjectLock::new(store.clone(), format!("locks/{lock}"), format!("node-{process}"));
            let seed = (process * self.locks + lock) as u64;
            let config = LeaderElectionConfig::builder(object, callbacks()).clock(TokioClock::new()).seed(seed);
            let elector = DefaultLeaderElector::new(config.build().expect("settings"));
            self.handles.push(elector.handle());
            self.tasks.spawn(async move {
                elector.campaign(CancellationToken::new()).await.expect("a store without faults");
            });
        }
    }

    fn start_session(&mut self, store: &Counted, process: usize, board: Option<&Switchboard>) {
        let session = Session::builder(store.clone(), "fleet", format!("node-{process}"));
        let session = session.clock(TokioClock::new()).seed(process as u64).build().expect("settings");
        if let Some(board) = board {
            let connected = board.connect(&session);
            self.tasks.spawn(async move { connected.await.expect("a task that is not aborted") });
        }
        for lock in 0..self.locks {
            let elector = session.elector(lock.to_string(), callbacks()).expect("a new name");
            self.handles.push(elector.handle());
            self.tasks.spawn(async move {
                elector.campaign(CancellationToken::new()).await.expect("no store check");
            });
        }
        self.tasks.spawn(async move {
            session.run(CancellationToken::new()).await.expect("no store check");
        });
    }

    /// Returns `true` if every lock has one leader.
    pub(super) fn is_settled(&self) -> bool {
        let mut leaders = vec![0; self.locks];
        for (index, handle) in self.handles.iter().enumerate() {
            leaders[index % self.locks] += usize::from(handle.is_leader());
        }
        leaders.iter().all(|leaders| *leaders == 1)
    }
}

fn callbacks() -> LeaderCallbacks {
    LeaderCallbacks::new().on_start_leading(|leadership| async move { leadership.lost().await })
}
