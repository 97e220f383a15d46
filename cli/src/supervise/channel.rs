//! The socket between this program and a helper process that it starts.
//!
//! A helper finds the socket as its standard input. The standard input of the command comes through the socket, and
//! the helper puts it in its place: safe Rust can pass a descriptor neither by number nor as a fourth stream.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Gives a helper that is about to start its socket, and `stdin` through the socket. Returns the other end.
pub(crate) fn give(command: &mut Command, stdin: BorrowedFd<'_>) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    let stdin = [stdin];
    passed.push(SendAncillaryMessage::ScmRights(&stdin));
    sendmsg(&ours, &[IoSlice::new(&[0])], &mut passed, SendFlags::empty())?;
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    Ok(ours)
}

/// Takes the socket that this helper was started with, and puts the command's standard input in its place.
pub(crate) fn take() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&socket, &mut [IoSliceMut::new(&mut [0])], &mut passed, RecvFlags::empty())?;
    let stdin = passed.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut passed) => passed.next(),
        _ => None,
    });
    rustix::stdio::dup2_stdin(stdin.ok_or(io::ErrorKind::UnexpectedEof)?)?;
    Ok(socket)
}

/// A kind and a value, which fit into one write.
pub(crate) trait IpcMessage: Sized {
    fn encode(self) -> (u64, u64);
    fn decode(kind: u64, value: u64) -> Option<Self>;
}

const LENGTH: usize = 16;

fn bytes(word: impl IpcMessage) -> [u8; LENGTH] {
    let (kind, value) = word.encode();
    (u128::from(kind) << 64 | u128::from(value)).to_le_bytes()
}

fn word<W: IpcMessage>(bytes: [u8; LENGTH]) -> Option<W> {
    let both = u128::from_le_bytes(bytes);
    W::decode(u64::try_from(both >> 64).ok()?, u64::try_from(both & u128::from(u64::MAX)).ok()?)
}

/// Sends words without waiting: a peer that is stopped must not stop this process when the socket is full.
#[derive(Clone, Debug)]
pub(crate) struct Speaker(Arc<UnixStream>);

impl Speaker {
    /// For a process without a [`Listener`].
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self(Arc::new(socket))
    }

    pub(crate) fn say(&self, said: impl IpcMessage) -> io::Result<()> {
        (&*self.0).write_all(&bytes(said))
    }
}

/// Receives words.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: tokio::net::UnixStream,
    buffer: [u8; LENGTH],
    length: usize,
}

/// Splits a socket for use within tokio.
pub(crate) fn split(socket: UnixStream) -> io::Result<(Speaker, Listener)> {
    socket.set_nonblocking(true)?;
    let speaker = Speaker::new(socket.try_clone()?);
    let socket = tokio::net::UnixStream::from_std(socket)?;
    Ok((speaker, Listener { socket, buffer: [0; LENGTH], length: 0 }))
}

impl Listener {
    /// Returns the next word; `None` if the peer is gone. Cancellation safe.
    pub(crate) async fn receive<W: IpcMessage>(&mut self) -> Option<W> {
        while self.length < LENGTH {
            self.socket.readable().await.ok()?;
            let rest = self.buffer.get_mut(self.length..)?;
            match self.socket.try_read(rest) {
                Ok(0) => return None,
                Ok(read) => self.length += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
        self.length = 0;
        word(self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Pair(u64, u64);

    impl IpcMessage for Pair {
        fn encode(self) -> (u64, u64) {
            (self.0, self.1)
        }

        fn decode(kind: u64, value: u64) -> Option<Self> {
            Some(Self(kind, value))
        }
    }

    #[tokio::test]
    async fn words_arrive_whole_and_in_order_until_the_speaker_is_gone() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_, mut listener) = split(theirs).unwrap();
        let all = bytes(Pair(u64::MAX, 1));
        let (first, rest) = all.split_at(5);
        (&ours).write_all(first).unwrap();
        let early = tokio::time::timeout(std::time::Duration::from_millis(1), listener.receive::<Pair>()).await;
        assert!(early.is_err(), "{early:?}");
        (&ours).write_all(rest).unwrap();
        let speaker = Speaker::new(ours);
        speaker.say(Pair(2, u64::MAX)).unwrap();
        drop(speaker);
        assert_eq!(listener.receive().await, Some(Pair(u64::MAX, 1)));
        assert_eq!(listener.receive().await, Some(Pair(2, u64::MAX)));
        assert_eq!(listener.receive::<Pair>().await, None);
    }

    #[test]
    fn who_says_too_much_is_told_and_does_not_wait() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let speaker = Speaker::new(ours);
        assert!((0..1_000_000).any(|_| speaker.say(Pair(0, 0)).is_err()));
    }
}
