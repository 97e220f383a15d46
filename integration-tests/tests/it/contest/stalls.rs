//! What the traffic of a contest shows: the writes of each part, and the times in which a server or a contender was slow although
//! nobody had disturbed it, because the machine was busy.

use std::time::Duration;

use leaderelection_arena::report::Report;

use super::cluster::Cluster;
use super::troubles::{PartWrite, Span, Troubles, Whom};

/// The longest time that a busy machine may take from a contender.
const LONGEST: Duration = Duration::from_secs(8);

/// Notes each request that a part has not answered within `limit`, and each time in which a leader has reported nothing for longer
/// than that and a `rest`.
pub(super) fn note(troubles: &mut Troubles, cluster: &Cluster, limit: Duration, rest: Duration) {
    for slot in 0..cluster.size() {
        for (part, proxy) in cluster.proxies(slot).iter().enumerate() {
            proxy.inspect_traffic(|traffic| {
                let honest = traffic.iter().filter(|exchange| exchange.fault.is_none());
                let spans = honest.filter_map(|exchange| Some((exchange.arrived, exchange.answered?)));
                spans.filter(|span| is_longer(*span, limit)).for_each(|span| troubles.slow(Whom::Part(part), span));
            });
        }
    }
    let said = cluster.said();
    let mut reports: Vec<_> = said
        .iter()
        .filter_map(|said| match said.report {
            Report::Inside { token, at, .. } | Report::Ended { token, at } => Some((said.process, token, at)),
            _ => None,
        })
        .collect();
    reports.sort_unstable();
    for pair in reports.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        let span = (pair[0].2, pair[1].2);
        if is_longer(span, limit + rest) {
            troubles.slow(Whom::Contender(cluster.slot(pair[0].0)), span);
        }
    }
}

/// The writes that the parts have carried out.
pub(super) fn writes(cluster: &Cluster) -> Vec<PartWrite> {
    let mut writes = Vec::new();
    for slot in 0..cluster.size() {
        for (part, proxy) in cluster.proxies(slot).iter().enumerate() {
            proxy.inspect_traffic(|traffic| {
                let committed = traffic.iter().filter(|exchange| exchange.committed());
                let written = committed.filter_map(|exchange| Some((exchange.request.record()?, exchange.answered?)));
                writes.extend(written.map(|(record, at)| PartWrite { part, token: record.leader_transitions, at }));
            });
        }
    }
    writes
}

/// Returns the time that a contender has lost in a span: that by which the times between two of its requests are longer than
/// `pause`. No more than what a busy machine takes is lost, or a contender that sends nothing would never be late. A contender
/// in a directory sends no requests.
pub(super) fn lost(cluster: &Cluster, slot: usize, span: Span, pause: Duration) -> Duration {
    let proxies = cluster.proxies(slot);
    if proxies.is_empty() {
        return Duration::ZERO;
    }
    let mut moments = vec![span.0, span.1];
    for proxy in proxies {
        proxy.inspect_traffic(|traffic| {
            let arrived = traffic.iter().map(|exchange| exchange.arrived);
            moments.extend(arrived.filter(|arrived| (span.0..span.1).contains(arrived)));
        });
    }
    moments.sort_unstable();
    let lost: Duration = moments.windows(2).map(|pair| pair[1].saturating_since(pair[0]).saturating_sub(pause)).sum();
    lost.min(LONGEST)
}

fn is_longer((from, until): Span, limit: Duration) -> bool {
    until.saturating_since(from) > limit
}
