//! `serve --second-lock`: a sidecar that leads by two locks.

use reqwest::StatusCode;
use rustix::process::Signal;

use super::sidecar::{Sidecar, serve};
use crate::support::{Place, end};

#[tokio::test]
async fn a_sidecar_holds_both_locks_and_gives_both_back() {
    let place = Place::new();
    let (new, old) = (place.lock("new"), place.lock("old"));
    let mut command = serve(&new, "alpha");
    let mut sidecar = Sidecar::spawn(command.args(["--second-lock", &old, "--drain", "0s"])).await;
    sidecar.answers("/leading", StatusCode::OK).await;
    let records = [place.record("new"), place.record("old")];
    assert!(records.iter().all(|record| record.holder_identity == "alpha"), "{records:?}");
    assert_eq!(records[0].leader_transitions, records[1].leader_transitions);
    assert!(sidecar.said().contains(&format!("competing for {new} and {old} as alpha")), "{}", sidecar.said());
    sidecar.signal(Signal::TERM);
    assert!(sidecar.ended().await.success());
    for name in ["new", "old"] {
        assert!(place.record(name).is_released(), "{name}");
    }
}

#[test]
fn one_lock_is_not_two() {
    let place = Place::new();
    let ended =
        end(&["serve", "--lock", &place.lock("a"), "--second-lock", &place.lock("a"), "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("are the same lock; name each lock once"), "{ended:?}");
}
