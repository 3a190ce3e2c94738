//! The other members' side of setting up: they ask the leader for the segment.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tutti_transport::Peer;
use tutti_transport::handshake::{Handshake, Secret};

use crate::error::Error;
use crate::handover::{confirm, other_user, take};
use crate::members::Members;
use crate::segment::Segment;
use crate::shm::Shm;
use crate::waker::timespec;

impl Shm {
    /// Gets the segment from `leader`, whose [`Host`](crate::Host) has the name `name`, as `me`,
    /// one of `members`. Blocks until it is mapped.
    ///
    /// # Errors
    ///
    /// [`Error::Late`] if the leader does not answer before `deadline`, [`Error::OtherUser`] or
    /// [`Error::Handshake`] if it is not to be trusted or does not trust this process,
    /// [`Error::Segment`] if its segment is not made for these members, [`Error::Argument`] for a
    /// bad list, [`Error::Io`] if nobody listens or the system refuses to connect or to map.
    pub fn join(
        name: &str,
        members: &[Peer],
        me: Peer,
        leader: Peer,
        secret: &Secret,
        session: u64,
        deadline: Instant,
    ) -> Result<Shm, Error> {
        let members = Members::new(members, me)?;
        let mut stream = connect_until(name, leader, deadline)?;
        if let Some(uid) = other_user(&stream).map_err(Error::io("cannot ask who leads"))? {
            return Err(Error::OtherUser { leader, uid });
        }
        let mut handshake = Handshake::connector(secret, session, me.0, leader.0);
        while handshake
            .advance(&mut stream)
            .map_err(|source| Error::Handshake { leader, source })?
            .is_none()
        {
            wait(&stream, leader, deadline)?;
        }
        let segment = Segment::open(receive(&stream, leader, deadline)?, members.peers())?;
        let shm = Shm::new(segment, members)?;
        confirm(&stream).map_err(Error::io("cannot tell the leader that its memory is mapped"))?;
        Ok(shm)
    }
}

/// Connects to the leader. That waits while the leader's queue is full.
fn connect_until(name: &str, leader: Peer, deadline: Instant) -> Result<UnixStream, Error> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|_| {
        let what = format!("{name:?} cannot be the name of a socket");
        Error::Argument { what }
    })?;
    let limit = left(leader, deadline)?;
    let connected = || {
        let kind = SocketType::STREAM;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
        connect(&socket, &address).map(|()| socket)
    };
    let failed = format!("cannot connect to the socket of the leader, peer {leader}, at {name}");
    let socket = match connected() {
        Err(Errno::AGAIN) => return Err(Error::Late { leader }),
        done => done.map_err(Error::io(failed.clone()))?,
    };
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(true).map_err(Error::io::<io::Error>(failed))?;
    Ok(stream)
}

fn receive(stream: &UnixStream, leader: Peer, deadline: Instant) -> Result<OwnedFd, Error> {
    loop {
        match take(stream) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => wait(stream, leader, deadline)?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            taken => {
                let what = format!("the leader, peer {leader}, hands over no shared memory");
                return taken.map_err(Error::io(what));
            }
        }
    }
}

/// Sleeps until the leader has said more. (What this side says always fits the socket's buffer.)
fn wait(stream: &UnixStream, leader: Peer, deadline: Instant) -> Result<(), Error> {
    let limit = timespec(left(leader, deadline)?);
    match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(refused) => Err(Error::io("cannot wait for the leader")(refused)),
    }
}

/// How long there is to go; for the system, so never 0.
fn left(leader: Peer, deadline: Instant) -> Result<Duration, Error> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(Error::Late { leader }),
        left => Ok(left),
    }
}
