//! The contenders: processes, each behind a network of its own.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leaderelection::Timings;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection_arena::fenced_log::{Entry, FencedLog};
use leaderelection_arena::process::Process;
use leaderelection_arena::report::Report;
use leaderelection_backends::file::FileStore;
use leaderelection_integration_tests::adapted::{self, Adapted, By};
use leaderelection_integration_tests::history;
use leaderelection_integration_tests::place::Place;
use leaderelection_integration_tests::proxy::{Fault, Proxy};
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::timings;
use rustix::process::Signal;
use tempfile::{NamedTempFile, TempDir};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

use super::verdict::Said;
use crate::cloud::Cloud;

const PATIENCE: Duration = Duration::from_secs(120);

/// The place of the lock.
pub(super) enum Site {
    /// The places of the parts of one lock, or of the whole.
    Clouds(Vec<Arc<Cloud>>),
    Directory(TempDir, Layout),
}

/// The layout of a lock in a directory.
#[derive(Clone, Copy)]
pub(super) enum Layout {
    /// That of `FileStore`.
    File,
    /// One object per write. Every write removes all earlier ones at once.
    CreateOnly,
    /// The same, by the service `fs` of `opendal`.
    Opendal,
}

impl Site {
    pub(super) fn cloud(cloud: Arc<Cloud>) -> Self {
        Self::Clouds(vec![cloud])
    }

    pub(super) fn directory(layout: Layout) -> Self {
        Self::Directory(tempfile::tempdir().expect("a directory"), layout)
    }
}

impl Layout {
    /// The place of a lock, for another process.
    fn place(self, directory: &Path, key: &str) -> Place {
        let path = directory.display();
        let url = match self {
            Self::File => format!("file://{path}/{key}"),
            Self::CreateOnly => format!("sequenced+file://{path}/{key}?keep=1"),
            Self::Opendal => {
                let place = adapted::Place::Directory { path: directory.to_owned(), keep: 1 };
                return Place::Adapted(Adapted { by: By::Opendal, place, retries: false, key: key.to_owned() });
            }
        };
        Place::Url(url.parse().expect("a URL"))
    }
}

pub(super) struct Cluster {
    site: Site,
    /// The keys of the parts, of which the first has the log beside it.
    keys: Vec<String>,
    timings: Timings,
    contenders: Vec<Contender>,
    processes: usize,
    said: Arc<watch::Sender<Vec<Said>>>,
    /// The calls of all contenders, for the judge in another language.
    history: NamedTempFile,
    /// The place of the log if the lock's store takes no other bodies than records.
    log: Option<TempDir>,
}

struct Contender {
    identity: String,
    /// The number of the process: every process has a different number.
    number: usize,
    process: Process,
    /// The proxies of a contender, one for each cloud.
    proxies: Vec<Proxy>,
    is_frozen: bool,
    is_cut_off: bool,
}

impl Cluster {
    pub(super) async fn start(site: Site, size: usize) -> Self {
        let quick = timings(3000, 2000, 300);
        let (keys, timings) = match &site {
            Site::Clouds(clouds) => (
                clouds.iter().map(|cloud| cloud.key()).collect(),
                clouds.iter().fold(quick, |timings, cloud| cloud.timings(timings)),
            ),
            Site::Directory(..) => (vec![unique_name()], quick),
        };
        let log = match &site {
            // A log in one of several clouds would be lost with it.
            Site::Clouds(clouds) if clouds.len() > 1 || clouds[0].holds_only_records() => {
                Some(tempfile::tempdir().expect("a directory"))
            }
            _ => None,
        };
        let history = NamedTempFile::new().expect("a file");
        let mut cluster =
            Self { site, keys, timings, contenders: Vec::new(), processes: 0, said: Arc::default(), history, log };
        for slot in 0..size {
            let proxies = match &cluster.site {
                Site::Clouds(clouds) => join_all(clouds.iter().map(|cloud| cloud.proxy())).await,
                Site::Directory(..) => Vec::new(),
            };
            let identity = format!("contender-{slot}");
            let (number, process) = cluster.spawn(&identity, &proxies);
            let contender = Contender { identity, number, process, proxies, is_frozen: false, is_cut_off: false };
            cluster.contenders.push(contender);
        }
        cluster
    }

    fn spawn(&mut self, identity: &str, proxies: &[Proxy]) -> (usize, Process) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_contender"));
        let first = match &self.site {
            Site::Clouds(clouds) => {
                let mut urls = VecDeque::new();
                for ((cloud, proxy), key) in clouds.iter().zip(proxies).zip(&self.keys) {
                    let (url, environment) = cloud.url_by(proxy, key);
                    urls.push_back(url);
                    command.envs(environment);
                }
                let first = urls.pop_front().expect("a cloud");
                command.args(urls.into_iter().map(|url| format!("--part={url}")));
                first
            }
            Site::Directory(directory, layout) => layout.place(directory.path(), &self.keys[0]).to_string(),
        };
        command
            .args([&first, identity])
            .arg(serde_json::to_string(&self.timings).expect("timings as JSON"))
            .arg("--history")
            .arg(self.history.path());
        if let Some(log) = &self.log {
            command.arg(format!("--log=file://{}/log", log.path().display()));
        }
        self.processes += 1;
        let (number, said) = (self.processes, Arc::clone(&self.said));
        let hear = move |report| {
            if let Some(report) = report {
                said.send_modify(|said| said.push(Said { process: number, report }));
            }
        };
        (number, Process::start(command, hear).expect("a process"))
    }

    pub(super) fn timings(&self) -> Timings {
        self.timings
    }

    pub(super) fn size(&self) -> usize {
        self.contenders.len()
    }

    /// Returns the last reported leader, if its window may still be open.
    pub(super) fn leader(&self) -> Option<usize> {
        let said = self.said.borrow();
        let last = said.iter().rev().find(|said| matches!(said.report, Report::Inside { .. }))?;
        let Report::Inside { until, .. } = last.report else { return None };
        let slot = self.contenders.iter().position(|contender| contender.number == last.process)?;
        (until > SystemClock.now()).then_some(slot)
    }

    pub(super) fn proxies(&self, slot: usize) -> &[Proxy] {
        &self.contenders[slot].proxies
    }

    /// The number of clouds.
    pub(super) fn parts(&self) -> usize {
        self.contenders[0].proxies.len()
    }

    /// Lets no contender reach a part of the lock any more.
    pub(super) fn lose_part(&self, part: usize, outage: Fault) {
        self.contenders.iter().for_each(|contender| contender.proxies[part].set_outage(Some(outage)));
    }

    /// Lets all contenders reach a part again, but for those that are cut off.
    pub(super) async fn find_part(&self, part: usize) {
        for contender in self.contenders.iter().filter(|contender| !contender.is_cut_off) {
            contender.proxies[part].forget_faults();
            contender.proxies[part].deliver_held().await;
        }
    }

    /// Returns the contenders that are frozen or cut off.
    pub(super) fn unwell(&self) -> Vec<usize> {
        let is_unwell = |slot: &usize| self.contenders[*slot].is_frozen || self.contenders[*slot].is_cut_off;
        (0..self.size()).filter(is_unwell).collect()
    }

    pub(super) fn freeze(&mut self, slot: usize) {
        self.signal(slot, Signal::STOP);
        self.contenders[slot].is_frozen = true;
    }

    pub(super) fn cut_off(&mut self, slot: usize, outage: Fault) {
        let contender = &mut self.contenders[slot];
        contender.proxies.iter().for_each(|proxy| proxy.set_outage(Some(outage)));
        contender.is_cut_off |= !contender.proxies.is_empty();
    }

    /// Continues a contender, and delivers the requests that its network held.
    pub(super) async fn cure(&mut self, slot: usize) {
        if std::mem::take(&mut self.contenders[slot].is_frozen) {
            self.signal(slot, Signal::CONT);
        }
        self.contenders[slot].is_cut_off = false;
        for proxy in &self.contenders[slot].proxies {
            proxy.forget_faults();
            proxy.deliver_held().await;
        }
    }

    /// Kills a contender, and starts it again under the same name or another.
    pub(super) async fn kill(&mut self, slot: usize, under_the_same_name: bool) {
        self.signal(slot, Signal::KILL);
        self.contenders[slot].process.wait().await.expect("it ends");
        if !under_the_same_name {
            self.contenders[slot].identity.push('\'');
        }
        self.start_again(slot);
    }

    /// Ends a contender in good order, and starts it again.
    pub(super) async fn let_go(&mut self, slot: usize) {
        if self.contenders[slot].is_frozen {
            self.cure(slot).await;
        }
        self.end(slot).await;
        self.start_again(slot);
    }

    fn start_again(&mut self, slot: usize) {
        let contender = &mut self.contenders[slot];
        let (identity, proxies) = (contender.identity.clone(), std::mem::take(&mut contender.proxies));
        let (number, process) = self.spawn(&identity, &proxies);
        let contender = &mut self.contenders[slot];
        *contender = Contender { identity, number, process, proxies, is_frozen: false, ..*contender };
    }

    async fn end(&mut self, slot: usize) {
        self.signal(slot, Signal::TERM);
        let ended = timeout(PATIENCE, self.contenders[slot].process.wait()).await;
        let status = ended.expect("it ends in time").expect("it is our child");
        // The signal may arrive before the process has installed its handler.
        let killed = status.signal() == Some(Signal::TERM.as_raw());
        assert!(status.success() || killed, "a contender ended with {status}");
    }

    pub(super) async fn calm_down(&mut self) {
        for slot in 0..self.size() {
            self.cure(slot).await;
        }
    }

    pub(super) async fn let_all_go(&mut self) {
        for slot in 0..self.size() {
            self.end(slot).await;
        }
    }

    fn signal(&self, slot: usize, signal: Signal) {
        self.contenders[slot].process.signal(signal).expect("a signal");
    }

    pub(super) fn said(&self) -> Vec<Said> {
        self.said.borrow().clone()
    }

    /// Waits for a matching report, and returns the first one.
    pub(super) async fn wait_for(&self, what: &str, is_it: impl Fn(&Report) -> bool) -> Report {
        self.wait_behind(0, what, is_it).await
    }

    /// Waits for a matching report from now on.
    pub(super) async fn wait_for_more(&self, what: &str, is_it: impl Fn(&Report) -> bool) -> Report {
        let heard = self.said.borrow().len();
        self.wait_behind(heard, what, is_it).await
    }

    async fn wait_behind(&self, heard: usize, what: &str, is_it: impl Fn(&Report) -> bool) -> Report {
        let find = |said: &Vec<Said>| said[heard..].iter().map(|said| said.report.clone()).find(|report| is_it(report));
        let mut said = self.said.subscribe();
        match timeout(PATIENCE, said.wait_for(|said| find(said).is_some())).await {
            Ok(said) => find(&said.expect("kept")).expect("found before"),
            Err(_) => panic!("in vain: {what}"),
        }
    }

    /// Lets the judge look at the calls of all contenders.
    pub(super) fn judge(&self) {
        match &self.site {
            Site::Clouds(clouds) => clouds[0].judge_calls(self.history.path()),
            Site::Directory(..) => history::judge(self.history.path(), false),
        }
    }

    /// Reads the log without a proxy.
    pub(super) async fn log(&self) -> Vec<Entry> {
        if let Some(log) = &self.log {
            return FencedLog::new(Arc::new(FileStore::new(log.path())), "log").entries().await.expect("a log");
        }
        let store = match &self.site {
            Site::Clouds(clouds) => clouds[0].store().await,
            Site::Directory(directory, layout) => {
                layout.place(directory.path(), &self.keys[0]).open().await.expect("a store").0
            }
        };
        FencedLog::new(store, format!("{}-log", self.keys[0])).entries().await.expect("a log")
    }

    /// Deletes the objects of the test, because a real bucket belongs to others.
    pub(super) async fn clear(&self) {
        if let Site::Clouds(clouds) = &self.site {
            join_all(clouds.iter().map(|cloud| cloud.clear())).await;
        }
    }
}
