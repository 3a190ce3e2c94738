//! The leader's side of setting up: it makes the segment and hands it out.

mod guest;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tutti_transport::Peer;
use tutti_transport::handshake::{Handshake, Secret};

use crate::error::Error;
use crate::handover::other_user;
use crate::layout::Options;
use crate::members::Members;
use crate::segment::Segment;
use crate::shm::Shm;
use crate::waker::{name, random, socket_address, timespec};
use guest::{Guest, Moved};

/// A host's shared memory before the other members have it: the leader's side.
///
/// Dropped, or when [`serve`](Host::serve) fails, it leaves those that have joined with a closed
/// peer.
pub struct Host {
    shm: Shm,
    listener: UnixListener,
    name: String,
}

/// How long a connection may take to join. More than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many connections of strangers may be waited for beside those of members.
const STRANGERS_MAX: usize = 16;

impl Host {
    /// Makes the segment for `members`, which ascend and among which is `me`, the caller; and a
    /// socket with a random abstract name, at which the others will ask for it.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a bad list or bad sizes, [`Error::Io`] if the system has no memory
    /// or sockets to give.
    pub fn create(members: &[Peer], me: Peer, options: &Options) -> Result<Host, Error> {
        let members = Members::new(members, me)?;
        let segment = Segment::create(members.peers(), options)?;
        let shm = Shm::new(segment, members)?;
        let name = random().map(name).map_err(Error::io("no random bytes for a name"))?;
        let listener = socket_address(&name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(Error::io(format!("cannot listen at the abstract socket {name}")))?;
        Ok(Host { shm, listener, name })
    }

    /// The name to be told to the other members, for [`Shm::join`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hands the segment to every other member. Blocks until all have mapped it.
    ///
    /// Whoever does not run as this user or root, does not prove that it holds `secret` in
    /// `session`, or is no member is turned away; nobody waits for such a connection.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`] if members have not joined by `deadline` or failed to, [`Error::Io`] if
    /// the system refuses to wait or to accept.
    pub fn serve(self, secret: &Secret, session: u64, deadline: Instant) -> Result<Shm, Error> {
        let me = self.shm.me();
        let mut door = Door {
            host: &self,
            awaited: self.shm.peers().iter().copied().filter(|&peer| peer != me).collect(),
            failed: BTreeSet::new(),
            guests: Vec::new(),
        };
        while door.is_open() && Instant::now() < deadline {
            door.wait(deadline)?;
            door.admit(|| Handshake::acceptor(secret, session, me.0))?;
            door.advance();
        }
        let missing = door.missing();
        if missing.is_empty() { Ok(self.shm) } else { Err(Error::Missing { peers: missing }) }
    }
}

/// Who is at the leader's socket, and who is yet to come.
struct Door<'a> {
    host: &'a Host,
    /// Members that have not come.
    awaited: BTreeSet<Peer>,
    /// Members that were given the segment and left without mapping it. They cannot have it
    /// again: they may have used their place.
    failed: BTreeSet<Peer>,
    guests: Vec<Guest>,
}

impl Door<'_> {
    /// Whether anybody may still join.
    fn is_open(&self) -> bool {
        !self.awaited.is_empty() || self.guests.iter().any(|guest| guest.holds().is_some())
    }

    fn missing(self) -> Vec<Peer> {
        let holding = self.guests.iter().filter_map(Guest::holds);
        let mut missing: BTreeSet<_> = holding.chain(self.awaited).collect();
        missing.extend(self.failed);
        missing.into_iter().collect()
    }

    /// Sleeps until somebody has come or said something, or has been here for too long.
    fn wait(&self, deadline: Instant) -> Result<(), Error> {
        let mut watched: Vec<_> =
            self.guests.iter().map(|guest| readable(guest.stream())).collect();
        if !self.is_full() {
            watched.push(readable(&self.host.listener));
        }
        let until = self.guests.iter().map(|guest| guest.until).fold(deadline, Instant::min);
        let limit = timespec(until.saturating_duration_since(Instant::now()));
        match poll(&mut watched, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(refused) => Err(Error::io("cannot wait for members")(refused)),
        }
    }

    fn is_full(&self) -> bool {
        self.guests.len() >= self.host.shm.peers().len() + STRANGERS_MAX
    }

    /// Lets in who has come, as far as there is room.
    fn admit(&mut self, handshake: impl Fn() -> Handshake) -> Result<(), Error> {
        while !self.is_full() {
            let stream = match self.host.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::io("cannot accept a member's connection")(e)),
            };
            match other_user(&stream).and_then(|user| stream.set_nonblocking(true).map(|()| user)) {
                Ok(None) => self.guests.push(Guest::new(stream, handshake(), PATIENCE)),
                Ok(Some(uid)) => tracing::warn!(uid, "turned away another user's connection"),
                Err(why) => tracing::warn!(%why, "turned away a connection"),
            }
        }
        Ok(())
    }

    /// Serves everybody as far as what they said allows.
    fn advance(&mut self) {
        let now = Instant::now();
        let file = self.host.shm.file();
        self.guests.retain_mut(|guest| {
            let why = match guest.advance(file, &mut self.awaited) {
                Ok(Moved::Joined) => return false,
                Ok(Moved::NotYet) if now < guest.until => return true,
                Ok(Moved::NotYet) => "it took too long".into(),
                Err(why) => why,
            };
            self.failed.extend(guest.holds());
            tracing::warn!(%why, peer = guest.holds().map(|peer| peer.0), "turned away a connection");
            false
        });
    }
}

fn readable(fd: &impl AsFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}
