//! How a member sleeps, and how its peers wake it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::doorbell::{Doorbell, Sleep};
use crate::mapping::Shared;
use crate::sync::{AtomicU64, Ordering};

/// A member's part of the segment, apart from rings and board. All zero at first.
#[repr(C, align(128))]
pub(crate) struct Member {
    pub(crate) bell: Doorbell,
    /// Under which the member's socket is reached; set before the bell is first armed.
    address: [AtomicU64; 2],
}

// SAFETY: atomics, and padding.
unsafe impl Shared for Member {}

/// This member's socket: by it the member is woken when it waits for descriptors too, and through
/// it it wakes others.
pub(crate) struct Waker {
    socket: UnixDatagram,
}

impl Waker {
    /// Binds a socket to a name nobody else has, and leaves the name in `member`.
    pub(crate) fn bind(member: &Member) -> io::Result<Waker> {
        let address = random()?;
        let socket = UnixDatagram::bind_addr(&socket_address(&name(address))?)?;
        socket.set_nonblocking(true)?;
        for (word, value) in member.address.iter().zip(address) {
            word.store(value, Ordering::Relaxed);
        }
        Ok(Waker { socket })
    }

    /// Wakes `member` if it sleeps, or is about to. Needs a sequentially consistent fence after
    /// what was published.
    #[inline]
    pub(crate) fn wake(&self, member: &Member) {
        if member.bell.sleeps() {
            self.wake_sleeper(member);
        }
    }

    #[cold]
    fn wake_sleeper(&self, member: &Member) {
        let refused = match member.bell.ring() {
            None => return,
            Some(Sleep::Futex) => futex::wake(member.bell.futex(), futex::Flags::empty(), 1)
                .err()
                .map(io::Error::from),
            Some(Sleep::Datagram) => self.send_datagram(member).err(),
        };
        if let Some(why) = refused {
            tracing::debug!(%why, "cannot wake a member of the shared memory");
        }
    }

    fn send_datagram(&self, member: &Member) -> io::Result<()> {
        let [a, b] = &member.address;
        let address = [a.load(Ordering::Relaxed), b.load(Ordering::Relaxed)];
        match self.socket.send_to_addr(&[0], &socket_address(&name(address))?) {
            // Its queue is full, so it wakes anyway; or it is gone.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Sleeps until the owner of `bell`, armed for it, is woken.
    pub(crate) fn sleep(bell: &Doorbell, limit: Duration) -> io::Result<()> {
        let limit = timespec(limit);
        let armed = Sleep::Futex as u32;
        match futex::wait(bell.futex(), futex::Flags::empty(), armed, Some(&limit)) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Sleeps until a datagram wakes this member or one of `also` is readable.
    pub(crate) fn sleep_with(&self, also: &[BorrowedFd<'_>], limit: Duration) -> io::Result<()> {
        let own = PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN);
        let also = also.iter().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut watched: Vec<_> = [own].into_iter().chain(also).collect();
        match poll(&mut watched, Some(&timespec(limit))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
        if !watched[0].revents().is_empty() {
            while self.socket.recv(&mut [0]).is_ok() {}
        }
        Ok(())
    }
}

/// Sixteen random bytes, for a name that nobody can guess or have.
pub(crate) fn random() -> io::Result<[u64; 2]> {
    let word = || getrandom::u64().map_err(io::Error::other);
    Ok([word()?, word()?])
}

/// The name that belongs to a random value.
pub(crate) fn name([a, b]: [u64; 2]) -> String {
    format!("tutti-{a:016x}{b:016x}")
}

/// The name as an abstract address, which is gone with its socket.
pub(crate) fn socket_address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// For the system; waking early is allowed, so a limit beyond an hour is an hour.
pub(crate) fn timespec(limit: Duration) -> Timespec {
    const HOUR: Duration = Duration::from_secs(3600);
    limit.min(HOUR).try_into().expect("an hour fits")
}
