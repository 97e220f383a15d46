//! The pace of the leader counts, and not that of the follower.

use leaderelection::election::{Fact, Jitter};

use super::{INTERVAL, Scene};
use crate::election::steps::SECOND;

#[test]
fn a_leader_is_silent_after_two_of_its_own_retry_periods() {
    for (retry, silent_after) in [(None, SECOND * 4), (Some(SECOND * 5), SECOND * 10), (Some(SECOND * 9), SECOND * 15)]
    {
        let mut scene = Scene::new(0);
        scene.retry = retry;
        scene.pass(SECOND);
        scene.renew();
        assert_eq!(scene.message(2), Fact::WriteReported);
        scene.pass(SECOND * 2);
        assert_eq!(scene.reads.len(), 2, "the second read confirms the message");
        scene.reads.clear();
        scene.renew();
        assert_eq!(scene.message(3), Fact::WriteReported);
        let reported_at = scene.play.now;
        scene.pass(SECOND * 20);
        assert_eq!(scene.reads.first().map(|read| read.saturating_since(reported_at)), Some(silent_after), "{retry:?}");
    }
}

#[test]
fn candidates_do_not_read_at_the_same_moments() {
    let next_read = |jitter| {
        let mut scene = Scene::new(jitter);
        for _ in 0..10 {
            scene.renew();
            scene.message(scene.shown.unwrap());
            scene.pass(SECOND * 2);
        }
        let confirmed = scene.reads[1];
        while scene.reads.len() < 3 {
            scene.renew();
            scene.message(scene.shown.unwrap());
            scene.pass(SECOND * 2);
        }
        scene.reads[2].saturating_since(confirmed)
    };
    assert_eq!(next_read(0), INTERVAL);
    let most = Jitter::new(u32::MAX).of(INTERVAL / 16);
    assert_eq!(next_read(u32::MAX), INTERVAL - most);
}
