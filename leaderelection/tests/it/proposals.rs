//! Timings that follow from measured latencies.

use std::future::pending;
use std::time::Duration;

use leaderelection::clock::TokioClock;
use leaderelection::timings::{Goal, Latencies, NoProposal, Proposal, StoreLimits};
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, ObjectLock};

use crate::support::{Fault, Faulty};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The latencies that `leaderelect probe` measured on a machine with two busy cores, in microseconds.
fn recorded(text: &str) -> Latencies {
    let micros = text.split_whitespace().map(|micros| micros.parse().expect("a number"));
    Latencies::of(micros.map(Duration::from_micros)).expect("latencies")
}

fn seaweedfs() -> Latencies {
    recorded(include_str!("proposals/seaweedfs.txt"))
}

fn directory() -> Latencies {
    recorded(include_str!("proposals/directory.txt"))
}

fn failover(wanted: u64, latencies: &Latencies) -> Result<Proposal, NoProposal> {
    Proposal::new(Goal::Failover(millis(wanted)), latencies, StoreLimits::default())
}

#[test]
fn a_failover_of_two_seconds_is_a_lease_of_one_and_a_half() {
    let proposal = failover(2000, &directory()).unwrap();
    let timings = proposal.timings;
    assert!((1450..=1539).contains(&timings.lease_duration().as_millis()), "{proposal:?}");
    assert!((966..=1026).contains(&timings.renew_deadline().as_millis()), "{proposal:?}");
    assert!((190..=205).contains(&timings.retry_period().as_millis()), "{proposal:?}");
    assert!(millis(1995) < proposal.failover && proposal.failover <= millis(2000), "{proposal:?}");
    assert!(proposal.survives >= 2 && proposal.losses_a_year < 1.0, "{proposal:?}");
}

#[test]
fn an_endless_goal_is_refused() {
    let limits = StoreLimits { whole_seconds: true, write_interval: None };
    for goal in [Goal::Failover(Duration::MAX), Goal::RetryPeriod(Duration::MAX)] {
        let refusal = Proposal::new(goal, &directory(), limits).unwrap_err().to_string();
        assert!(refusal.contains("longer than a day"), "{refusal}");
    }
}

#[test]
fn the_minimum_failover_works_and_a_shorter_one_is_refused() {
    for latencies in [seaweedfs(), directory(), recorded(&"40000 ".repeat(3000))] {
        let refusal = failover(1, &latencies).unwrap_err();
        let least = refusal.least_failover().unwrap();
        let wanted = u64::try_from(least.as_millis()).unwrap();
        assert!(failover(wanted + 2, &latencies).is_ok(), "{least:?}");
        let refusal = failover(wanted - 3, &latencies).unwrap_err().to_string();
        assert!(refusal.contains("the shortest failover on this store is "), "{refusal}");
        assert!(refusal.contains("shorter than 300ms") || refusal.contains("terms a year would be lost"), "{refusal}");
    }
}

#[test]
fn a_directory_carries_a_lease_of_300_ms_and_nothing_shorter_is_proposed() {
    let quick = recorded(&"400 ".repeat(3000));
    let refusal = failover(380, &quick).unwrap_err();
    assert!(refusal.to_string().contains("its lease would be shorter than 300ms"), "{refusal}");
    let proposal = failover(400, &quick).unwrap();
    assert!(proposal.timings.lease_duration() >= millis(300), "{proposal:?}");
}

#[test]
fn few_latencies_show_little() {
    let few = recorded(&"5000 ".repeat(30));
    let refusal = failover(2000, &few).unwrap_err().to_string();
    assert!(refusal.contains("of 30 requests") && refusal.contains("terms a year would be lost"), "{refusal}");
    assert!(failover(2000, &recorded(&"5000 ".repeat(3000))).is_ok());
}

#[test]
fn one_slow_request_of_a_hundred_lengthens_the_timings() {
    let often = format!("{}{}", "5000 ".repeat(2970), "400000 ".repeat(30));
    let refusal = failover(2000, &recorded(&often)).unwrap_err();
    assert!(refusal.least_failover().unwrap() > millis(4000), "{refusal}");
}

#[test]
fn limits_of_a_store_are_the_floor() {
    let quick = recorded(&"5000 ".repeat(3000));
    let google = StoreLimits { write_interval: Some(millis(1000)), ..StoreLimits::default() };
    let refusal = Proposal::new(Goal::Failover(millis(9000)), &quick, google).unwrap_err();
    assert!(refusal.to_string().contains("the store takes one write to an object in 1s"), "{refusal}");
    let least = Proposal::new(Goal::Failover(refusal.least_failover().unwrap()), &quick, google).unwrap();
    assert_eq!(least.timings.retry_period(), millis(1000));

    let kubernetes = StoreLimits { whole_seconds: true, ..StoreLimits::default() };
    let refusal = Proposal::new(Goal::Failover(millis(1000)), &quick, kubernetes).unwrap_err();
    assert!(refusal.to_string().contains("the lock holds whole seconds"), "{refusal}");
    let proposal = Proposal::new(Goal::Failover(millis(4000)), &quick, kubernetes).unwrap();
    assert_eq!(proposal.timings.lease_duration(), millis(3000));
}

#[test]
fn a_pace_too_fast_for_the_store_is_slowed_down() {
    let propose = |period| Proposal::new(Goal::RetryPeriod(period), &seaweedfs(), StoreLimits::default());
    let proposal = propose(millis(2000)).unwrap();
    assert_eq!(proposal.timings.lease_duration(), millis(15_000));
    assert_eq!(proposal.timings.retry_period(), millis(2000));
    let fastest = propose(millis(1)).unwrap();
    assert!(fastest.timings.retry_period() >= millis(40), "{fastest:?}");
    let refusal = propose(Duration::from_secs(86_400)).unwrap_err();
    assert!(refusal.to_string().contains("the lease would be longer than a day"), "{refusal}");
}

#[test]
fn the_numbers_of_a_proposal_follow_from_the_latencies() {
    let propose = |latencies: &str| {
        let proposal = Proposal::new(Goal::RetryPeriod(millis(2000)), &recorded(latencies), StoreLimits::default());
        proposal.unwrap()
    };
    // Two of 3,000 requests took longer than the request timeout.
    let proposal = propose(&format!("{}{}", "5000 ".repeat(2998), "3000000 ".repeat(2)));
    assert_eq!(proposal.slow, millis(5));
    assert_eq!(proposal.timings.request_timeout(), millis(1000));
    assert_eq!(proposal.failover, millis(15_000 + 4_500 + 10));
    assert_eq!(proposal.survives, 4);
    let chance = 3.0 / 3002.0 * (4.0 / 3003.0) * (5.0 / 3004.0) * (6.0 / 3005.0) * (7.0 / 3006.0);
    let losses = chance * 31_557_600.0 / 2.0;
    assert!((proposal.losses_a_year / losses - 1.0).abs() < 1e-9, "{proposal:?}, and not {losses}");

    // With 1,200 ms, all is over just in time: 2 s + 2 * 1.2 s + 2 * 2.5 s + 200 ms + 400 ms are the renew deadline.
    for (micros, patience, survives) in [("400000 ", 1604, 3), ("500000 ", 2004, 2), ("1200000 ", 2500, 2)] {
        let proposal = propose(&micros.repeat(3000));
        assert_eq!((proposal.timings.request_timeout(), proposal.survives), (millis(patience), survives));
    }
}

#[test]
fn a_lease_at_a_limit_is_not_refused_for_the_limit() {
    let few = recorded(&"5000 ".repeat(30));
    let whole_seconds = StoreLimits { whole_seconds: true, ..StoreLimits::default() };
    let paced = StoreLimits { write_interval: Some(millis(1000)), ..StoreLimits::default() };
    // Leases of 300 ms, one second and 7.5 s.
    for (wanted, limits) in [(401, StoreLimits::default()), (1500, whole_seconds), (9760, paced)] {
        let refusal = Proposal::new(Goal::Failover(millis(wanted)), &few, limits).unwrap_err();
        assert!(refusal.to_string().contains(": of 30 requests one of a thousand took 5.0ms"), "{refusal}");
    }
}

#[test]
fn the_longest_lease_is_a_day_on_a_store_that_needs_more() {
    for whole_seconds in [false, true] {
        let propose = |micros: &str| {
            let limits = StoreLimits { whole_seconds, ..StoreLimits::default() };
            Proposal::new(Goal::Failover(millis(1000)), &recorded(&micros.repeat(4000)), limits).unwrap_err()
        };
        assert!(propose("20000000 ").least_failover().unwrap() > Duration::from_secs(120));
        let refusal = propose("15000000000 ");
        assert_eq!(refusal.least_failover(), None, "{refusal}");
        assert!(refusal.to_string().ends_with("no failover is long enough for this store"), "{refusal}");
    }
}

/// Returns `true` if a term outlives this number of unanswered requests in a row.
async fn outlives(proposal: &Proposal, unanswered: u32, first: usize) -> bool {
    let end = first + unanswered as usize;
    let store = Faulty::new(move |_, _, number| (first..end).contains(&number).then_some(Fault::Hang));
    let lock = ObjectLock::new(store.clone(), "lock", "a");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).timings(proposal.timings);
    let elector = DefaultLeaderElector::new(config.clock(TokioClock::new()).build().unwrap());
    let moment = proposal.timings.retry_period() / 8;
    let led = elector.run_while_leading(pending(), async move |leadership| {
        while store.requests() < end + 3 && leadership.is_valid() {
            tokio::time::sleep(moment).await;
        }
        leadership.is_valid()
    });
    led.await.unwrap_or(false)
}

#[tokio::test(start_paused = true)]
async fn a_term_survives_as_many_unanswered_requests_as_the_proposal_says() {
    for wish in [400, 1000, 2000, 20_000] {
        let proposal = failover(wish, &recorded(&"400 ".repeat(3000))).unwrap();
        assert!(proposal.survives >= 1, "{proposal:?}");
        let mut outlived = 0;
        // The pauses between the tries are random.
        for first in 6..46 {
            assert!(outlives(&proposal, proposal.survives, first).await, "{proposal:?}");
            outlived += u32::from(outlives(&proposal, proposal.survives * 3 + 3, first).await);
        }
        assert_eq!(outlived, 0, "{proposal:?}");
    }
}
