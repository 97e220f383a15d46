//! Refused configurations: every message names the field, its value and the accepted values.

use std::future::pending;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use leaderelection::config::ConfigWarning;
use leaderelection::implement::{ConditionalStore, ListedPage, PageToken, Precondition, Version, VersionedObject};
use leaderelection::lock::JobId;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, LeaderElectionConfigBuilder, Majority,
    MemoryLock, MemoryStore, ObjectLock, Session, StoreError, unique_identity,
};
use tokio::time::timeout;

use crate::support::{builder, logged, warnings_of};

fn builder_for(identity: &str) -> LeaderElectionConfigBuilder {
    LeaderElectionConfig::builder(MemoryLock::new(MemoryStore::new(), "lock", identity), LeaderCallbacks::new())
}

fn refusal(build: impl FnOnce(LeaderElectionConfigBuilder) -> LeaderElectionConfigBuilder) -> String {
    build(builder_for("a")).build().unwrap_err().to_string()
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn defaults_are_client_gos_and_valid() {
    let config = builder_for("a").build().unwrap();
    assert_eq!(config.name(), "memory:lock");
    assert_eq!(builder_for("a").name("scheduler").build().unwrap().name(), "scheduler");
}

#[test]
fn zeros_come_first() {
    let zero = Duration::ZERO;
    assert_eq!(refusal(|b| b.lease_duration(zero)), "lease_duration must be greater than zero");
    assert_eq!(refusal(|b| b.renew_deadline(zero)), "renew_deadline must be greater than zero");
    assert_eq!(refusal(|b| b.retry_period(zero)), "retry_period must be greater than zero");
    assert_eq!(refusal(|b| b.request_timeout(zero)), "request_timeout must be greater than zero");
    assert_eq!(refusal(|b| b.lease_duration(secs(1)).retry_period(zero)), "retry_period must be greater than zero");
}

#[test]
fn a_slack_below_the_grain_of_http_is_refused() {
    let refused = refusal(|b| b.trust_store_clock(Duration::from_millis(999)));
    let expected = "trust_store_clock (999ms) must not be less than 1s, the resolution of the times that stores report";
    assert_eq!(refused, expected);
    assert!(builder_for("a").trust_store_clock(secs(1)).build().is_ok());
}

#[test]
fn a_follower_interval_must_suit_the_retry_period_and_the_lease() {
    let refused = refusal(|b| b.follower_interval(secs(1)));
    assert_eq!(refused, "follower_interval (1s) must not be less than retry_period (2s)");
    let millis = Duration::from_millis;
    let refused = refusal(|b| b.follower_interval(millis(12_600)));
    let expected = "follower_interval (12.6s) plus 1.2 times retry_period (2s) must be less than lease_duration (15s), so \
                    that a candidate sees the leader's renewals in time";
    assert_eq!(refused, expected);
    assert!(refusal(|b| b.follower_interval(Duration::MAX)).starts_with("follower_interval ("));
    assert!(builder_for("a").follower_interval(millis(12_599)).build().is_ok());
    assert!(builder_for("a").follower_interval(secs(2)).build().is_ok());
    // The default follows the retry period, whatever the lease.
    assert!(builder_for("a").retry_period(secs(8)).build().is_ok());
}

#[test]
fn timings_must_leave_room_for_each_other() {
    assert_eq!(refusal(|b| b.lease_duration(secs(5))), "lease_duration (5s) must be greater than renew_deadline (10s)");
    assert_eq!(
        refusal(|b| b.lease_duration(secs(10))),
        "lease_duration (10s) must be greater than renew_deadline (10s)"
    );
    assert_eq!(
        refusal(|b| b.retry_period(secs(9))),
        "renew_deadline (10s) must be greater than retry_period (9s) times 1.2"
    );
    assert_eq!(
        refusal(|b| b.request_timeout(secs(5))),
        "request_timeout (5s) must be less than half of renew_deadline (10s)"
    );
    assert_eq!(
        refusal(|b| b.lease_duration(secs(86_401))),
        "lease_duration (1day 1s) must be at most 24h, the limit of this lock"
    );
    assert_eq!(refusal(|b| b.retry_period(Duration::MAX)).split(' ').next(), Some("renew_deadline"));
    assert_eq!(refusal(|b| b.name("")), "name (\"\") must not be empty");
}

#[test]
fn a_session_refuses_what_a_lease_refuses_in_the_same_words() {
    macro_rules! refused_alike {
        ($($setter:ident($value:expr)),*) => {$(
            let session = Session::builder(MemoryStore::new(), "locks", "a").$setter($value).build().unwrap_err();
            assert_eq!(session.to_string(), refusal(|lease| lease.$setter($value)));
        )*};
    }
    refused_alike!(lease_duration(secs(86_401)), renew_deadline(secs(15)), retry_period(secs(9)));
    refused_alike!(request_timeout(secs(5)), name(""));
}

#[test]
fn a_margin_in_which_no_work_can_be_dropped_is_refused() {
    let least = secs(10) + Duration::from_millis(8);
    assert_eq!(
        refusal(|b| b.lease_duration(least - Duration::from_nanos(1))),
        "lease_duration (10.007999999s) must be greater than renew_deadline (10s) by 8ms or more, so that there is time \
         to drop work that does not stop"
    );
    assert!(builder_for("a").lease_duration(least).build().is_ok());
}

#[test]
fn timings_that_one_slow_request_breaks_are_warned_about() {
    let warnings = |renew_deadline, retry_period, request_timeout| {
        let builder = builder_for("a").lease_duration(secs(60));
        let builder = builder.renew_deadline(renew_deadline).retry_period(retry_period);
        let (logged, config) = warnings_of(|| builder.request_timeout(request_timeout).build().unwrap());
        assert_eq!(logged, [""; 0], "building a configuration logs nothing");
        config.warnings()
    };
    let [warning] = warnings(secs(10), secs(7), secs(3)).try_into().unwrap();
    let (retry_period, request_timeout, renew_deadline) = (secs(7), secs(3), secs(10));
    assert_eq!(warning, ConfigWarning::SingleTry { retry_period, request_timeout, renew_deadline });
    for part in ["retry_period (7s)", "request_timeout (3s)", "renew_deadline (10s)", "single slow request"] {
        assert!(warning.to_string().contains(part), "{part:?} is not in {warning}");
    }
    assert_eq!(warnings(secs(10), secs(7), secs(3) - Duration::from_nanos(1)), []);
    assert_eq!(builder_for("a").build().unwrap().warnings(), [], "the defaults leave time for two slow requests");
}

#[test]
fn a_retry_period_shorter_than_the_store_takes_writes_is_warned_about() {
    let interval = Duration::from_millis(1_500);
    let warnings = |retry_period| {
        let lock = ObjectLock::new(SlowToWrite(MemoryStore::new(), interval), "lock", "a");
        builder(lock, LeaderCallbacks::new()).retry_period(retry_period).build().unwrap().warnings()
    };
    let retry_period = interval - Duration::from_nanos(1);
    assert_eq!(warnings(retry_period), [ConfigWarning::WritesTooClose { retry_period, min_write_interval: interval }]);
    assert_eq!(warnings(interval), []);
    assert_eq!(warnings(interval + Duration::from_nanos(1)), []);
}

/// A store that refuses writes to one object which follow each other within an interval.
#[derive(Debug)]
struct SlowToWrite(MemoryStore, Duration);

#[async_trait]
impl ConditionalStore for SlowToWrite {
    async fn get(&self, key: &str) -> Result<Option<VersionedObject>, StoreError> {
        self.0.get(key).await
    }

    async fn put(&self, key: &str, body: Bytes, precondition: &Precondition) -> Result<Version, StoreError> {
        self.0.put(key, body, precondition).await
    }

    async fn delete(&self, key: &str, expected: Option<&Version>) -> Result<(), StoreError> {
        self.0.delete(key, expected).await
    }

    async fn list_page(
        &self,
        prefix: &str,
        token: Option<&PageToken>,
        limit: Option<u16>,
    ) -> Result<ListedPage, StoreError> {
        self.0.list_page(prefix, token, limit).await
    }

    fn describe(&self, key: &str) -> String {
        self.0.describe(key)
    }

    fn min_write_interval(&self) -> Option<Duration> {
        Some(self.1)
    }
}

#[test]
fn warnings_are_logged_when_the_elector_first_runs() {
    let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
    let events = logged(tracing::Level::WARN, async || {
        let config = builder(lock, LeaderCallbacks::new()).retry_period(secs(8)).build().unwrap();
        let elector = DefaultLeaderElector::new(config);
        for _ in 0..2 {
            assert!(timeout(secs(1), elector.run(pending())).await.is_err());
        }
    });
    let [event] = events.try_into().unwrap();
    for part in ["retry_period=8s", "request_timeout=2.5s", "renew_deadline=10s", "single slow request"] {
        assert!(event.contains(part), "{part:?} is not in {event:?}");
    }
}

#[test]
fn a_lock_may_allow_longer_leases() {
    let lock = MemoryLock::new(MemoryStore::new(), "lock", "a").with_max_lease_duration(secs(90_000));
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).lease_duration(secs(90_000)).build();
    assert!(config.is_ok());
}

#[test]
fn a_rank_that_is_too_bad_is_refused_with_its_value() {
    let refusal = builder_for("a").rank(100).build().unwrap_err();
    assert_eq!(refusal.to_string(), "rank (100) must be at most 99; 0 is the best rank");
    assert_eq!(refusal.field(), "rank");
    assert!(builder_for("a").rank(LeaderElectionConfig::WORST_RANK).build().is_ok());
}

#[test]
fn sub_second_timings_are_allowed() {
    let ms = Duration::from_millis;
    let config = builder_for("a").lease_duration(ms(300)).renew_deadline(ms(200)).retry_period(ms(50)).build();
    assert!(config.is_ok());
}

#[test]
fn identities_that_nobody_could_tell_apart_or_read_are_refused() {
    let refusal = |identity: &str| builder_for(identity).build().unwrap_err();
    assert_eq!(refusal("").to_string(), "identity (\"\") is empty");
    assert_eq!(refusal("").field(), "identity");
    assert_eq!(
        refusal("a\nb").to_string(),
        "identity (\"a\\nb\") has, as character 2, U+000A (a line feed); leave that out"
    );
    let long = refusal(&"x".repeat(257)).to_string();
    assert!(long.ends_with("has 257 bytes, more than 256") && long.len() < 100, "{long}");
    assert!(builder_for(&"x".repeat(256)).build().is_ok());
    assert!(builder_for(&unique_identity()).build().is_ok());
}

#[test]
fn a_lock_without_a_key_is_refused() {
    let lock = MemoryLock::new(MemoryStore::new(), "", "a");
    let error = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build().unwrap_err().to_string();
    assert!(error.contains("key (\"\") must not be empty"), "{error}");
}

/// Two hosts of which one has read its settings from a file of Windows would both lead.
#[test]
fn names_that_differ_only_in_what_nobody_sees_are_refused() {
    let parts = |identity: &str, key: &str| {
        [key, "b", "c"].map(|key| MemoryLock::new(MemoryStore::new(), key.to_owned(), identity.to_owned()))
    };
    for hidden in ["\r", "\n", "\t", " ", "\u{a0}", "\u{feff}", "\u{200b}"] {
        for name in [format!("a{hidden}"), format!("{hidden}a")] {
            let code = format!("U+{:04X}", u32::from(hidden.chars().next().unwrap()));
            let lock =
                |identity: &str, key: &str| MemoryLock::new(MemoryStore::new(), key.to_owned(), identity.to_owned());
            let elector = |lock| LeaderElectionConfig::builder(lock, LeaderCallbacks::new());
            let majority = Majority::of(parts("x", &name)).unwrap();
            let refusals = [
                ("identity", elector(lock(&name, "x")).build().err()),
                ("key", elector(lock("x", &name)).build().err()),
                ("key", LeaderElectionConfig::builder(majority, LeaderCallbacks::new()).build().err()),
                ("service", elector(lock("x", "x")).service(&name).build().err()),
                ("job", name.parse::<JobId>().err()),
                ("identity", Session::builder(MemoryStore::new(), "x", &name).build().err()),
                ("prefix", Session::builder(MemoryStore::new(), &name, "x").build().err()),
                ("service", Session::builder(MemoryStore::new(), "x", "x").service(&name).build().err()),
            ];
            for (field, refusal) in refusals {
                let refusal = refusal.unwrap_or_else(|| panic!("{field} {name:?} is accepted"));
                assert!(refusal.field() == field && refusal.to_string().contains(&code), "{name:?}: {refusal}");
            }
            let session = Session::builder(MemoryStore::new(), "x", "x").build().unwrap();
            let refusal = session.elector(&name, LeaderCallbacks::new()).unwrap_err().to_string();
            assert!(refusal.contains(&code), "{name:?}: {refusal}");
            let refusal = session.slots(&name, 1).err().unwrap().to_string();
            assert!(refusal.contains(&code), "{name:?}: {refusal}");
        }
    }
}

#[test]
fn unique_identities_begin_with_the_host_name() {
    let (one, two) = (unique_identity(), unique_identity());
    let host = |identity: &str| identity.rsplit_once('_').map(|(host, _)| host.to_owned());
    assert_ne!(one, two);
    assert_eq!(host(&one), host(&two));
    assert!(!host(&one).unwrap().is_empty());
}
