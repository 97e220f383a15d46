//! The thread of all servers: no number of requests of others keeps the thread that renews a lease from its work.

use std::sync::OnceLock;
use std::thread;

use tokio::runtime::{Builder, Handle};

use crate::exit::Failure;
use crate::runtime;

/// Returns the runtime of that thread, which the first call starts. The thread ends with the process.
pub(crate) fn of_servers() -> Result<&'static Handle, Failure> {
    static STARTED: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = STARTED.get() {
        return Ok(handle);
    }
    let start = || {
        let runtime = runtime::build(&mut Builder::new_current_thread())?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("servers".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        std::io::Result::Ok(handle)
    };
    let handle = start().map_err(|error| Failure::internal(format!("cannot serve: {error}")))?;
    Ok(STARTED.get_or_init(|| handle))
}
