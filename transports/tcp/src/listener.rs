use std::io;
use std::net::SocketAddr;

use mio::net::TcpListener;
use mio::{Interest, Poll};
use socket2::{Domain, Protocol, Socket, Type};
use tutti_transport::handshake::Secret;
use tutti_transport::{Error, Peer};

use crate::Tcp;
use crate::job::{Job, Options};
use crate::net::{LISTENER, Net, TIMER};
use crate::timer::Timer;

/// How many connections the kernel completes before this process has looked at them.
const BACKLOG: i32 = 1024;

/// A socket that the other peers can connect to. Nothing is accepted before it is a [`Tcp`].
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    poll: Poll,
    timer: Timer,
}

impl Listener {
    /// Listens at an address, on a port of the system's choice; its port does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if no interface has this address, or no descriptors are left.
    pub fn bind(mut at: SocketAddr) -> Result<Listener, Error> {
        at.set_port(0);
        Listener::bind_at(at).map_err(|source| Error::Io {
            peer: None,
            what: format!("cannot listen at {}", at.ip()),
            source,
        })
    }

    /// Listens at an address, on the first of `ports` that is free; its port does not count.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] as [`Listener::bind`], and with the last reason (as `AddrInUse`) if there is
    /// no free port.
    pub fn bind_in(
        mut at: SocketAddr,
        ports: impl IntoIterator<Item = u16>,
    ) -> Result<Listener, Error> {
        let mut last = io::Error::from(io::ErrorKind::InvalidInput);
        for port in ports {
            at.set_port(port);
            match Listener::bind_at(at) {
                Err(error) if is_of_one_port(&error) => last = error,
                Err(error) => {
                    last = error;
                    break;
                }
                Ok(listener) => return Ok(listener),
            }
        }
        let ip = at.ip();
        let what = format!("cannot listen at {ip} on any of the given ports");
        Err(Error::Io { peer: None, what, source: last })
    }

    pub(crate) fn bind_at(wanted: SocketAddr) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(wanted), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.bind(&wanted.into())?;
        socket.listen(BACKLOG)?;
        let mut listener = TcpListener::from_std(socket.into());
        let address = listener.local_addr()?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        Ok(Listener { listener, address, poll, timer })
    }

    /// Where it listens: with the port, and an unspecified address (`0.0.0.0`, `::`) as it is.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The transport of peer `me` in the group of `peers`, given by their listeners' addresses.
    ///
    /// An address is needed of those below `me` only. All of the group have the same `secret` and
    /// `session`; a connection that does not prove both is turned away.
    pub fn into_transport(
        self,
        me: Peer,
        peers: Vec<Option<SocketAddr>>,
        secret: Secret,
        session: u64,
        options: Options,
    ) -> Tcp {
        let job = Job { me, secret, session, options };
        Tcp::new(self.poll, Net::new(job, peers, self.listener, self.timer))
    }
}

/// Whether another port may be free: this one is taken, or for privileged processes only.
fn is_of_one_port(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}
