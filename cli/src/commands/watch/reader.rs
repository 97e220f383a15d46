//! A check for a reader of our output.

use std::io;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Completes when standard output is a pipe or a terminal without a reader. On a quiet lock, nothing is
/// written, so no write can fail.
///
/// A thread of its own does the waiting, and ends with the process: the runtime cannot wait for files.
pub(super) async fn gone() {
    let (sender, receiver) = oneshot::channel();
    let watch = move || {
        let stdout = io::stdout();
        // `poll` reports errors and hang-ups without a request.
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = loop {
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                polled => break polled,
            }
        };
        if polled.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            // The command may have ended in the meantime.
            let _ = sender.send(());
        }
    };
    // Without the thread, a later line finds that the reader is gone.
    let _ = thread::Builder::new().name("reader".to_owned()).spawn(watch);
    if receiver.await.is_err() {
        std::future::pending().await
    }
}
