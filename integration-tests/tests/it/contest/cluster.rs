//! The contenders: processes, each behind a network of its own.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use leaderelection::Timings;
use leaderelection::clock::{Clock as _, LocalInstant, SystemClock};
use leaderelection_arena::fenced_log::{Entry, FencedLog};
use leaderelection_arena::process::Process;
use leaderelection_arena::report::Report;
use leaderelection_backends::file::FileStore;
use leaderelection_integration_tests::history;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Proxy, Reply};
use leaderelection_integration_tests::servers::unique_name;
use leaderelection_integration_tests::timings;
use rustix::process::Signal;
use tempfile::{NamedTempFile, TempDir};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

use super::CONTENDERS;
use super::host::{Host, Loss};
use super::site::Site;
use super::troubles::{Troubles, Whom};
use super::verdict::Said;

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Cluster {
    site: Site,
    /// The keys of the parts, of which the first has the log beside it.
    keys: Vec<String>,
    timings: Timings,
    contenders: Vec<Contender>,
    said: Arc<watch::Sender<Vec<Said>>>,
    /// The calls of all contenders, for the judge in another language.
    history: NamedTempFile,
    /// The place of the log if the lock's store takes no other bodies than records.
    log: Option<TempDir>,
    /// The servers of the parts, if the contest may end them.
    hosts: Vec<Host>,
    /// The way in which each part is lost; `None` for a part that answers.
    lost: Vec<Option<Loss>>,
    troubles: Troubles,
    /// The slot of each process, by its number.
    slots: Vec<usize>,
    /// The pause between two entries of a leader, if it is not the contender's own.
    rest: Option<Duration>,
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
        Self::start_with(site, Vec::new(), size, timings(3000, 2000, 300), None).await
    }

    /// Starts contenders on servers that may be killed and frozen.
    pub(super) async fn start_on(hosts: Vec<Host>, size: usize, timings: Timings, rest: Option<Duration>) -> Self {
        let site = Site::Clouds(hosts.iter().map(|host| Arc::clone(&host.cloud)).collect());
        Self::start_with(site, hosts, size, timings, rest).await
    }

    pub(super) async fn start_with(
        site: Site,
        hosts: Vec<Host>,
        size: usize,
        quick: Timings,
        rest: Option<Duration>,
    ) -> Self {
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
        let mut cluster = Self {
            lost: vec![None; keys.len()],
            site,
            keys,
            timings,
            contenders: Vec::new(),
            said: Arc::default(),
            history,
            log,
            hosts,
            troubles: Troubles::default(),
            slots: Vec::new(),
            rest,
        };
        for slot in 0..size {
            let proxies = match &cluster.site {
                Site::Clouds(clouds) => join_all(clouds.iter().map(|cloud| cloud.proxy())).await,
                Site::Directory(..) => Vec::new(),
            };
            let identity = format!("contender-{slot}");
            let (number, process) = cluster.spawn(slot, &identity, &proxies);
            let contender = Contender { identity, number, process, proxies, is_frozen: false, is_cut_off: false };
            cluster.contenders.push(contender);
        }
        cluster
    }

    fn spawn(&mut self, slot: usize, identity: &str, proxies: &[Proxy]) -> (usize, Process) {
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
        if let Some(rest) = self.rest {
            command.arg(format!("--rest={}", rest.as_millis()));
        }
        let (number, said) = (self.slots.len(), Arc::clone(&self.said));
        self.slots.push(slot);
        let on_report = move |report| {
            if let Some(report) = report {
                said.send_modify(|said| said.push(Said { process: number, report }));
            }
        };
        (number, Process::start(command, on_report).expect("a process"))
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

    /// The proxies of the contender in a slot, one for each cloud.
    pub(super) fn proxies(&self, slot: usize) -> &[Proxy] {
        &self.contenders[slot].proxies
    }

    /// The number of clouds.
    pub(super) fn parts(&self) -> usize {
        self.proxies(0).len()
    }

    /// Takes a part of the lock away from all contenders.
    pub(super) fn lose_part(&mut self, part: usize, loss: Loss) {
        let began = SystemClock.now();
        let cuts = match loss {
            Loss::CutOff(outage) => Some(outage),
            Loss::Killed if self.hosts[part].ends_gracefully() => Some(Fault::new(Delivery::Never, Reply::Cut)),
            _ => None,
        };
        if let Some(outage) = cuts {
            self.contenders.iter().for_each(|contender| contender.proxies[part].set_outage(Some(outage)));
        }
        match loss {
            Loss::CutOff(_) => {}
            Loss::Killed => self.hosts[part].kill(),
            Loss::Frozen => self.hosts[part].freeze(),
        }
        self.lost[part] = Some(loss);
        self.troubles.begin(Whom::Part(part), began);
    }

    /// Lets all contenders reach a part again, but for those that are cut off.
    pub(super) async fn find_part(&mut self, part: usize) {
        let healing = SystemClock.now();
        match self.lost[part].take() {
            Some(Loss::Killed) => {
                timeout(PATIENCE, self.hosts[part].start_again()).await.expect("a server that writes")
            }
            Some(Loss::Frozen) => timeout(PATIENCE, self.hosts[part].thaw()).await.expect("a server that writes"),
            Some(Loss::CutOff(_)) | None => {}
        }
        for contender in self.contenders.iter().filter(|contender| !contender.is_cut_off) {
            contender.proxies[part].forget_faults();
            contender.proxies[part].deliver_held().await;
        }
        self.troubles.end(Whom::Part(part), healing);
    }

    pub(super) fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// The slot of a process.
    pub(super) fn slot(&self, process: usize) -> usize {
        self.slots[process]
    }

    /// Returns the contenders that are frozen or cut off.
    pub(super) fn unwell(&self) -> Vec<usize> {
        let is_unwell = |slot: &usize| self.contenders[*slot].is_frozen || self.contenders[*slot].is_cut_off;
        (0..self.size()).filter(is_unwell).collect()
    }

    pub(super) fn freeze(&mut self, slot: usize) {
        let began = SystemClock.now();
        self.signal(slot, Signal::STOP);
        self.contenders[slot].is_frozen = true;
        self.troubles.begin(Whom::Contender(slot), began);
    }

    pub(super) fn cut_off(&mut self, slot: usize, outage: Fault) {
        let began = SystemClock.now();
        let contender = &mut self.contenders[slot];
        contender.proxies.iter().for_each(|proxy| proxy.set_outage(Some(outage)));
        contender.is_cut_off |= !contender.proxies.is_empty();
        self.troubles.begin(Whom::Contender(slot), began);
    }

    /// Spoils some requests of a contender, by one of its networks.
    pub(super) fn spoil(&mut self, slot: usize, part: usize, spoil: impl FnOnce(&Proxy)) {
        let began = SystemClock.now();
        spoil(&self.contenders[slot].proxies[part]);
        self.troubles.begin(Whom::Contender(slot), began);
    }

    /// Continues a contender, and delivers the requests that its network held.
    pub(super) async fn cure(&mut self, slot: usize) {
        let healing = SystemClock.now();
        if std::mem::take(&mut self.contenders[slot].is_frozen) {
            self.signal(slot, Signal::CONT);
        }
        self.contenders[slot].is_cut_off = false;
        for (proxy, lost) in self.contenders[slot].proxies.iter().zip(&self.lost) {
            proxy.forget_faults();
            match lost {
                Some(Loss::CutOff(outage)) => proxy.set_outage(Some(*outage)),
                // A server that stands still would never answer. `find_part` delivers these.
                Some(Loss::Frozen | Loss::Killed) => {}
                None => drop(proxy.deliver_held().await),
            }
        }
        self.troubles.end(Whom::Contender(slot), healing);
    }

    /// Kills a contender, and starts it again under the same name or another.
    pub(super) async fn kill(&mut self, slot: usize, under_the_same_name: bool) {
        let began = SystemClock.now();
        self.signal(slot, Signal::KILL);
        self.contenders[slot].process.wait().await.expect("it ends");
        if !under_the_same_name {
            self.contenders[slot].identity.push('\'');
        }
        self.start_again(slot, began);
    }

    /// Ends a contender gracefully, and starts it again.
    pub(super) async fn let_go(&mut self, slot: usize) {
        if self.contenders[slot].is_frozen {
            self.cure(slot).await;
        }
        let began = SystemClock.now();
        self.end(slot).await;
        self.start_again(slot, began);
    }

    /// Starts a contender in the place of one that has ended since `began`.
    fn start_again(&mut self, slot: usize, began: LocalInstant) {
        let contender = &mut self.contenders[slot];
        let (identity, proxies) = (contender.identity.clone(), std::mem::take(&mut contender.proxies));
        let (number, process) = self.spawn(slot, &identity, &proxies);
        let contender = &mut self.contenders[slot];
        *contender = Contender { identity, number, process, proxies, is_frozen: false, ..*contender };
        self.troubles.passed(Whom::Contender(slot), began);
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
        let reported = self.said.borrow().len();
        self.wait_behind(reported, what, is_it).await
    }

    async fn wait_behind(&self, reported: usize, what: &str, is_it: impl Fn(&Report) -> bool) -> Report {
        let find =
            |said: &Vec<Said>| said[reported..].iter().map(|said| said.report.clone()).find(|report| is_it(report));
        let mut said = self.said.subscribe();
        match timeout(PATIENCE, said.wait_for(|said| find(said).is_some())).await {
            Ok(said) => find(&said.expect("kept")).expect("found before"),
            Err(_) => {
                let calls = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("calls-{}", unique_name()));
                fs::copy(self.history.path(), &calls).expect("a copy");
                let said = self.said.borrow();
                let last = &said[said.len().saturating_sub(CONTENDERS * 4)..];
                panic!("in vain: {what}; parts lost: {:?}; calls: {}; reports: {last:#?}", self.lost, calls.display());
            }
        }
    }

    /// Lets the judge check the calls of all contenders.
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
