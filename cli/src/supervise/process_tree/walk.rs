//! The family on Linux: the processes below one process, as `/proc` shows them.
//!
//! A walk through `/proc` is no snapshot, and a process that forks meanwhile may escape it. Whoever must be sure walks
//! again, and asks the system at last: a process that adopts orphans and has no child has no descendant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid, waitpid,
};

use super::Below;
use crate::supervise::start::is_shortage;

/// A process, as it was when its entry was read.
#[derive(Debug)]
struct Process {
    pid: Pid,
    parent: i32,
    group: Option<Pid>,
    state: char,
    threads: u64,
    name: String,
}

impl Process {
    /// Reads `/proc/PID/stat`: `pid (name) state parent group …`. A name may contain anything, even `)`.
    fn parse(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = pid_of(fields.next()?);
        let threads = fields.nth(14)?.parse().ok()?;
        let name = name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
        Some(Self { pid: pid_of(pid)?, parent, group, state, threads, name })
    }

    /// A process whose first thread has ended looks like a zombie, although its other threads run.
    fn is_living(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }

    /// The user whose rights count.
    fn user(&self) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let id = ids.split_whitespace().nth(1)?;
        // The file, and not the system's name service: a directory server may take long to answer.
        let names = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let name = names.lines().map(|line| line.split(':').collect::<Vec<_>>()).find_map(|fields| match *fields {
            [name, _, of, ..] if of == id => Some(name.to_owned()),
            _ => None,
        });
        Some(name.unwrap_or_else(|| id.to_owned()))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.pid, self.name)?;
        if let Some(user) = self.user() {
            write!(f, ", user {user}")?;
        }
        f.write_str(if self.state == 'D' { ", waiting for a device)" } else { ")" })
    }
}

/// The processes that live below one process.
#[derive(Debug)]
pub(crate) struct Family {
    members: Vec<Process>,
    /// The process groups that have a member in the family, and nobody else.
    groups: BTreeSet<i32>,
    /// There may be others.
    is_partial: bool,
}

impl Family {
    pub(crate) fn find(below: Below) -> Self {
        let (all, is_partial) = processes();
        let mut children = BTreeMap::<_, Vec<_>>::new();
        for process in &all {
            children.entry(process.parent).or_default().push(process);
        }
        let root = raw(below.root);
        let is_aside = |child: &Process| child.parent == root && below.aside.is_some() && child.group == below.aside;
        let (mut pids, mut parents) = (BTreeSet::new(), vec![root]);
        while let Some(parent) = parents.pop() {
            let found = children.remove(&parent).into_iter().flatten().filter(|child| !is_aside(child));
            for pid in found.map(|child| raw(child.pid)) {
                pids.insert(pid);
                parents.push(pid);
            }
        }
        if let Some(except) = below.except {
            pids.remove(&raw(except));
        }
        let (mut members, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| pids.contains(&raw(one.pid)));
        members.retain(Process::is_living);
        let others: BTreeSet<_> = others.iter().filter_map(|other| other.group.map(raw)).collect();
        let groups = members.iter().filter_map(|member| member.group.map(raw));
        let groups = groups.filter(|group| !others.contains(group)).collect();
        Self { members, groups, is_partial }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && !self.is_partial
    }

    /// Sends the signal to all, and continues whoever is stopped.
    ///
    /// A process group gets it as a whole: the system lets nobody who is being killed fork out of it.
    pub(crate) fn signal(&self, signal: Signal) {
        for signal in [signal, Signal::CONT] {
            for group in self.groups.iter().filter_map(|group| Pid::from_raw(*group)) {
                let _ = kill_process_group(group, signal);
            }
            let alone = |member: &&Process| member.group.is_none_or(|group| !self.groups.contains(&raw(group)));
            for member in self.members.iter().filter(alone) {
                let _ = kill_process(member.pid, signal);
            }
        }
    }
}

/// The processes, for people.
impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 10;
        if self.members.is_empty() {
            return f.write_str("processes that /proc does not show");
        }
        for (index, member) in self.members.iter().take(NAMED).enumerate() {
            write!(f, "{}{member}", if index == 0 { "" } else { ", " })?;
        }
        match self.members.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Returns all processes, or with `true` those that could be read: without a descriptor or memory, nothing can.
fn processes() -> (Vec<Process>, bool) {
    let Ok(entries) = fs::read_dir("/proc") else { return (Vec::new(), true) };
    let (mut found, mut is_partial) = (Vec::new(), false);
    for entry in entries {
        let stat = entry.and_then(|entry| match entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) {
            Some(pid) => fs::read(format!("/proc/{pid}/stat")),
            None => Ok(Vec::new()),
        });
        match stat {
            Ok(stat) => found.extend(Process::parse(&String::from_utf8_lossy(&stat))),
            // The process has ended meanwhile, or is hidden from this user.
            Err(error) => is_partial |= is_shortage(&error),
        }
    }
    (found, is_partial)
}

/// `None` for 0, and for -1: the group of a process that the system is about to remove.
fn pid_of(number: &str) -> Option<Pid> {
    number.parse::<u32>().ok().and_then(|number| i32::try_from(number).ok()).and_then(Pid::from_raw)
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Makes this process the parent of all orphans below it, so that none is lost; `false` if the system does not.
pub(crate) fn adopt_orphans() -> bool {
    set_child_subreaper(Some(getpid())).is_ok()
}

/// Collects children of this process that have ended and that nobody waits for: adopted orphans. What this process
/// has started itself is in its own process group, or among the `awaited`.
pub(crate) fn reap_strays(awaited: &[Option<Pid>]) {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if !matches!(waitid(WaitId::All, peek), Ok(Some(_))) {
        return;
    }
    let (us, our_group) = (raw(getpid()), getpgrp());
    for child in processes().0 {
        let is_stray = child.parent == us && child.group != Some(our_group);
        if is_stray && !awaited.contains(&Some(child.pid)) {
            let _ = waitpid(Some(child.pid), WaitOptions::NOHANG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_fields_behind_it() {
        let stat = "7 (a) S 1 1 (\x1b[31m) T 5 6 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 0";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.parent, process.group, process.state), (5, Pid::from_raw(6), 'T'));
        assert_eq!((process.name.as_str(), process.threads), ("a) S 1 1 (?[31m", 3));
        let removed = "7 (a) X 5 -1 -1 0 -1 0 0 0 0 0 0 0 0 0 20 0 0 0 0";
        assert_eq!(Process::parse(removed).unwrap().group, None);
        for broken in ["", "7", "7 (a", "7 (a)", "7 (a) S", "x (a) S 1 1 0", "0 (a) S 1 1 0", "-1 (a) S 1 1 0"] {
            assert!(Process::parse(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn a_process_is_a_zombie_only_without_threads() {
        let of = |state: &str, threads: u32| {
            Process::parse(&format!("7 (a) {state} 5 6 6 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 0")).unwrap()
        };
        assert!(of("S", 1).is_living() && of("D", 1).is_living() && of("Z", 2).is_living());
        assert!(!of("Z", 1).is_living() && !of("X", 1).is_living());
    }
}
