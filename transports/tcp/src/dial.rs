use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use tutti_transport::handshake::{Handshake, HandshakeError};
use tutti_transport::{Error, Peer};

use crate::job::{Job, tune};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A connection in the making, from this side.
///
/// Attempts that are refused, unanswered or closed during the handshake are repeated, with
/// pauses that double, until they have gone on for the connect timeout. A handshake takes as long
/// as it takes: the other side answers when it next uses its transport.
pub(crate) struct Dial {
    peer: Peer,
    to: SocketAddr,
    token: Token,
    attempts: u32,
    /// When the first of the attempts that failed began.
    failing_since: Option<Instant>,
    phase: Phase,
}

enum Phase {
    Pause { until: Instant },
    Connecting(TcpStream, Instant),
    Shaking(TcpStream, Box<Handshake>),
    Over,
}

/// How far a dial is.
pub(crate) enum Progress {
    Waits,
    Up(TcpStream),
    Failed(Failure),
}

impl Dial {
    pub(crate) fn new(peer: Peer, to: SocketAddr, token: Token, now: Instant) -> Dial {
        let phase = Phase::Pause { until: now };
        Dial { peer, to, token, attempts: 0, failing_since: None, phase }
    }

    /// When this dial must be looked at, if nothing is heard of its socket.
    pub(crate) fn deadline(&self, job: &Job) -> Option<Instant> {
        match &self.phase {
            Phase::Pause { until } => Some(*until),
            Phase::Connecting(_, since) => since.checked_add(job.options.connect_timeout),
            Phase::Shaking(..) | Phase::Over => None,
        }
    }

    /// Goes on as far as is possible at once.
    pub(crate) fn advance(&mut self, job: &Job, registry: &Registry, now: Instant) -> Progress {
        loop {
            let overdue = self.deadline(job).is_some_and(|deadline| deadline <= now);
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Pause { .. } if overdue => match self.connect(registry) {
                    Ok(socket) => self.phase = Phase::Connecting(socket, now),
                    Err(e) => return self.fail(e, now, job, now),
                },
                Phase::Connecting(socket, since) => match connected(&socket) {
                    Ok(true) => {
                        let them = self.peer.0;
                        let shake = Handshake::connector(&job.secret, job.session, job.me.0, them);
                        self.phase = Phase::Shaking(socket, Box::new(shake));
                    }
                    Ok(false) if !overdue => {
                        self.phase = Phase::Connecting(socket, since);
                        return Progress::Waits;
                    }
                    Ok(false) => return self.fail(ErrorKind::TimedOut.into(), since, job, now),
                    Err(e) => return self.fail(e, since, job, now),
                },
                Phase::Shaking(mut socket, mut shake) => match shake.advance(&mut socket) {
                    Ok(Some(_)) => return Progress::Up(socket),
                    Ok(None) => {
                        self.phase = Phase::Shaking(socket, shake);
                        return Progress::Waits;
                    }
                    // It may have been too slow for the other side, or one of too many at once.
                    Err(e @ (HandshakeError::Closed | HandshakeError::Io(_))) => {
                        return self.fail(io::Error::other(e), now, job, now);
                    }
                    Err(e) => return Progress::Failed(Failure::Refused(e.to_string())),
                },
                pause @ (Phase::Pause { .. } | Phase::Over) => {
                    self.phase = pause;
                    return Progress::Waits;
                }
            }
        }
    }

    fn connect(&mut self, registry: &Registry) -> io::Result<TcpStream> {
        self.attempts += 1;
        let mut socket = TcpStream::connect(self.to)?;
        tune(&socket)?;
        registry.register(&mut socket, self.token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(socket)
    }

    /// Pauses before the next attempt, or gives up.
    fn fail(&mut self, why: io::Error, began: Instant, job: &Job, now: Instant) -> Progress {
        let failing = now.duration_since(*self.failing_since.get_or_insert(began));
        if failing >= job.options.connect_timeout {
            let (to, attempts) = (self.to, self.attempts);
            let what = format!("cannot connect to {to}, {attempts} attempts in {failing:.1?}");
            return Progress::Failed(Failure::Unreached(what, Arc::new(why)));
        }
        let pause = FIRST_PAUSE * (1 << (self.attempts - 1).min(6));
        self.phase = Phase::Pause { until: now + pause.min(LONGEST_PAUSE) };
        Progress::Waits
    }
}

/// Whether the connection stands.
fn connected(socket: &TcpStream) -> io::Result<bool> {
    if let Some(e) = socket.take_error()? {
        return Err(e);
    }
    match socket.peer_addr() {
        // Where nobody listens on a port that the kernel also hands out, a socket can happen to
        // be given that port as its own, and connects to itself.
        Ok(peer) if socket.local_addr()? == peer => Err(ErrorKind::ConnectionRefused.into()),
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}

/// Why a peer cannot be reached; every use of it says so.
pub(crate) enum Failure {
    /// What answers there does not let this process in, or is not let in.
    Refused(String),
    /// Nothing answers there. What was tried, and what the system said last.
    Unreached(String, Arc<io::Error>),
}

impl Failure {
    pub(crate) fn error(&self, peer: Peer) -> Error {
        match self {
            Failure::Refused(what) => Error::Protocol { peer, what: what.clone() },
            Failure::Unreached(what, why) => Error::Io {
                peer: Some(peer),
                what: what.clone(),
                source: io::Error::new(why.kind(), why.clone()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    #[test]
    fn a_socket_connected_to_itself_reached_nobody() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        socket.connect(&socket.local_addr().unwrap()).unwrap();
        let reached = connected(&TcpStream::from_std(socket.into()));
        assert_eq!(reached.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
