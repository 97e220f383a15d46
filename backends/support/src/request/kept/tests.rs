use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

fn at(since: Duration) -> LocalInstant {
    LocalInstant::default() + since
}

fn held(life: Option<Duration>) -> Held<u32> {
    Held { loaded: Loaded::valid_for(1, at(Duration::ZERO), life), since: at(Duration::ZERO), is_refused: false }
}

#[test]
fn a_load_begins_minutes_before_the_end_while_the_old_ones_serve() {
    let mut hour = held(Some(HOUR));
    assert_eq!(hour.now(at(HOUR - EARLY - SECOND)), Now::Use(1));
    assert_eq!(hour.now(at(HOUR - EARLY)), Now::UseAndLoad(1));
    assert_eq!(hour.now(at(HOUR - MARGIN - SECOND)), Now::UseAndLoad(1));
    assert_eq!(hour.now(at(HOUR - MARGIN)), Now::Wait(None));
    // What lives shortly is loaded anew from the middle of its life.
    let mut short = held(Some(16 * SECOND));
    assert_eq!(
        [7, 8, 14, 15].map(|seconds| short.now(at(seconds * SECOND))),
        [Now::Use(1), Now::UseAndLoad(1), Now::UseAndLoad(1), Now::Wait(None)]
    );
}

#[test]
fn what_has_no_end_is_loaded_anew_and_never_missed() {
    let mut endless = held(None);
    assert_eq!(endless.now(at(WITHOUT_END - SECOND)), Now::Use(1));
    assert_eq!(endless.now(at(WITHOUT_END)), Now::UseAndLoad(1));
    assert_eq!(endless.failed(at(WITHOUT_END)), PAUSE.1);
    assert_eq!(endless.now(at(WITHOUT_END + PAUSE.1 - SECOND)), Now::Use(1));
    assert_eq!(endless.now(at(100 * HOUR)), Now::UseAndLoad(1));
}

#[test]
fn a_source_that_gives_the_same_until_its_end_is_asked_ever_more_often() {
    let (mut asked, mut now) = (0, Duration::ZERO);
    while now < HOUR - MARGIN {
        let loaded = Loaded::valid_for(1, at(now), Some(HOUR - now));
        now = loaded.renewed_from.saturating_since(LocalInstant::default());
        asked += 1;
    }
    assert!((6..40).contains(&asked), "{asked}");
}

#[test]
fn a_load_that_fails_is_repeated_soon_and_ever_sooner() {
    let mut hour = held(Some(HOUR));
    let pauses = [HOUR - EARLY, HOUR - 90 * SECOND, HOUR - 12 * SECOND].map(|now| hour.failed(at(now)));
    assert_eq!((pauses[0], pauses[1], pauses[2]), (PAUSE.1, 5 * SECOND, SECOND));
}

#[test]
fn after_a_refusal_one_request_waits_and_the_others_go_on() {
    let mut hour = held(Some(HOUR));
    assert!(!hour.refused(at(2 * SECOND)), "it was just loaded");
    assert_eq!(hour.now(at(2 * SECOND)), Now::Use(1));
    assert!(hour.refused(at(YOUNG)));
    assert_eq!(hour.now(at(4 * SECOND)), Now::Wait(Some(1)));
    assert_eq!(hour.now(at(4 * SECOND)), Now::UseAndLoad(1));
}

/// A source that answers as the test says.
struct Source {
    kept: Kept<u32, String>,
    asked: Arc<AtomicU32>,
    may_answer: Arc<Semaphore>,
}

impl Source {
    fn new() -> Self {
        Self { kept: Kept::new("test"), asked: Arc::default(), may_answer: Arc::new(Semaphore::new(0)) }
    }

    /// Asks for what is kept, with a source that gives `answer` once it may.
    async fn get(&self, answer: Result<Loaded<u32>, &str>) -> Result<u32, String> {
        let (asked, may_answer) = (Arc::clone(&self.asked), Arc::clone(&self.may_answer));
        let answer = answer.map_err(str::to_owned);
        let load = move || async move {
            asked.fetch_add(1, Ordering::SeqCst);
            let allowed = may_answer.acquire().await.map_err(|error| error.to_string())?;
            allowed.forget();
            answer
        };
        self.kept.get(load).await
    }

    fn hold(&self, renewed_from: Duration, ends: Option<Duration>) {
        let now = SystemClock.now();
        let loaded = Loaded { value: 1, renewed_from: now + renewed_from, ends: ends.map(|ends| now + ends) };
        self.kept.state().held = Some(Held { loaded, since: LocalInstant::default(), is_refused: false });
    }

    /// Waits until the load that is in flight has ended.
    async fn rest(&self) {
        while self.kept.state().is_loading() {
            tokio::task::yield_now().await;
        }
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

fn good(value: u32) -> Result<Loaded<u32>, &'static str> {
    Ok(Loaded::valid_for(value, SystemClock.now(), Some(HOUR)))
}

#[tokio::test]
async fn a_failing_source_costs_no_request_while_credentials_are_valid() {
    for answer in [Err("down"), good(2)] {
        let source = Source::new();
        source.hold(Duration::ZERO, Some(HOUR));
        let expected = answer.as_ref().map_or(1, |loaded| loaded.value);
        assert_eq!(source.get(answer).await, Ok(1));
        assert_eq!(source.get(Err("a second load")).await, Ok(1));
        source.may_answer.add_permits(1);
        source.rest().await;
        assert_eq!((source.get(Err("no load")).await, source.asked()), (Ok(expected), 1));
    }
}

#[tokio::test]
async fn expired_credentials_load_once_and_an_error_reaches_all() {
    for held in [false, true] {
        let source = Source::new();
        if held {
            source.hold(Duration::ZERO, Some(Duration::ZERO));
        }
        source.may_answer.add_permits(1);
        let answers = futures_util::future::join(source.get(Err("down")), source.get(Err("a second load"))).await;
        assert_eq!(answers, (Err("down".to_owned()), Err("down".to_owned())));
        source.may_answer.add_permits(1);
        assert_eq!((source.get(good(2)).await, source.asked()), (Ok(2), 2));
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_leaves_the_load_and_its_error_to_the_next() {
    for (answer, told) in [(good(2), Ok(2)), (Err("down"), Err("down".to_owned()))] {
        let source = Source::new();
        assert!(source.get(answer).now_or_never().is_none());
        source.may_answer.add_permits(1);
        source.rest().await;
        assert_eq!((source.get(Err("a second load")).await, source.asked()), (told, 1));
    }
}

#[tokio::test]
async fn a_refusal_reloads_credentials_or_keeps_the_old_ones() {
    for (answer, told) in [(good(2), 2), (Err("down"), 1)] {
        let source = Source::new();
        source.hold(HOUR, None);
        assert!(source.kept.refused());
        source.may_answer.add_permits(1);
        assert_eq!((source.get(answer).await, source.asked()), (Ok(told), 1));
    }
}

#[tokio::test]
async fn a_load_that_panics_is_an_error_and_not_the_last() {
    let source = Source::new();
    let is_there = source.asked() > 0;
    let load = move || async move {
        assert!(is_there, "oh no");
        good(2).map_err(str::to_owned)
    };
    let error = source.kept.get(load).await.expect_err("no result");
    assert!(error.starts_with("the load broke off: "), "{error}");
    source.may_answer.add_permits(1);
    assert_eq!(source.get(good(2)).await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn a_load_that_never_ends_is_given_up() {
    let source = Source::new();
    let error = source.get(good(2)).await.expect_err("no result");
    assert_eq!(error, "the load took longer than 60s");
}

#[test]
fn nothing_prints_what_is_kept() {
    let source = Source::new();
    source.hold(HOUR, None);
    assert_eq!(format!("{:?}", source.kept), r#"Kept { of: "test", .. }"#);
}
