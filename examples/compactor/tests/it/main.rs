//! The program, in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::process::Command;

#[test]
fn a_compactor_of_the_past_is_refused_and_every_line_is_there_once() {
    let output = Command::new(env!("CARGO_BIN_EXE_compactor")).output().expect("the program can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let expected = "first compacts with token 1\nsecond compacts with token 2\nfirst's commit is refused: 2 has been \
                    seen\nthe table has 300 lines, each of them once\n";
    assert_eq!(said, expected);
}
