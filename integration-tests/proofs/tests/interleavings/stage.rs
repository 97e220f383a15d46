//! The surroundings of the explored source: threads instead of tasks, and a leadership that is open or closed.

pub(crate) mod sync {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;

    pub(crate) use tokio::sync::Notify;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(data: T) -> Self {
            Self(loom::sync::Mutex::new(data))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// A task on a thread of its own.
    pub(crate) struct Task(Arc<AtomicBool>);

    #[derive(Debug)]
    pub(crate) struct AbortHandle(Arc<AtomicBool>);

    impl Task {
        pub(crate) fn abort_handle(self) -> AbortHandle {
            AbortHandle(self.0)
        }
    }

    impl AbortHandle {
        pub(crate) fn abort(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// Runs a task that never waits, or drops the task if it was aborted before its turn.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Task {
        let aborted = Arc::new(AtomicBool::new(false));
        let is_aborted = Arc::clone(&aborted);
        thread::spawn(move || {
            if !is_aborted.load(Ordering::SeqCst) {
                assert!(pin!(task).poll(&mut Context::from_waker(Waker::noop())).is_ready(), "the work waits");
            }
        });
        Task(aborted)
    }
}

pub(crate) mod leadership {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicBool, Ordering};

    use crate::election::{Command, TermEndReason};

    #[derive(Clone, Debug)]
    pub(crate) struct Leadership(Arc<AtomicBool>);

    impl Leadership {
        pub(crate) fn new() -> Self {
            Self(Arc::new(AtomicBool::new(true)))
        }

        pub(crate) fn is_valid(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }

        pub(crate) fn close(&self, _reason: TermEndReason) {
            self.0.store(false, Ordering::SeqCst);
        }

        pub(crate) fn take_command(&self) -> Option<Command> {
            None
        }

        pub(crate) fn step_down(&self) {
            self.close(TermEndReason::SteppedDown);
        }

        pub(crate) fn tell_listener(&self) {}
    }
}

pub(crate) mod status {
    /// A status that nobody reads.
    #[derive(Debug)]
    pub(crate) struct StatusWriter;

    pub(crate) struct Status {
        pub(crate) term: Option<()>,
    }

    impl StatusWriter {
        pub(crate) fn change(&self, change: impl FnOnce(&mut Status)) {
            change(&mut Status { term: Some(()) });
        }
    }
}
