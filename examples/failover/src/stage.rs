//! The stage of the acts: the candidates, the lock, and the view for the person who watches.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use tokio::time::{Interval, MissedTickBehavior};

use crate::args::Settings;
use crate::cluster::{Cluster, Slot};
use crate::observer::Observer;
use crate::place::Site;
use crate::view::View;
use crate::world::{Candidate, Leader, State, World};

/// The number of candidates at any time, except for short moments.
const CANDIDATES: usize = 3;

/// The time between two updates of the view.
const FRAME: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Stage {
    pub world: World,
    pub site: Site,
    cluster: Cluster,
    observer: Observer,
    view: View,
    frames: Interval,
    /// The number of times each slot was filled. The names of the slot's processes contain this number.
    starts: [u32; CANDIDATES],
    patience: Duration,
}

impl Stage {
    pub fn new(settings: &Settings, site: Site, view: View) -> anyhow::Result<Self> {
        let observe_every = (settings.timing.retry / 10).clamp(Duration::from_millis(10), Duration::from_millis(250));
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            world: World::default(),
            cluster: Cluster::new(settings.clone(), CANDIDATES)?,
            observer: Observer::start(&site, observe_every),
            site,
            view,
            frames,
            starts: [0; CANDIDATES],
            // Several times the longest time that the protocol needs, plus the delay of a busy machine. Only a failure
            // takes this long.
            patience: 3 * settings.timing.lease + 10 * settings.timing.retry + Duration::from_secs(30),
        })
    }

    pub fn say(&mut self, line: impl AsRef<str>) {
        self.view.say(&self.world, line.as_ref());
    }

    /// Starts a candidate in every slot that is empty.
    pub fn fill_slots(&mut self) -> anyhow::Result<()> {
        let mut started = Vec::new();
        for slot in 0..CANDIDATES {
            if self.world.candidates.get(slot).is_some_and(|candidate| !candidate.is_gone()) {
                continue;
            }
            self.starts[slot] += 1;
            let name = format!("{}-{}", ["a", "b", "c"][slot], self.starts[slot]);
            let pid = self.cluster.start(slot, &name)?;
            started.push(format!("{name} (process {pid})"));
            let candidate = Candidate::new(name, pid);
            match self.world.candidates.get_mut(slot) {
                Some(empty) => *empty = candidate,
                None => self.world.candidates.push(candidate),
            }
        }
        self.say(format!("started {}", started.join(", ")));
        Ok(())
    }

    pub fn signal(&mut self, slot: Slot, signal: Signal) -> anyhow::Result<()> {
        self.cluster.signal(slot, signal)?;
        if signal == Signal::STOP {
            let candidate = &mut self.world.candidates[slot];
            (candidate.frozen, candidate.thawed, candidate.stale_append) = (true, None, None);
        }
        Ok(())
    }

    /// Handles events until `found` returns a value. If this takes too long, the error contains the text of
    /// `otherwise`.
    pub async fn until<T>(&mut self, mut found: impl FnMut(&World) -> Option<T>, otherwise: &str) -> anyhow::Result<T> {
        let give_up = Instant::now() + self.patience;
        loop {
            if let Some(found) = found(&self.world) {
                return Ok(found);
            }
            if Instant::now() > give_up {
                let trouble = self.world.trouble.as_deref().unwrap_or("none was reported, try RUST_LOG=info");
                bail!("{otherwise} after {:?}; the last trouble: {trouble}", self.patience);
            }
            tokio::select! {
                biased;
                happening = self.cluster.next() => self.world.on_happening(happening?),
                sighting = self.observer.next() => match sighting.context("nobody reads the lock any more")? {
                    Ok(sighting) => self.world.on_sighting(sighting),
                    Err(error) => self.world.trouble = Some(format!("{:#}", anyhow::Error::new(error))),
                },
                _ = self.frames.tick() => self.view.draw(&self.world),
            }
        }
    }

    /// Waits until a leader has done some work and two other candidates watch it.
    pub async fn stable_leader(&mut self) -> anyhow::Result<Leader> {
        /// The number of entries that shows a working leader.
        const ENTRIES: usize = 12;
        let found = |world: &World| {
            let leader = world.leader()?;
            let followers = world.candidates.iter().filter(|c| c.state == State::Following && !c.frozen).count();
            (followers + 1 == CANDIDATES && world.entries(leader.token) >= ENTRIES).then_some(leader)
        };
        self.until(found, "there are not a leader at work and two followers").await
    }

    /// Stops all candidates gracefully.
    pub async fn clear(&mut self) -> anyhow::Result<()> {
        for slot in 0..self.world.candidates.len() {
            if !self.world.candidates[slot].is_gone() {
                self.signal(slot, Signal::TERM)?;
            }
        }
        let gone = |world: &World| world.candidates.iter().all(Candidate::is_gone).then_some(());
        self.until(gone, "not all candidates have stopped").await
    }

    /// Ends the live view. The printed lines stay.
    pub fn close(&mut self) {
        self.view.close();
    }
}
