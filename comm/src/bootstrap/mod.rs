//! How ranks find each other: the rendezvous, and the line to the hub that stays.

mod barriers;
mod control;
mod env;
mod hub;
mod id;
mod job;
mod meet;
mod monitor;
mod nodes;
mod rank_table;
mod record;
mod session;
mod store;
pub(crate) mod wire;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tutti_topo::Rank;
use tutti_transport::handshake::{ANY, Handshake, HandshakeError, Secret};

pub(crate) use env::Place;
use hub::HubThread;
pub use id::UniqueId;
pub use monitor::AbortHandle;
pub(crate) use monitor::Monitor;
pub use store::Store;
use wire::{FromHub, Inbox, Report, ToHub, WHOLE, encode};

use crate::error::{Error, ErrorKind};

/// A place where the ranks of a job meet, served by a thread of this process.
///
/// It serves one communicator after another: each time as many ranks have joined as they say
/// they are. It must live as long as its communicators, for it also tells survivors which rank
/// has died.
pub struct Rendezvous {
    hub: HubThread,
    id: UniqueId,
}

impl Rendezvous {
    /// Opens a rendezvous at `address`; port 0 takes a free port. The secret is new and random.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::System`] if the address cannot be used.
    pub fn bind(address: SocketAddr) -> Result<Rendezvous, Error> {
        let secret =
            Secret::random().map_err(|source| Error::system("cannot make a secret", source))?;
        Rendezvous::bind_with(address, secret)
    }

    fn bind_with(address: SocketAddr, secret: Secret) -> Result<Rendezvous, Error> {
        let what = |what: &str| format!("{what} the rendezvous at {address}");
        let listener =
            listen(address).map_err(|source| Error::system(what("cannot open"), source))?;
        let address =
            listener.local_addr().map_err(|source| Error::system(what("cannot find"), source))?;
        let hub = HubThread::start(listener, secret.clone())
            .map_err(|source| Error::system(what("cannot serve"), source))?;
        Ok(Rendezvous { hub, id: UniqueId { address, secret } })
    }

    /// What the ranks need to find it.
    pub fn id(&self) -> UniqueId {
        self.id.clone()
    }

    /// Serves for as long as the process lives.
    fn detach(self) {
        self.hub.detach();
    }
}

/// A listening socket that takes over the port of a rendezvous that has just ended.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Whether trying again may help.
fn may_pass(error: &HandshakeError) -> bool {
    matches!(error, HandshakeError::Io(_) | HandshakeError::Closed)
}

/// What the system said, where it was the system.
fn source_of(error: HandshakeError) -> String {
    match error {
        HandshakeError::Io(source) => source.to_string(),
        other => other.to_string(),
    }
}

/// What a rank has after it joined.
pub(crate) struct Joined {
    pub(crate) monitor: Monitor,
    pub(crate) session: u64,
    pub(crate) reports: Vec<Report>,
}

/// How long a connection from an address may take before that address leads nowhere.
const REACH_TIME: Duration = Duration::from_secs(1);

/// A proven line to the hub on which this rank has not joined yet.
pub(crate) struct Line {
    stream: TcpStream,
    rank: Rank,
    until: Instant,
}

impl Line {
    /// Connects to the hub at one of `addresses`, again and again until it is there.
    ///
    /// Of several candidates some may belong to others: what answers there, but not as the hub of
    /// this job, is passed over as long as another candidate may yet be right.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] when `limit` has passed, with the last reason and the number of
    /// attempts; at once if all candidates answer and none is the hub of this job.
    pub(crate) fn connect(
        addresses: &[SocketAddr],
        secret: &Secret,
        rank: Rank,
        limit: Duration,
    ) -> Result<Line, Error> {
        let until = Instant::now() + limit;
        let mut pause = Duration::from_millis(2);
        for attempt in 1.. {
            let (mut absent, mut wrong) = (None, None);
            for &address in addresses {
                let left = until.saturating_duration_since(Instant::now());
                let left = left.min(patience(addresses.len())).max(Duration::from_millis(1));
                match connect_once(address, secret, rank, left) {
                    Ok(stream) => return Ok(Line { stream, rank, until }),
                    Err(error) if may_pass(&error) => {
                        tracing::debug!(%address, %error, attempt, "the rendezvous is not there yet");
                        absent = absent.or(Some((address, error)));
                    }
                    Err(error) => wrong = wrong.or(Some((address, error))),
                }
            }
            let Some(absent) = absent else {
                let wrong = wrong.expect("there is at least one address");
                return Err(Error::start(Some(rank), not_ours(&wrong)));
            };
            if until <= Instant::now() || no_loopback(&absent) {
                return Err(Error::start(Some(rank), nobody(absent, wrong, limit, attempt)));
            }
            std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
            // Many ranks that were refused together should not come back together.
            let jitter =
                Duration::from_micros(u64::from(std::process::id().wrapping_mul(7919) % 3000));
            pause = (pause * 2).min(Duration::from_millis(200)) + jitter;
        }
        unreachable!("the loop ends by returning")
    }

    /// The address by which this host reaches the hub.
    pub(crate) fn local_addr(&self) -> Result<SocketAddr, Error> {
        let address = self.stream.local_addr();
        address.map_err(|source| Error::system("cannot read the own address", source))
    }

    /// Whether there is a way to the hub, and back, from an address of this host.
    pub(crate) fn reaches_from(&self, from: SocketAddr) -> io::Result<()> {
        let hub = self.stream.peer_addr()?;
        let socket = Socket::new(Domain::for_address(hub), Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&from.into())?;
        socket.connect_timeout(&hub.into(), REACH_TIME)
    }

    /// Joins, and waits until all ranks have.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`]: refused, with the hub's reason, or the start deadline has passed,
    /// with the ranks that are missing.
    pub(crate) fn join(mut self, size: u32, report: Report) -> Result<Joined, Error> {
        let (rank, started) = (self.rank, Instant::now());
        let lost = |error: io::Error| {
            Error::new(
                Some(rank),
                ErrorKind::System { what: "the line to the rendezvous broke".into(), error },
            )
        };
        self.stream
            .write_all(&encode(WHOLE, &ToHub::Join { rank: rank.0, size, report }))
            .map_err(lost)?;
        let limit = self.until.saturating_duration_since(started);
        let (mut inbox, mut missing, mut warned) = (Inbox::default(), Vec::new(), false);
        loop {
            match inbox.next().map_err(lost)?.map(|(_, message)| message) {
                Some(FromHub::Welcome { session, reports }) => {
                    let monitor = Monitor::start(self.stream, inbox)
                        .map_err(|source| Error::system("cannot start the monitor", source))?;
                    return Ok(Joined { monitor, session, reports });
                }
                Some(FromHub::Refused(reason)) => return Err(Error::start(Some(rank), reason)),
                Some(FromHub::Waiting { missing: now }) => {
                    missing = now;
                    if !warned && started.elapsed() > limit / 3 {
                        warned = true;
                        tracing::warn!(
                            rank = rank.0,
                            ?missing,
                            "still waiting at start for these ranks"
                        );
                    }
                }
                Some(_) => {}
                None => {
                    let left = self.until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Error::start(Some(rank), late(&missing, size, limit)));
                    }
                    read_some(&mut self.stream, &mut inbox, left).map_err(lost)?;
                }
            }
        }
    }
}

/// How long one of so many candidates may take to answer.
fn patience(candidates: usize) -> Duration {
    Duration::from_secs(if candidates > 1 { 2 } else { 10 })
}

fn not_ours((address, error): &(SocketAddr, HandshakeError)) -> String {
    format!("what answers at {address} is not the rendezvous of this job: {error}")
}

/// Why the search for the hub is given up.
/// Whether the loopback interface is down: then waiting does not help.
fn no_loopback((address, error): &(SocketAddr, HandshakeError)) -> bool {
    let down = |source: &io::Error| source.kind() == io::ErrorKind::NetworkUnreachable;
    address.ip().is_loopback() && matches!(error, HandshakeError::Io(source) if down(source))
}

fn nobody(
    absent: (SocketAddr, HandshakeError),
    wrong: Option<(SocketAddr, HandshakeError)>,
    limit: Duration,
    attempts: u32,
) -> String {
    if no_loopback(&absent) {
        let address = absent.0;
        return format!(
            "the rendezvous at {address} is not reached: the loopback interface is down; bring it up by \
             `ip link set lo up`"
        );
    }
    let (address, error) = absent;
    let error = source_of(error);
    let also = wrong.map_or_else(String::new, |wrong| format!("; {}", not_ours(&wrong)));
    format!(
        "no rendezvous at {address} after {limit:?} and {attempts} attempts: {error}{also}; is rank 0 (or the \
         launcher) running, and is that address reachable from here?"
    )
}

fn late(missing: &[u32], size: u32, limit: Duration) -> String {
    let ranks = missing.iter().take(20).map(u32::to_string).collect::<Vec<_>>().join(", ");
    let more = if missing.len() > 20 { ", ..." } else { "" };
    format!(
        "after {limit:?} {} of {size} ranks have not joined (never seen: {ranks}{more}); look whether they were \
         started and reach the rendezvous, or raise TUTTI_START_DEADLINE",
        missing.len()
    )
}

/// Reads what is there, or waits for it, up to `limit`.
fn read_some(stream: &mut TcpStream, inbox: &mut Inbox, limit: Duration) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    stream.set_read_timeout(Some(limit))?;
    match stream.read(&mut buffer) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(len) => {
            inbox.add(&buffer[..len]);
            Ok(())
        }
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error),
    }
}

fn connect_once(
    address: SocketAddr,
    secret: &Secret,
    rank: Rank,
    limit: Duration,
) -> Result<TcpStream, HandshakeError> {
    let mut stream = TcpStream::connect_timeout(&address, limit).map_err(HandshakeError::Io)?;
    stream.set_nodelay(true).map_err(HandshakeError::Io)?;
    stream.set_read_timeout(Some(limit)).map_err(HandshakeError::Io)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(10))
        .with_interval(Duration::from_secs(5));
    SockRef::from(&stream).set_tcp_keepalive(&keepalive).map_err(HandshakeError::Io)?;
    match Handshake::connector(secret, 0, rank.0, ANY).advance(&mut stream)? {
        Some(_) => Ok(stream),
        None => Err(HandshakeError::Io(io::ErrorKind::TimedOut.into())),
    }
}
