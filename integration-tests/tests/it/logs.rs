//! The log output of a piece of code.

use std::io::{self, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::Dispatch;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Returns everything that `code` logs on this thread, at every level.
    pub(crate) fn of(code: impl FnOnce()) -> String {
        // With a single subscriber, the first thread that reaches an event decides for all threads whether the
        // event is enabled. That thread asks its own subscriber, and other tests have none.
        static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Logs::default().subscriber());
        LazyLock::force(&ANOTHER);
        let logs = Self::default();
        tracing::dispatcher::with_default(&logs.subscriber(), code);
        let bytes = logs.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("text")
    }

    fn subscriber(&self) -> Dispatch {
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(self.clone());
        subscriber.with_ansi(false).finish().into()
    }
}

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
