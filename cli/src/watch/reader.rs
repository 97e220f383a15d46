//! Whether anybody still reads what we print.

use std::io;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Completes when standard output is a pipe or a terminal that nobody reads any more: on a quiet lock nothing
/// is written that could tell.
///
/// Waits on a thread of its own, which ends with the process: files cannot be waited for by the runtime.
pub(super) async fn gone() {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let stdout = io::stdout();
        // Errors and hang-ups are told unasked.
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let polled = loop {
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                polled => break polled,
            }
        };
        if polled.is_ok() && fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            // The command may have ended meanwhile.
            let _ = sender.send(());
        }
    });
    if receiver.await.is_err() {
        std::future::pending().await
    }
}
