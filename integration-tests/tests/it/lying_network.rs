//! The elector on real servers, behind a network that loses, delays, repeats and falsifies.
//!
//! After every fault of one request, the election must end as docs/protocol.md says: in the store's content, in
//! the callbacks, in the fencing tokens, and in the requests on the wire.

mod acquiring;
mod cut_off;
mod late;
pub(crate) mod lies;
mod probing;
mod proxy;
mod races;
mod releasing;
mod renewing;
mod stage;
mod wire;

use std::future::Future;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The time limit for every required event.
const PATIENCE: Duration = Duration::from_secs(120);

/// The variable that selects the cases whose name contains its value.
const CASE_VARIABLE: &str = "LEADERELECTION_TEST_CASE";

/// The cases of all tests that run at a time. More of them keep the servers so busy that renewals come too late.
static PLACES: Semaphore = Semaphore::const_new(32);

/// Runs cases concurrently, because most of their time is waiting.
async fn run_all<F>(cases: impl IntoIterator<Item = (&'static str, F)>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let wanted = std::env::var(CASE_VARIABLE).unwrap_or_default();
    let mut running = JoinSet::new();
    for (name, case) in cases.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        running.spawn(async move {
            let _place = PLACES.acquire().await.expect("never closed");
            (name, tokio::spawn(case).await)
        });
    }
    let mut failed = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (name, result) = ended.expect("the wrapper does not panic");
        if result.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}; to run one, set {CASE_VARIABLE} to a part of its name");
}

macro_rules! on_one_server {
    ($server:ident: $($file:ident::$test:ident $(,)?)*) => {
        mod $server { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let cloud = crate::cloud::Cloud::$server().await;
                super::$file::$test(std::sync::Arc::clone(&cloud)).await;
                cloud.clear().await;
                cloud.judge();
            }
        )* }
    };
}

/// Creates a module for every server. One server has every test. The others have the tests that a store's answers, its client
/// or its conditions decide: the rest shows the election, which is the same on each. No probe runs on the Kubernetes Leases,
/// which take nothing but records.
macro_rules! on_every_server {
    (
        everywhere: { $($file:ident::$test:ident,)* }
        on_object_stores: { $($probe_file:ident::$probe:ident,)* }
        on_one: { $($other_file:ident::$other:ident,)* }
    ) => {
        on_one_server! { s3: $($file::$test)* $($probe_file::$probe)* $($other_file::$other)* }
        #[cfg(feature = "all-tests")]
        on_one_server! { express: $($file::$test)* $($probe_file::$probe)* }
        on_one_server! { azure: $($file::$test)* $($probe_file::$probe)* }
        on_one_server! { gcs: $($file::$test)* $($probe_file::$probe)* }
        on_one_server! { kube: $($file::$test)* }
    };
}

on_every_server! {
    everywhere: {
        acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
        acquiring::a_won_takeover_makes_a_leader_that_does_not_wait_for_itself,
        renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
        releasing::a_release_without_a_good_answer_is_confirmed,
        late::a_late_renewal_cannot_bring_back_a_term_that_was_taken_over,
        cut_off::a_store_that_hangs_cannot_keep_a_leader_past_its_deadline,
        races::two_candidates_that_read_the_same_version_cannot_both_win,
        wire::the_sdk_makes_exactly_one_attempt,
    }
    on_object_stores: {
        probing::the_probe_finds_the_server_itself_fit,
        probing::the_probe_sees_a_server_that_ignores_conditions,
        probing::the_probe_sees_a_server_that_ignores_conditions_only_under_concurrency,
        proxy::a_server_that_ignores_conditions_lets_everybody_win,
        proxy::a_server_without_conditions_under_races_looks_honest_alone,
    }
    on_one: {
        releasing::a_release_that_never_arrives_lets_the_lease_expire,
        releasing::a_release_whose_answer_was_lost_does_not_erase_the_successors_lease,
        late::a_late_renewal_cannot_bring_back_a_released_term,
        late::a_renewal_committed_after_the_term_makes_nobody_lead,
        late::a_renewal_committed_during_the_release_is_released_too,
        cut_off::a_leader_cut_off_from_the_store_stops_before_any_other_can_start,
        probing::nobody_is_elected_on_a_server_that_ignores_conditions,
    }
}

// The crates of others decide what an answer means, so the tests of answers run on their stores too. Azurite refuses the
// deletions that `object_store` sends with a SAS, so a probe would leave its objects there.
#[cfg(feature = "all-tests")]
on_one_server! { object_store_s3:
    acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    releasing::a_release_without_a_good_answer_is_confirmed,
    late::a_late_renewal_cannot_bring_back_a_term_that_was_taken_over,
    cut_off::a_store_that_hangs_cannot_keep_a_leader_past_its_deadline,
    wire::the_sdk_makes_exactly_one_attempt,
    probing::the_probe_finds_the_server_itself_fit,
    probing::the_probe_sees_a_server_that_ignores_conditions,
}

#[cfg(feature = "all-tests")]
on_one_server! { object_store_azure:
    acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    wire::the_sdk_makes_exactly_one_attempt,
}

#[cfg(feature = "all-tests")]
on_one_server! { object_store_azure_with_retries:
    acquiring::a_won_takeover_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
}

#[cfg(feature = "all-tests")]
on_one_server! { object_store_s3_with_retries:
    acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
    acquiring::a_won_takeover_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    releasing::a_release_without_a_good_answer_is_confirmed,
    late::a_late_renewal_cannot_bring_back_a_term_that_was_taken_over,
    cut_off::a_store_that_hangs_cannot_keep_a_leader_past_its_deadline,
}

#[cfg(feature = "all-tests")]
on_one_server! { opendal_s3:
    acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    releasing::a_release_without_a_good_answer_is_confirmed,
    wire::the_sdk_makes_exactly_one_attempt,
    probing::the_probe_finds_the_server_itself_fit,
    probing::the_probe_sees_a_server_that_ignores_conditions,
}

#[cfg(feature = "all-tests")]
on_one_server! { opendal_azure:
    acquiring::a_won_create_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    wire::the_sdk_makes_exactly_one_attempt,
    probing::the_probe_finds_the_server_itself_fit,
}

#[cfg(feature = "all-tests")]
on_one_server! { opendal_s3_with_retries:
    acquiring::a_won_takeover_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    releasing::a_release_without_a_good_answer_is_confirmed,
}

// Every call of a sequenced lock is several requests, so the test of one attempt does not fit it.
#[cfg(feature = "all-tests")]
on_one_server! { opendal_oss:
    acquiring::a_won_takeover_makes_a_leader_that_does_not_wait_for_itself,
    renewing::a_renewal_without_a_good_answer_is_not_a_lost_lease,
    releasing::a_release_without_a_good_answer_is_confirmed,
    cut_off::a_store_that_hangs_cannot_keep_a_leader_past_its_deadline,
    probing::the_probe_finds_the_server_itself_fit,
}
