//! The end of a program whose parent has ended.

use std::io;

/// Ends the process at once when its parent has ended in any way, because nobody needs its work any more.
///
/// The parent must keep this process's standard input open, and write nothing to it.
pub fn exit_with_parent() {
    // A thread of its own: a runtime would wait for tokio's reader of standard input before it ends.
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
}
