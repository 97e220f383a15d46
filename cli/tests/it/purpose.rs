//! `--service`, for two deployments that use one lock by accident, and `--keep-history` where none fits.

use crate::status::json;
use crate::support::{LONG, Place, Running, end, run};

#[test]
fn two_services_that_use_one_lock_by_accident_notice_it() {
    let place = Place::new();
    let lock = place.lock("a");
    let of = |purpose, identity| [&LONG[..], &["--campaign", "--service", purpose, "--identity", identity]].concat();
    let works = ["sh", "-c", "echo leads; exec sleep 1000"];
    let mut mail = Running::start(&run(&lock, &of("mail", "mail-1"), &works));
    mail.wait_for("leads");
    let mut billing = Running::start(&run(&lock, &of("billing", "billing-1"), &works));
    billing.wait_for_note("give each of the two deployments a lock of its own");
    let status = end(&["status", &lock]).stdout;
    assert!(status.contains("  purpose        mail\n"), "{status}");
    drop(mail);

    // The claim outlives the service, until an operator ends it.
    let ended = end(&["release", "--force", "--yes", &lock]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    billing.wait_for("leads");
    assert_eq!(json(&["status", "-o", "json", &lock])[0]["purpose"], "billing");
}

#[test]
fn slots_have_a_purpose_too() {
    let place = Place::new();
    let workers = place.lock("workers");
    let of = |purpose| [&LONG[..], &["--slots", "1", "--service", purpose]].concat();
    assert_eq!(end(&run(&workers, &of("mail"), &["true"])).code, Some(0));
    let mut billing = Running::start(&run(&workers, &of("billing"), &["echo", "ran"]));
    billing.wait_for_note("its record is for the service \"mail\"");
    drop(billing);
    let mail = end(&run(&workers, &of("mail"), &["echo", "ran"]));
    assert_eq!((mail.code, mail.stdout.as_str()), (Some(0), "ran\n"), "{mail:?}");
}

#[test]
fn a_kubernetes_lease_has_no_room_for_a_history() {
    for command in [&["run"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        for locks in [&["lease://default/a"][..], &["file:///tmp/a", "--second-lock", "lease://default/a"]] {
            let ended = end(&[command, locks, &["--keep-history", "5"]].concat());
            assert_eq!(ended.code, Some(64), "{ended:?}");
            let refusal = "--keep-history: not supported by lease://default/a, a Kubernetes Lease";
            assert!(ended.stderr.contains(refusal), "{ended:?}");
        }
    }
}
