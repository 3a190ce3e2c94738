//! Connections that several transports share: one per pair of processes.
//!
//! A [`Channel`] is one group's transport on them. What it sends goes in frames, each behind a
//! [`Head`], as far as the receiver has given it credit: so a receiver always has room for what
//! comes, and a channel that nobody reads holds up no other. Of a frame that the socket took only a
//! part of, the trunk keeps the rest, and whoever uses the connection next sends it; the channel's
//! user hears that it was taken then.
//!
//! Whichever thread reads from a connection sorts what came by channels and wakes their threads.
//! Of the threads that sleep, one (the leader) sleeps in the kernel, the others by condition
//! variables; a leader that goes hands over to one of them.

mod bell;
mod channel;
mod frame;
mod inner;
mod pipe;
mod ports;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use tutti_transport::handshake::Secret;
use tutti_transport::{Error, Peer};

use bell::Bell;
pub use channel::Channel;
use inner::Inner;

use crate::{Listener, Options};

/// A process's shared connections to the others; clones are the same.
#[derive(Clone)]
pub struct Trunk(Arc<Shared>);

struct Shared {
    inner: Mutex<Inner>,
    /// Readable when the network has news.
    network: OwnedFd,
    /// Wakes the leader.
    kick: Arc<Bell>,
    address: SocketAddr,
}

impl Trunk {
    /// The connections of `me` among `size` processes, none of which is known yet.
    ///
    /// All have the same `secret` and `session`; see [`Listener::into_transport`]. Of the options,
    /// the length of buffers does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if no descriptors are left.
    pub fn new(
        listener: Listener,
        me: Peer,
        size: usize,
        secret: Secret,
        session: u64,
        options: Options,
    ) -> Result<Trunk, Error> {
        let address = listener.local_addr();
        let options = Options { buffer_len_bytes: 0, ..options };
        let tcp = listener.into_transport(me, vec![None; size], secret, session, options);
        let what = "cannot make the descriptors of shared connections";
        let refused = |source| Error::Io { peer: None, what: what.into(), source };
        let network = tcp.network().try_clone_to_owned().map_err(refused)?;
        let kick = Arc::new(Bell::new().map_err(refused)?);
        let inner = Mutex::new(Inner::new(tcp, size, Arc::clone(&kick)));
        Ok(Trunk(Arc::new(Shared { inner, network, kick, address })))
    }

    /// Where it listens; see [`Listener::local_addr`].
    pub fn local_addr(&self) -> SocketAddr {
        self.0.address
    }

    /// Tells where a process listens. Needed of those below this one.
    pub fn know(&self, peer: Peer, address: SocketAddr) {
        self.0.lock().tcp.know(peer, address);
    }

    /// The transport of a group: its peer `i` is `members[i]` here, and one of them is this process.
    ///
    /// All members give it the same `id`, which no other group ever has. Each must have made it
    /// before another one sends: what comes for a channel that is not there is thrown away.
    ///
    /// # Panics
    ///
    /// If the trunk has a channel of this id, or a member is none of its processes.
    pub fn channel(&self, id: u64, members: Vec<Peer>) -> Channel {
        self.0.lock().add(id, &members);
        Channel::new(Arc::clone(&self.0), id, members)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn network(&self) -> std::os::fd::BorrowedFd<'_> {
        self.network.as_fd()
    }
}
