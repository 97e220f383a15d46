//! Every target, for a moment: the files of its corpus, and such files with damage.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use leaderelection_fuzz::{TARGETS, Target, corpus, inputs};
use proptest::test_runner::{Config, TestRunner};

/// Far above the time of any input.
const PATIENCE: Duration = Duration::from_secs(60);

/// Lets a target read inputs on a thread, which tells of each before it is read.
fn fuzz(target: Target, cases: u32) {
    let (tell, told) = channel::<Vec<u8>>();
    let reader = thread::spawn(move || {
        for (file, content) in corpus(target.name) {
            tell.send(content.clone()).unwrap();
            let read = catch_unwind(AssertUnwindSafe(|| target.check(&content)));
            assert!(read.is_ok(), "{} breaks a promise", file.display());
        }
        let config = Config { failure_persistence: None, max_shrink_iters: 500, ..Config::with_cases(cases) };
        let read = TestRunner::new(config).run(&inputs(target.name), |input| {
            tell.send(input.clone()).unwrap();
            target.check(&input);
            Ok(())
        });
        read.unwrap();
    });
    let mut last = Vec::new();
    loop {
        match told.recv_timeout(PATIENCE) {
            Ok(input) => last = input,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("{} hangs at {:?}", target.name, String::from_utf8_lossy(&last)),
        }
    }
    let name = target.name;
    assert!(reader.join().is_ok(), "{name} breaks a promise, the last time at {:?}", String::from_utf8_lossy(&last));
}

macro_rules! targets {
    ($($name:ident: $cases:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                fuzz(*TARGETS.iter().find(|target| target.name == stringify!($name)).unwrap(), $cases);
            }
        )*

        #[test]
        fn no_target_is_left_out() {
            let tested = BTreeSet::from([$(stringify!($name)),*]);
            assert_eq!(tested, TARGETS.iter().map(|target| target.name).collect());
        }
    };
}

// As many cases as take about half a second.
targets! {
    azure: 150,
    duration: 5_000,
    election: 1_000,
    fence: 1_000,
    file: 100,
    gcs: 150,
    peer_feed: 1_000,
    kubeconfig: 500,
    lease: 500,
    pages: 500,
    patch: 250,
    peers: 1_000,
    record: 2_500,
    s3: 50,
    sequenced: 750,
    session: 1_500,
    times: 2_500,
    url: 2_500,
}

#[test]
fn every_folder_of_the_corpus_is_that_of_a_target() {
    let folders = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).unwrap();
    for folder in folders.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir()) {
        let name = folder.file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|target| target.name == name), "{name}");
    }
}
