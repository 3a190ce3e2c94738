use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use tutti_transport::handshake::Handshake;

use crate::job::{Job, tune};

/// How many connections, beyond one per peer, may be unproven at the same time.
const MORE_THAN_PEERS: usize = 64;

/// Accepted connections that have not proven yet that they belong to the job.
///
/// There are never more than a fixed number: one more drops the oldest.
pub(crate) struct Strangers {
    slots: Vec<Option<Stranger>>,
    first: Token,
}

struct Stranger {
    socket: TcpStream,
    address: SocketAddr,
    since: Instant,
    shake: Handshake,
}

/// A connection that has proven to be `peer`.
pub(crate) struct Proven {
    pub socket: TcpStream,
    pub address: SocketAddr,
    pub peer: u32,
}

impl Strangers {
    /// Room for the strangers of a group of `peers`; their tokens are `first` and those after it.
    pub(crate) fn new(peers: usize, first: Token) -> Strangers {
        Strangers { slots: (0..peers + MORE_THAN_PEERS).map(|_| None).collect(), first }
    }

    /// Takes a connection in, and hears what it has said already.
    pub(crate) fn admit(
        &mut self,
        (mut socket, address): (TcpStream, SocketAddr),
        job: &Job,
        registry: &Registry,
        since: Instant,
    ) -> Option<Proven> {
        let slot = self.free_slot();
        let token = Token(self.first.0 + slot);
        let interests = Interest::READABLE | Interest::WRITABLE;
        let ready = tune(&socket).and_then(|()| registry.register(&mut socket, token, interests));
        if let Err(e) = ready {
            turn_away(address, &e);
            return None;
        }
        let shake = Handshake::acceptor(&job.secret, job.session, job.me.0);
        self.slots[slot] = Some(Stranger { socket, address, since, shake });
        self.advance(token)
    }

    /// Goes on with one handshake, as far as is possible at once.
    pub(crate) fn advance(&mut self, token: Token) -> Option<Proven> {
        // The slot can be empty, or have a new owner, since the event was queued.
        let slot = self.slots.get_mut(token.0 - self.first.0)?;
        let stranger = slot.as_mut()?;
        let proven = stranger.shake.advance(&mut stranger.socket).transpose()?;
        let Stranger { socket, address, .. } = slot.take()?;
        proven
            .inspect_err(|why| turn_away(address, why))
            .map(|peer| Proven { socket, address, peer })
            .ok()
    }

    /// Drops those who have taken too long.
    pub(crate) fn expire(&mut self, job: &Job, now: Instant) {
        let late = |s: &mut Stranger| now.duration_since(s.since) >= job.options.handshake_timeout;
        for stranger in self.slots.iter_mut().filter_map(|slot| slot.take_if(late)) {
            turn_away(stranger.address, &"it took too long to prove that it belongs here");
        }
    }

    /// When the next of them will have taken too long.
    pub(crate) fn deadline(&self, job: &Job) -> Option<Instant> {
        self.oldest()?.1.checked_add(job.options.handshake_timeout)
    }

    fn free_slot(&mut self) -> usize {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return free;
        }
        let (oldest, _) = self.oldest().expect("no slot is free, and there are some");
        if let Some(stranger) = self.slots[oldest].take() {
            turn_away(stranger.address, &"too many others wait");
        }
        oldest
    }

    fn oldest(&self) -> Option<(usize, Instant)> {
        let taken = self.slots.iter().enumerate();
        taken
            .filter_map(|(i, slot)| Some((i, slot.as_ref()?.since)))
            .min_by_key(|&(_, since)| since)
    }
}

pub(crate) fn turn_away(address: SocketAddr, why: &dyn std::fmt::Display) {
    tracing::warn!(%address, %why, "turned a connection away");
}
