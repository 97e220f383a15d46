use std::ffi::OsStr;

use clap::Command;
use clap::builder::TypedValueParser as _;
use leaderelection::LeaderElectionRecord;
use leaderelection::clock::LocalInstant;

use super::super::board::Lock;
use super::*;
use crate::history::Term;
use crate::lock::PrefixUrl;
use crate::lock::view::View;
use crate::pages::before;
use crate::survey::Row;

const REFRESH: Duration = Duration::from_secs(5);

fn lock(key: &str, status: LockStatus, holder: &str) -> Lock {
    let prefix = PrefixUrl::parser().parse_ref(&Command::new("dashboard"), None, OsStr::new("memory:")).unwrap();
    let mut record = LeaderElectionRecord::new(holder, Duration::from_secs(15));
    record.leader_transitions = 7;
    record.preferred_holder = Some(holder.to_owned()).filter(|_| status == LockStatus::HandingOver);
    let view = View { status, ..View::of_record(&prefix.at(key), &record) };
    let terms = (0..16).map(|_| Term::begin(holder, Some(7.into()), SystemClock.wall_time())).collect();
    Lock { row: Row { key: key.to_owned(), view, observed: None, store_age: None, unreadable_for: None }, terms }
}

fn board(locks: Vec<Lock>, age: Duration) -> Board {
    let read_at = LocalInstant::from_nanos(SystemClock.now().as_nanos() - u64::try_from(age.as_nanos()).unwrap());
    Board { locks, read_at: Some((read_at, SystemClock.wall_time())), ..Board::default() }
}

fn html_of(board: &Board) -> String {
    html("s3://bucket/locks/", board, REFRESH).unwrap()
}

/// The title, and the tone and the text of the verdict.
fn verdict(html: &str) -> (&str, &str, &str) {
    let part = |text, from, to| -> &str {
        let (_, rest): (&str, &str) = str::split_once(text, from).unwrap();
        rest.split_once(to).unwrap().0
    };
    let verdict = part(html, "<div id=\"verdict\"", "</div>");
    (part(html, "<title>", " · "), part(verdict, "class=\"verdict ", "\""), part(verdict, "<strong>", "</p>"))
}

#[test]
fn verdict_title_and_colour_agree() {
    let led = || lock("b", LockStatus::Led, "node-1");
    let free = || lock("c", LockStatus::Free, "");
    for (locks, age, expected) in [
        (vec![], 1, ("No locks", "calm", "No locks</strong> under this prefix.")),
        (
            vec![led(), free()],
            1,
            ("No trouble seen: 1 led, 1 free", "good", "No trouble seen</strong>: 1 led, 1 free."),
        ),
        (
            vec![led(), free(), lock("z", LockStatus::Expired, "node-2")],
            14,
            ("1 in trouble", "bad", "1 in trouble</strong>, 1 led, 1 free."),
        ),
        (
            vec![led()],
            16,
            ("Leaders not known", "bad", "The leader is unknown</strong>: the locks were last listed 16 s ago."),
        ),
    ] {
        assert_eq!(verdict(&html_of(&board(locks, Duration::from_secs(age)))), expected);
    }
    let never = html_of(&Board::default());
    assert_eq!(verdict(&never).2, "The leader is unknown</strong>: the locks have not been listed yet.");
}

#[test]
fn a_timeline_shows_a_leader_until_it_was_last_seen() {
    let now = SystemClock.wall_time();
    let at = |seconds| before(now, Duration::from_secs(seconds));
    let mut known = Term::begin("node-1", Some(7.into()), at(100));
    known.seen(at(50));
    let bar = |status| {
        let lock = Lock { terms: vec![known.clone()], ..lock("a", status, "node-1") };
        let html = LockRow::of(&lock, at(100), now).render().unwrap();
        html.split("<rect ").nth(1).unwrap().split("height").next().unwrap().to_owned()
    };
    assert_eq!(bar(LockStatus::Led), "class=\"c0\" x=\"0\" width=\"1000\" ");
    for status in [LockStatus::Unknown(Cause::Silent), LockStatus::Doubtful] {
        assert_eq!(bar(status), "class=\"c0\" x=\"0\" width=\"500\" ", "{status:?}");
    }
}

#[test]
fn a_page_without_news_does_not_go_on_saying_who_leads() {
    let locks = vec![lock("a", LockStatus::Led, "node-1"), lock("b", LockStatus::Free, "")];
    let html = html_of(&board(locks, Duration::from_secs(16)));
    assert!(!html.contains("</strong> leads") && !html.contains("is free"), "{html}");
    assert_eq!(html.matches("The leader is unknown: the store gives no usable answer").count(), 2, "{html}");
    assert!(html.contains("<strong><bdi>node-1</bdi></strong> held the lease when the store last answered"), "{html}");
    assert_eq!(html.matches("<li class=\"bad\">").count(), 2, "{html}");
}

#[test]
fn those_in_trouble_come_first() {
    let locks = vec![
        lock("a", LockStatus::Led, "node-1"),
        lock("b", LockStatus::Doubtful, "node-1"),
        lock("c", LockStatus::HandingOver, "node-1"),
        lock("d", LockStatus::Free, ""),
        lock("e", LockStatus::Absent, "node-1"),
        lock("f", LockStatus::Expired, "node-1"),
        lock("g", LockStatus::Unknown(Cause::NotARecord), ""),
        lock("h", LockStatus::Unknown(Cause::Silent), ""),
    ];
    let html = html_of(&board(locks, Duration::ZERO));
    let keys = html.split("<li class=\"").skip(1).map(|line| {
        let (tone, rest) = line.split_once("\"><bdi>").unwrap();
        format!("{} {tone}", rest.split_once('<').unwrap().0)
    });
    let expected = ["b bad", "e bad", "f bad", "g bad", "h bad", "c calm", "a good", "d idle"];
    assert_eq!(keys.collect::<Vec<_>>(), expected);
}

#[test]
fn a_thousand_locks_fit_into_the_page_however_they_are_called() {
    let files =
        include_str!("../../../../templates/page.css").len() + include_str!("../../../../templates/page.js").len();
    let bad = "<\u{202e}\"&>".repeat(60);
    for (key, holder) in [("locks/team/service", "node-1"), (bad.as_str(), bad.as_str())] {
        let locks = (0..1000).map(|number| lock(&format!("{key}{number:04}"), LockStatus::Led, holder));
        let mut locks: Vec<_> = locks.collect();
        locks.push(lock("zzz", LockStatus::Expired, holder));
        let html = html_of(&board(locks, Duration::ZERO));
        assert!(html.len() + files < 100_000, "{} and {files} bytes", html.len());
        let shown = html.matches("<li ").count();
        assert!(shown > 40, "{shown}");
        let rest = format!("<p>{} more locks do not fit here, none of them in trouble.", 1001 - shown);
        assert!(html.contains(&rest), "{rest}");
        assert!(html.find("<bdi>zzz</bdi>") < html.find("0001</bdi>"), "the one in trouble is shown");
        assert_eq!(verdict(&html).0, "1 in trouble");
    }
}
