//! The count itself, with the processes as tasks.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderHandle, MemoryStore, ObjectLock,
    Session,
};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::case::{Case, Way};
use crate::counted::{Client, HOUR, Pace, Requests};
use crate::switchboard::Switchboard;

/// The time before the count, in which all locks are taken and every process has read all of them.
const WARM_UP: Duration = Duration::from_secs(120);

/// The largest number of leases' electors that are counted for a whole hour. More electors are counted for a part of an
/// hour, so that a count takes minutes at most.
const ELECTORS_FOR_AN_HOUR: usize = 10_000;

impl Case {
    /// Counts the requests of an hour in which nothing happens: every lock keeps its leader.
    ///
    /// # Panics
    ///
    /// If a lock has no leader, or more than one.
    #[must_use]
    pub fn count(self) -> Requests {
        self.count_with(None)
    }

    /// Counts the same where the processes send each other messages.
    ///
    /// # Panics
    ///
    /// If a lock has no leader, or more than one.
    #[must_use]
    pub fn count_with_messages(self) -> Requests {
        self.count_with(Some(&Switchboard::default()))
    }

    fn count_with(self, board: Option<&Switchboard>) -> Requests {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let store = Client::new(Arc::new(MemoryStore::new()), Pace::default());
            let fleet = Fleet::start(self, &store, board);
            sleep(WARM_UP).await;
            assert!(fleet.is_stable(), "not every lock has one leader: {self}");
            let before = store.requests();
            let share = self.share_of_an_hour();
            sleep(HOUR / share).await;
            assert!(fleet.is_stable(), "not every lock has kept its leader: {self}");
            store.requests().since(before, share.into())
        })
    }

    /// The part of an hour that is counted, as a divisor.
    fn share_of_an_hour(self) -> u32 {
        match self.way {
            Way::Leases => {
                let share = (self.locks * self.processes).div_ceil(ELECTORS_FOR_AN_HOUR);
                u32::try_from(share).expect("a small number")
            }
            // A session's requests do not depend on the number of its locks, so an hour of them is soon counted.
            Way::Sessions => 1,
        }
    }
}

/// Running processes. Dropping them stops everything.
struct Fleet {
    locks: usize,
    handles: Vec<LeaderHandle>,
    tasks: JoinSet<()>,
}

impl Fleet {
    fn start(case: Case, store: &Client, board: Option<&Switchboard>) -> Self {
        let mut fleet = Self { locks: case.locks, handles: Vec::new(), tasks: JoinSet::new() };
        for process in 0..case.processes {
            match case.way {
                Way::Leases => fleet.start_leases(store, process),
                Way::Sessions => fleet.start_session(store, process, board),
            }
        }
        fleet
    }

    fn start_leases(&mut self, store: &Client, process: usize) {
        for lock in 0..self.locks {
            let object = ObjectLock::new(store.clone(), format!("locks/{lock}"), format!("node-{process}"));
            let seed = (process * self.locks + lock) as u64;
            let config = LeaderElectionConfig::builder(object, callbacks()).clock(TokioClock::new()).seed(seed);
            let elector = DefaultLeaderElector::new(config.build().expect("settings"));
            self.handles.push(elector.handle());
            self.tasks.spawn(async move {
                elector.campaign(pending()).await.expect("a store without faults");
            });
        }
    }

    fn start_session(&mut self, store: &Client, process: usize, board: Option<&Switchboard>) {
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
                elector.campaign(pending()).await.expect("no store check");
            });
        }
        self.tasks.spawn(async move {
            session.run(pending()).await.expect("no store check");
        });
    }

    /// Returns `true` if every lock has one leader.
    fn is_stable(&self) -> bool {
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
