//! A peer that lies without end.

use std::time::Duration;

use leaderelection::clock::LocalInstant;
use leaderelection::election::{Fact, IgnoredReason, PeerMessage};

use super::super::steps::SECOND;
use super::{INTERVAL, MILLI, Scene, committed, ended, id, ignored};

/// A follower that got a lie, which the read after it has contradicted.
fn contradicted() -> Scene {
    let mut scene = Scene::new(0);
    assert_eq!(scene.message(50), Fact::WriteReported);
    scene.pass(SECOND * 2);
    assert_eq!(scene.message(51), ignored(IgnoredReason::Closed));
    scene.reads.clear();
    scene
}

#[test]
fn a_contradicted_peer_is_ignored_until_the_next_write() {
    let mut scene = Scene::confirmed();
    let mut number = 100;
    let mut accepted = 0;
    while scene.acquires.is_none() {
        assert!(number < 300, "a peer that lies blocks the candidate forever");
        number += 1;
        accepted += u32::from(scene.message(number) == Fact::WriteReported);
        scene.pass(SECOND);
    }
    // The last true message came at 1 s, and the read that confirmed it came at 2 s.
    assert_eq!(scene.acquires, Some(LocalInstant::default() + SECOND * 2 + INTERVAL));
    assert_eq!(accepted, 29, "the read has shown the lie");
}

#[test]
fn a_peer_whose_word_came_late_is_listened_to_again_after_the_next_write() {
    let mut scene = Scene::new(0);
    scene.renew();
    scene.pass(SECOND * 2);
    // The read has shown the write after this one already, and the next read shows the same.
    assert_eq!(scene.message(1), Fact::WriteReported);
    scene.pass(SECOND * 2);
    scene.renew();
    assert_eq!(scene.message(3), ignored(IgnoredReason::Closed));
    scene.pass(SECOND * 2);
    scene.renew();
    assert_eq!(scene.message(4), Fact::WriteReported);
    scene.pass(SECOND * 2);
    scene.reads.clear();
    for _ in 0..10 {
        scene.renew();
        assert_eq!(scene.message(scene.shown.unwrap()), Fact::WriteReported);
        scene.pass(SECOND * 2);
    }
    assert_eq!(scene.reads.len(), 0);
}

/// The bound of rule 16: after the last write, one background interval, and then another one, or a lease and its spread.
#[test]
fn no_peer_delays_a_takeover_by_more_than_the_bound() {
    // Each message is another write, the last true one again, one of two, nothing at times, or an end.
    let lies: [fn(u64) -> Option<PeerMessage>; 8] = [
        |turn| Some(committed(&id(1000 + turn), 1000 + turn)),
        |turn| Some(committed(&id(2), 1000 + turn)),
        |turn| Some(committed(&id(1000 + turn % 2), 1000 + turn)),
        |turn| {
            Some(if turn.is_multiple_of(2) { committed(&id(1000 + turn), 1000 + turn) } else { PeerMessage::Nothing })
        },
        |turn| Some(committed(&id(if turn.is_multiple_of(9) { 2 } else { 1000 + turn }), 1000 + turn)),
        |turn| (turn > 20).then(|| committed(&id(1000 + turn), 1000 + turn)),
        |turn| Some(if turn == 40 { ended() } else { committed(&id(1000 + turn), 1000 + turn) }),
        // The true message comes just before the read that it is due for.
        |turn| Some(committed(&id(if turn % 30 == 29 { 3 } else { 1000 + turn }), 1000 + turn)),
    ];
    let mut longest = Duration::ZERO;
    for (index, lie) in lies.into_iter().enumerate() {
        for pause in [MILLI * 90, MILLI * 700, SECOND, SECOND * 2, SECOND * 5] {
            for turn in 0..8 {
                // After the last write, a peer's messages count again.
                let mut scene = if turn < 4 { Scene::confirmed() } else { contradicted() };
                let (jitter, chatters) = ([0, u32::MAX][turn % 2], turn / 2 % 2 == 1);
                scene.renew();
                let last_write = scene.play.now;
                scene.play.draw.jitter = jitter;
                scene.chatter = chatters.then_some(lie);
                let most = INTERVAL + INTERVAL.max(SECOND * 15 + MILLI * 100);
                while scene.acquires.is_none() {
                    assert!(scene.at() < most * 2, "lie {index} each {pause:?} blocks the candidate forever");
                    scene.chat(lie);
                    scene.answer();
                    scene.pass(pause);
                }
                let took = scene.acquires.unwrap().saturating_since(last_write);
                longest = longest.max(took);
                assert!(took <= most, "lie {index} each {pause:?}: {took:?}");
                let reads = scene.reads.len();
                assert!(reads <= 40, "lie {index} each {pause:?}: {reads} reads in {took:?}");
            }
        }
    }
    assert!(longest > INTERVAL + SECOND * 25, "the bound is far away: {longest:?}");
}

#[test]
fn a_read_that_was_sent_before_a_message_does_not_contradict_it() {
    let mut scene = Scene::confirmed();
    scene.chatter = Some(|turn| (turn == 1).then(|| committed("b-3", 3)));
    // The read is sent at once, and its answer is older than the message.
    scene.on_silence();
    assert_eq!((scene.reads.len(), scene.turn), (1, 1));
    scene.chatter = None;
    assert_eq!(scene.message(4), Fact::WriteReported);
}
