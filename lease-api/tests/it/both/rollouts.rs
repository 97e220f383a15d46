//! Rollouts there and back, after others of which nobody is left, with processes that are killed and frozen, and a network that
//! loses what it carries.

use std::time::Duration;

use leaderelection_lease_api::Both;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::elector::{Elector, LEASE, Term, Terms};
use super::network::{Chance, Network, Place};

/// The places in which the electors of a rollout hold the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rollout {
    Old,
    Both,
    New,
}

struct Service {
    old: Place,
    new: Place,
    chance: Chance,
    terms: Terms,
    replicas: Vec<(CancellationToken, JoinHandle<()>)>,
    started: usize,
}

impl Service {
    fn start(&mut self, rollout: Rollout) {
        self.started += 1;
        let identity = format!("{rollout:?}-{}", self.started);
        let reach = |place: &Place| Network { place: place.clone(), chance: self.chance.clone() };
        let (old, new, terms, chance) = (reach(&self.old), reach(&self.new), self.terms.clone(), self.chance.clone());
        let elector = match rollout {
            Rollout::Old => Elector::new(identity, old, terms, chance),
            Rollout::New => Elector::new(identity, new, terms, chance),
            Rollout::Both => Elector::new(identity, Both::new(old, new, |key| Some(key.to_owned())), terms, chance)
                .of_both([self.old.clone(), self.new.clone()]),
        };
        let ends = CancellationToken::new();
        self.replicas.push((ends.clone(), tokio::spawn(elector.run(ends))));
    }

    /// Ends the oldest replica: mostly in order.
    async fn end_oldest(&mut self) {
        let (ends, replica) = self.replicas.remove(0);
        if self.chance.one_in(3) {
            replica.abort();
        } else {
            ends.cancel();
        }
        match replica.await {
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => {}
        }
    }

    /// Replaces the replicas one by one. Some are killed on the way, and replaced.
    async fn roll(&mut self, rollout: Rollout) {
        for _ in 0..3 {
            self.start(rollout);
            sleep(self.chance.millis(20_000)).await;
            self.end_oldest().await;
        }
        for _ in 0..self.chance.below(3) {
            self.start(rollout);
            self.end_oldest().await;
            sleep(self.chance.millis(40_000)).await;
        }
        self.led_by(rollout).await;
    }

    /// Waits until one of a rollout leads.
    async fn led_by(&self, rollout: Rollout) {
        let begun = Instant::now();
        let has_led = |terms: &Terms| {
            terms.all().iter().any(|term| term.leader.starts_with(&format!("{rollout:?}")) && term.until > begun)
        };
        while !has_led(&self.terms) {
            assert!(begun.elapsed() < 20 * LEASE, "nobody leads: {:?}", self.terms.all().last());
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Starts the old version, and rolls out others, until nobody is left. Returns all terms, in order.
    async fn live(&mut self, rollouts: &[Rollout]) -> Vec<Term> {
        for _ in 0..3 {
            self.start(Rollout::Old);
        }
        self.led_by(Rollout::Old).await;
        for rollout in rollouts {
            self.roll(*rollout).await;
        }
        while !self.replicas.is_empty() {
            self.end_oldest().await;
        }
        self.terms.all()
    }
}

/// Returns all terms, in order, and those before the start from nothing.
async fn there_and_back(seed: u64) -> [Vec<Term>; 2] {
    let mut service = Service {
        old: Place::default(),
        new: Place::default(),
        chance: Chance::new(seed),
        terms: Terms::default(),
        replicas: Vec::new(),
        started: 0,
    };
    let first = service.live(&[Rollout::Both, Rollout::New]).await;
    // Everybody is ended, and the old version is back. The new place has a leftover with a larger token.
    sleep(2 * LEASE).await;
    service.terms.forget();
    [first, service.live(&[Rollout::Both, Rollout::New, Rollout::Both, Rollout::Old]).await]
}

#[tokio::test(start_paused = true)]
async fn no_two_lead_in_rollouts_there_and_back() {
    let seeds = std::env::var("LEADERELECTION_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(30);
    let (mut terms, mut longest) = (0, Duration::ZERO);
    for seed in 0..seeds {
        println!("seed {seed}");
        for led in there_and_back(seed).await {
            for rollout in ["Both", "New", "Old"] {
                assert!(led.iter().any(|term| term.leader.starts_with(rollout)), "{led:?}");
            }
            let gaps = led.windows(2).map(|two| two[1].from.saturating_duration_since(two[0].until));
            longest = gaps.max().unwrap_or_default().max(longest);
            terms += led.len();
        }
    }
    println!("{terms} terms, at most {longest:?} without a leader, crashes, freezes and late writes included");
}
