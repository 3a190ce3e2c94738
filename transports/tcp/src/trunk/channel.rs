use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tutti_transport::{Error, Peer, Transport};

use super::Shared;
use super::bell::Watch;
use super::inner::WINDOW;
use super::pipe::Reader;
use crate::buffer::Buffer;

/// `peek` looks for more only where it shows less than this,
const SHOWN_LEAST: usize = 4 << 10;
/// and shows no more than this.
const SHOWN_MOST: usize = 256 << 10;
/// From here on, `recv` reads into the caller's memory without a stop in the buffer.
const DIRECT: usize = 16 << 10;
/// The receiver gives credit when its user has consumed so much.
const CREDIT: usize = WINDOW / 4;

/// A [`Transport`] over the connections of a [`Trunk`](crate::Trunk), for one group.
///
/// Up to 1 MiB per peer that its user has not consumed is kept, beside a buffer of 256 KiB. Its thread may sleep in
/// [`park`](Transport::park) while those of other channels read: it is woken for what they find.
/// Dropping it tells the peers that are connected.
pub struct Channel {
    shared: Arc<Shared>,
    id: u64,
    members: Vec<Peer>,
    /// By peer.
    arrived: Vec<Arrived>,
    watch: OnceLock<Arc<Watch>>,
}

/// What has arrived from a peer and was taken over from the trunk.
#[derive(Default)]
struct Arrived {
    /// Made on first use.
    buffer: Option<Buffer>,
    /// For how much no credit has been given.
    due: usize,
}

impl Arrived {
    fn shown(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], Buffer::shown)
    }
}

impl Channel {
    pub(super) fn new(shared: Arc<Shared>, id: u64, members: Vec<Peer>) -> Channel {
        let arrived = members.iter().map(|_| Arrived::default()).collect();
        Channel { shared, id, members, arrived, watch: OnceLock::new() }
    }

    fn member(&self, peer: Peer) -> Result<Peer, Error> {
        self.members.get(peer.index()).copied().ok_or_else(|| Error::Io {
            peer: Some(peer),
            what: format!("there are {} peers", self.members.len()),
            source: std::io::ErrorKind::InvalidInput.into(),
        })
    }

    /// Fills the buffer with what has arrived, as far as it fits.
    fn fill(&mut self, peer: Peer) -> Result<(), Error> {
        let buffer = &mut self.arrived[peer.index()].buffer;
        let buffer = buffer.get_or_insert_with(|| Buffer::new(SHOWN_MOST));
        let read = read(&self.shared, self.id, self.members[peer.index()], buffer.tail());
        buffer.filled(*read.as_ref().unwrap_or(&0));
        match read {
            Err(error) if buffer.shown().is_empty() => Err(named(error, peer)),
            _ => Ok(()),
        }
    }

    /// Moves what the buffer has to `dst`, as far as it fits.
    fn take(&mut self, peer: Peer, dst: &mut [u8]) -> usize {
        let shown = self.arrived[peer.index()].shown();
        let len = shown.len().min(dst.len());
        dst[..len].copy_from_slice(&shown[..len]);
        self.consume(peer, len);
        len
    }

    /// The user has consumed `len` bytes.
    fn credit(&mut self, peer: Peer, len: usize) {
        let due = &mut self.arrived[peer.index()].due;
        *due += len;
        if *due >= CREDIT {
            let len = std::mem::take(due);
            let member = self.members[peer.index()];
            self.shared.lock().give_credit(self.id, member, len);
        }
    }

    fn watch(&self) -> std::io::Result<&Arc<Watch>> {
        if self.watch.get().is_none() {
            let watch = Arc::new(Watch::new(self.shared.network())?);
            if self.watch.set(Arc::clone(&watch)).is_ok() {
                self.shared.lock().ports.watch(self.id, watch);
            }
        }
        Ok(self.watch.get().expect("it was set above"))
    }

    /// Sleeps until there is news for this channel. Whoever sleeps first leads: it takes the
    /// network's news for all.
    fn sleep(&self, until: Option<Instant>) -> Result<(), Error> {
        let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut inner = self.shared.lock();
        let mut result = Ok(());
        while result.is_ok() && !inner.ports.take_news(self.id) {
            let left = left();
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            if inner.ports.lead(self.id) {
                drop(inner);
                let waited = wait(&[self.shared.network(), self.shared.kick.as_fd()], left);
                inner = self.shared.lock();
                inner.ports.lead_no_more();
                result = waited.and_then(|_| inner.harvest());
            } else {
                let condvar = inner.ports.sleeps(self.id, true);
                let limit = left.unwrap_or(Duration::MAX);
                let waited = condvar.wait_timeout(inner, limit);
                inner = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
                inner.ports.sleeps(self.id, false);
            }
        }
        inner.ports.hand_over();
        result
    }

    /// As `sleep`, until one of `also` is readable too.
    fn sleep_with(&self, also: &[BorrowedFd<'_>], until: Option<Instant>) -> Result<(), Error> {
        let watch = self.watch().map_err(cannot_wait)?;
        let fds: Vec<_> = std::iter::once(watch.as_fd()).chain(also.iter().copied()).collect();
        loop {
            let mut inner = self.shared.lock();
            inner.harvest()?;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if inner.ports.take_news(self.id) || left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            drop(inner);
            if wait(&fds, left)?.iter().skip(1).any(|is_readable| *is_readable) {
                return Ok(());
            }
        }
    }
}

impl Transport for Channel {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        let member = self.member(peer)?;
        let sent = self.shared.lock().send(self.id, member, bytes);
        sent.map_err(|error| named(error, peer))
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error> {
        self.member(peer)?;
        if self.arrived[peer.index()].shown().len() < SHOWN_LEAST {
            self.fill(peer)?;
        }
        Ok(self.arrived[peer.index()].shown())
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        match &mut self.arrived[peer.index()].buffer {
            Some(buffer) => buffer.consume(len),
            None => assert_eq!(len, 0, "bytes consumed where none are shown"),
        }
        self.credit(peer, len);
    }

    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, Error> {
        let member = self.member(peer)?;
        if dst.len() < DIRECT && self.arrived[peer.index()].shown().is_empty() {
            self.fill(peer)?;
        }
        let buffered = self.take(peer, dst);
        let rest = &mut dst[buffered..];
        if rest.len() < DIRECT {
            return Ok(buffered);
        }
        match read(&self.shared, self.id, member, rest) {
            Ok(more) => {
                self.credit(peer, more);
                Ok(buffered + more)
            }
            Err(_) if buffered > 0 => Ok(buffered),
            Err(error) => Err(named(error, peer)),
        }
    }

    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), Error> {
        let until = Instant::now().checked_add(limit);
        if also.is_empty() && !limit.is_zero() {
            self.sleep(until)
        } else {
            self.sleep_with(also, until)
        }
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        self.watch().ok().map(|watch| watch.as_fd())
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "tcp"
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.shared.lock().remove(self.id, &self.members);
    }
}

/// Moves what has arrived of a channel from `member` to `into`, as far as it fits; how much.
fn read(shared: &Shared, id: u64, member: Peer, into: &mut [u8]) -> Result<usize, Error> {
    let mut inner = shared.lock();
    let kept = inner.lane(id, member).inbox.take(into);
    let mut reader = Reader::new(id, &mut into[kept..]);
    let read = inner.read(member, &mut reader);
    match kept + reader.received {
        0 if inner.lane(id, member).closed => Err(Error::Closed { peer: member }),
        0 => read.map(|()| 0),
        len => Ok(len),
    }
}

/// Sleeps until one of the descriptors is readable; which are.
fn wait(fds: &[BorrowedFd<'_>], limit: Option<Duration>) -> Result<Vec<bool>, Error> {
    let mut fds: Vec<_> =
        fds.iter().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    // A limit beyond what the system can count is for ever.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(error) => Err(cannot_wait(error.into())),
    }
}

fn cannot_wait(source: std::io::Error) -> Error {
    Error::Io { peer: None, what: "cannot wait for the network".into(), source }
}

/// The error of a connection with the peer's number in this group.
fn named(error: Error, peer: Peer) -> Error {
    match error {
        Error::Closed { .. } => Error::Closed { peer },
        Error::Protocol { what, .. } => Error::Protocol { peer, what },
        Error::Io { what, source, peer: Some(_) } => Error::Io { peer: Some(peer), what, source },
        other => other,
    }
}
