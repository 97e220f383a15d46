//! The faults that are applied to the contenders.

use std::time::{Duration, Instant};

use leaderelection_arena::report::Report;
use leaderelection_integration_tests::proxy::{Delivery, Fault, Kind, Reply};
use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom as _;

use super::cluster::Cluster;
use super::host::Loss;
use crate::lying_network::lies::{HANGS, LIES, OUTAGES};

/// A status that outages leave out: a candidate whose access is denied polls so slowly that the time to the next
/// leader shows nothing.
const DENIED: u16 = 403;

/// The largest number of leases for which a server is lost.
const MOST_LEASES: f64 = 2.5;

/// The smallest number of healthy contenders at any time.
const WELL: usize = 2;

pub(super) async fn reign(cluster: &mut Cluster, random: &mut Xoshiro256PlusPlus, rounds: usize) {
    for _ in 0..rounds {
        disturb(cluster, random).await;
        pause(cluster, random).await;
    }
    end_a_term(cluster).await;
}

/// Kills the leader: a few rounds may have missed every leader, and a contest without a second term shows nothing.
async fn end_a_term(cluster: &mut Cluster) {
    if let Some(leader) = cluster.leader() {
        cluster.kill(leader, false).await;
    }
}

/// Freezes the leader until another contender leads.
pub(super) async fn replace_leader(cluster: &mut Cluster) {
    let leads = |report: &Report| matches!(report, Report::Inside { .. });
    let Report::Inside { token: first, .. } = cluster.wait_for_more("a leader", leads).await else { unreachable!() };
    cluster.freeze(cluster.leader().expect("it has just said that it leads"));
    let follows = |report: &Report| matches!(report, Report::Inside { token, .. } if *token > first);
    cluster.wait_for_more("a leader in its place", follows).await;
}

/// Takes servers away, one, some or all, and gives them back, again and again. Half of the time nothing happens to the contenders
/// meanwhile.
pub(super) async fn besiege(cluster: &mut Cluster, random: &mut Xoshiro256PlusPlus, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let first = random.random_range(0..cluster.parts());
        let others = (0..cluster.parts()).filter(|part| *part == first || random.random_bool(0.3));
        let lost: Vec<usize> = others.collect();
        for part in &lost {
            let loss = match random.random_range(0..3) {
                0 => Loss::CutOff(outage(random)),
                1 => Loss::Killed,
                _ => Loss::Frozen,
            };
            cluster.lose_part(*part, loss);
        }
        last(cluster, random, 0.5).await;
        for part in lost {
            cluster.find_part(part).await;
        }
        last(cluster, random, 0.0).await;
    }
}

/// Lets so many leases pass at least, in which the contenders are disturbed or not.
async fn last(cluster: &mut Cluster, random: &mut Xoshiro256PlusPlus, least: f64) {
    let time = cluster.timings().lease_duration().mul_f64(random.random_range(least..MOST_LEASES));
    let end = Instant::now() + time;
    if random.random() {
        cluster.calm_down().await;
        tokio::time::sleep(time).await;
    }
    while Instant::now() < end {
        disturb(cluster, random).await;
        pause(cluster, random).await;
    }
}

async fn pause(cluster: &Cluster, random: &mut Xoshiro256PlusPlus) {
    tokio::time::sleep(cluster.timings().retry_period().mul_f64(random.random_range(0.15..3.0))).await;
}

/// Cures some contenders, and applies a fault to another.
async fn disturb(cluster: &mut Cluster, random: &mut Xoshiro256PlusPlus) {
    for slot in cluster.unwell() {
        if random.random_bool(0.4) {
            cluster.cure(slot).await;
        }
    }
    // Half of all faults hit the leader.
    let slot = match cluster.leader() {
        Some(leader) if random.random_bool(0.5) => leader,
        _ => random.random_range(0..cluster.size()),
    };
    let may_last = cluster.size() - cluster.unwell().len() > WELL;
    match random.random_range(0..6) {
        0 => cluster.kill(slot, random.random()).await,
        1 => cluster.let_go(slot).await,
        2 | 3 if may_last => cluster.freeze(slot),
        4 if may_last => cluster.cut_off(slot, outage(random)),
        _ => spoil_a_few(cluster, slot, random),
    }
}

fn outage(random: &mut Xoshiro256PlusPlus) -> Fault {
    let mut outages: Vec<Fault> = HANGS.into_iter().chain(OUTAGES).map(|(_, outage)| outage).collect();
    outages.push(Fault::new(Delivery::Held, Reply::Silence));
    outages.retain(|outage| outage.reply != Reply::Status(DENIED));
    *outages.choose(random).expect("some are left")
}

fn spoil_a_few(cluster: &mut Cluster, slot: usize, random: &mut Xoshiro256PlusPlus) {
    if cluster.parts() == 0 {
        return;
    }
    let part = random.random_range(0..cluster.parts());
    let lies: Vec<_> = LIES.into_iter().filter(|lie| lie.fault.reply != Reply::Status(DENIED)).collect();
    cluster.spoil(slot, part, |proxy| {
        for _ in 0..3 {
            let lie = lies.choose(random).expect("some are left");
            proxy.spoil(random.random_range(0..4), |request| request.kind() != Kind::Read, lie.fault);
            if let Some(next) = lie.next {
                proxy.spoil(random.random_range(0..4), |request| request.kind() != Kind::Read, next);
            }
        }
    });
}
