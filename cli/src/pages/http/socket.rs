//! Sockets that are no address: one at a path of the file system, and one that this process was started with.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

use crate::exit::Failure;

/// The socket that is standard input. Another process has it, too, so it listens while this one restarts.
pub(super) fn inherited() -> io::Result<TcpListener> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    // It listens already. What is no such socket fails here. As many connections wait as the system allows.
    rustix::net::listen(&socket, i32::MAX)?;
    Ok(socket.into())
}

/// Listens at a path that only this user may open. A socket that a dead process has left there makes room.
pub(super) fn listen(path: &Path) -> Result<UnixListener, Failure> {
    let failure = |problem: &str| {
        let problem = format!("cannot listen on unix:{}: {problem}; choose another path with --listen", path.display());
        Failure::internal(problem)
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(failure("the path exists and is not a socket")),
        Ok(_) if UnixStream::connect(path).is_ok() => Err(failure("another process is listening on it")),
        _ => bind(path).map_err(|error| failure(&error.to_string())),
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let _ = fs::remove_file(path);
    // Others could open the socket before a later change of its mode. No thread creates a file that others need at this moment.
    let before = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(before);
    listener
}
