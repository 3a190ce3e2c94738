use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use tutti_transport::{Error, Peer};

use crate::dial::{Dial, Failure, Progress};
use crate::job::{Job, tune_inside_host};
use crate::strangers::{Proven, Strangers, turn_away};
use crate::stream::Stream;
use crate::timer::Timer;

pub(crate) const LISTENER: Token = Token(0);
pub(crate) const TIMER: Token = Token(1);
/// Peer `p` has token `PEERS + p`; after all peers come the strangers.
const PEERS: usize = 2;

/// How many connections are accepted before other events have their turn.
const ACCEPTS_AT_ONCE: usize = 128;

/// How long accepting rests when the system refuses it (as for want of descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// All sockets of a transport, and what is known of each.
pub(crate) struct Net {
    job: Job,
    addresses: Vec<Option<SocketAddr>>,
    links: Vec<Link>,
    strangers: Strangers,
    listener: TcpListener,
    accept_again: Option<Instant>,
    timer: Timer,
    /// There is news that no `park` has told of.
    untold: bool,
    /// By peer, whether an event has told of its connection since that was asked.
    stirred: Vec<bool>,
}

/// The way to one peer.
enum Link {
    /// Never used by this side; or it is the other side's turn to connect.
    Idle,
    Dialing(Box<Dial>),
    Up(Box<Stream>),
    Failed(Failure),
}

impl Net {
    pub(crate) fn new(
        job: Job,
        addresses: Vec<Option<SocketAddr>>,
        listener: TcpListener,
        timer: Timer,
    ) -> Net {
        let n = addresses.len();
        Net {
            job,
            links: (0..n).map(|_| Link::Idle).collect(),
            strangers: Strangers::new(n, Token(PEERS + n)),
            addresses,
            listener,
            accept_again: None,
            timer,
            untold: false,
            stirred: vec![false; n],
        }
    }

    pub(crate) fn know(&mut self, peer: Peer, address: SocketAddr) {
        self.addresses[peer.index()] = Some(address);
    }

    pub(crate) fn take_stirred(&mut self) -> Vec<Peer> {
        let stirred = (0..).zip(&mut self.stirred);
        stirred.filter_map(|(peer, is)| std::mem::take(is).then_some(Peer(peer))).collect()
    }

    /// The stream to `peer`, if it stands.
    pub(crate) fn stream(&mut self, peer: Peer) -> Option<&mut Stream> {
        match self.links.get_mut(peer.index()) {
            Some(Link::Up(stream)) => Some(stream),
            _ => None,
        }
    }

    /// Sees to it that the stream to `peer` is made.
    pub(crate) fn open(&mut self, peer: Peer, registry: &Registry) -> Result<(), Error> {
        let index = peer.index();
        let refuse = |what: String| {
            Err(Error::Io { peer: Some(peer), what, source: ErrorKind::InvalidInput.into() })
        };
        match self.links.get(index) {
            None => return refuse(format!("there are {} peers", self.links.len())),
            Some(Link::Failed(failure)) => return Err(failure.error(peer)),
            Some(Link::Dialing(_) | Link::Up(_)) => return Ok(()),
            Some(Link::Idle) if peer > self.job.me => return Ok(()),
            Some(Link::Idle) if peer == self.job.me => {
                return refuse("no connection leads to oneself".into());
            }
            Some(Link::Idle) => {}
        }
        let Some(to) = self.addresses[index] else {
            return refuse("the peer's address is not known".into());
        };
        let now = Instant::now();
        let dial = Dial::new(peer, to, Token(PEERS + index), now);
        self.links[index] = Link::Dialing(Box::new(dial));
        self.dial(index, registry, now);
        self.set_timer()
    }

    /// Does what an event calls for; whether a caller can do more than before.
    pub(crate) fn on_event(&mut self, event: &Event, registry: &Registry, now: Instant) -> bool {
        match event.token() {
            LISTENER => self.accept(registry, now),
            TIMER => {
                self.timer.rang();
                std::mem::take(&mut self.untold) | self.on_time(registry, now)
            }
            Token(n) if n < PEERS + self.links.len() => match &mut self.links[n - PEERS] {
                Link::Up(stream) => {
                    self.stirred[n - PEERS] = true;
                    stream.on_event(event)
                }
                Link::Dialing(_) => self.dial(n - PEERS, registry, now),
                Link::Idle | Link::Failed(_) => false,
            },
            token => self.strangers.advance(token).is_some_and(|p| self.adopt(p, registry)),
        }
    }

    /// Lets the timer tell of news that came while no `park` listened.
    pub(crate) fn tell_later(&mut self) -> Result<(), Error> {
        self.untold = true;
        self.set_timer()
    }

    /// Sets the timer to the next time at which something must be done.
    pub(crate) fn set_timer(&mut self) -> Result<(), Error> {
        let dials = self.links.iter().filter_map(|link| match link {
            Link::Dialing(dial) => dial.deadline(&self.job),
            _ => None,
        });
        let at_once = self.untold.then(Instant::now);
        let others = self.strangers.deadline(&self.job).into_iter().chain(self.accept_again);
        let next = dials.chain(others).chain(at_once).min();
        let set = self.timer.set(next);
        set.map_err(|source| Error::Io { peer: None, what: "cannot set a timer".into(), source })
    }

    fn on_time(&mut self, registry: &Registry, now: Instant) -> bool {
        self.strangers.expire(&self.job, now);
        let mut news = false;
        if self.accept_again.take_if(|at| *at <= now).is_some() {
            news |= self.accept(registry, now);
        }
        for index in 0..self.links.len() {
            news |= self.dial(index, registry, now);
        }
        news
    }

    /// Goes on with a dial, if there is one; whether it came to its end.
    fn dial(&mut self, index: usize, registry: &Registry, now: Instant) -> bool {
        let Link::Dialing(dial) = &mut self.links[index] else {
            return false;
        };
        match dial.advance(&self.job, registry, now) {
            Progress::Waits => return false,
            Progress::Failed(failure) => self.links[index] = Link::Failed(failure),
            Progress::Up(socket) => self.set_up(socket, index, registry),
        }
        self.stirred[index] = true;
        true
    }

    /// Accepts whoever waits; whether one of them is a peer already.
    fn accept(&mut self, registry: &Registry, now: Instant) -> bool {
        let mut news = false;
        for _ in 0..ACCEPTS_AT_ONCE {
            match self.listener.accept() {
                Ok(stranger) => {
                    let proven = self.strangers.admit(stranger, &self.job, registry, now);
                    news |= proven.is_some_and(|proven| self.adopt(proven, registry));
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return news,
                Err(e) if is_of_one_connection(&e) => {}
                Err(e) => {
                    tracing::warn!("cannot accept connections for now: {e}");
                    self.accept_again = Some(now + ACCEPT_PAUSE);
                    return news;
                }
            }
        }
        // Renews the edge, if there are more.
        if registry.reregister(&mut self.listener, LISTENER, Interest::READABLE).is_err() {
            self.accept_again = Some(now + ACCEPT_PAUSE);
        }
        news
    }

    /// Gives a proven connection its place, if it is due to that peer.
    fn adopt(&mut self, proven: Proven, registry: &Registry) -> bool {
        let Proven { socket, address, peer } = proven;
        let index = peer as usize;
        if peer <= self.job.me.0 || !matches!(self.links.get(index), Some(Link::Idle)) {
            turn_away(address, &format!("no connection is due from peer {peer}"));
            return false;
        }
        self.set_up(socket, index, registry);
        true
    }

    fn set_up(&mut self, socket: TcpStream, index: usize, registry: &Registry) {
        tune_inside_host(&socket);
        let len = self.job.options.buffer_len_bytes;
        let stream = Stream::new(socket, Token(PEERS + index), len, registry);
        self.links[index] = Link::Up(Box::new(stream));
        self.stirred[index] = true;
    }
}

/// Whether an accept failed for a reason that lies with the connection, now gone.
fn is_of_one_connection(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::Interrupted | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset
    )
}
