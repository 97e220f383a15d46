//! The faults that are applied to the contenders.

use leaderelection_integration_tests::proxy::{Delivery, Fault, Kind, Reply};
use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::IndexedRandom as _;

use super::cluster::Cluster;
use crate::lying_network::lies::{HANGS, LIES, OUTAGES};

/// A status that outages leave out: a candidate whose access is denied polls so slowly that the time to the next
/// leader shows nothing.
const DENIED: u16 = 403;

/// The smallest number of healthy contenders at any time.
const WELL: usize = 2;

pub(super) async fn reign(cluster: &mut Cluster, random: &mut Xoshiro256PlusPlus, rounds: usize) {
    // The parts of the lock that nobody reaches.
    let mut lost: Vec<usize> = Vec::new();
    for _ in 0..rounds {
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
        if cluster.parts() > 1 && random.random_bool(0.3) {
            match lost.pop() {
                Some(part) => cluster.find_part(part).await,
                None => {
                    lost = (0..cluster.parts()).filter(|_| random.random_bool(0.4)).collect();
                    lost.iter().for_each(|part| cluster.lose_part(*part, outage(random)));
                }
            }
        }
        let may_last = cluster.size() - cluster.unwell().len() > WELL;
        match random.random_range(0..6) {
            0 => cluster.kill(slot, random.random()).await,
            1 => cluster.let_go(slot).await,
            2 | 3 if may_last => cluster.freeze(slot),
            4 if may_last => cluster.cut_off(slot, outage(random)),
            _ => spoil_a_few(cluster, slot, random),
        }
        tokio::time::sleep(cluster.timings().retry_period().mul_f64(random.random_range(0.15..3.0))).await;
    }
    // Few rounds may have missed every leader, and a contest without a second term shows nothing.
    if let Some(leader) = cluster.leader() {
        cluster.kill(leader, false).await;
    }
}

fn outage(random: &mut Xoshiro256PlusPlus) -> Fault {
    let mut outages: Vec<Fault> = HANGS.into_iter().chain(OUTAGES).map(|(_, outage)| outage).collect();
    outages.push(Fault::new(Delivery::Held, Reply::Silence));
    outages.retain(|outage| outage.reply != Reply::Status(DENIED));
    *outages.choose(random).expect("some are left")
}

fn spoil_a_few(cluster: &Cluster, slot: usize, random: &mut Xoshiro256PlusPlus) {
    let Some(proxy) = cluster.proxies(slot).choose(random) else { return };
    let lies: Vec<_> = LIES.into_iter().filter(|lie| lie.fault.reply != Reply::Status(DENIED)).collect();
    for _ in 0..3 {
        let lie = lies.choose(random).expect("some are left");
        proxy.spoil(random.random_range(0..4), |request| request.kind() != Kind::Read, lie.fault);
        if let Some(next) = lie.next {
            proxy.spoil(random.random_range(0..4), |request| request.kind() != Kind::Read, next);
        }
    }
}
