//! From the ranks' reports to a transport: the one place that names the concrete ones.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tutti_shm::Shm;
use tutti_tcp::Listener;
use tutti_topo::Rank;
use tutti_transport::handshake::Secret;
use tutti_transport::{Board, Error as TransportError, Peer, Transport};

use crate::bootstrap::wire::Report;
use crate::bootstrap::{Joined, Monitor};
use crate::config::{Config, TransportChoice};
use crate::error::{Error, ErrorKind};
use crate::interfaces;

/// A transport that reaches all ranks (peer `i` is rank `i`), and which of them share memory.
pub(crate) struct Links {
    pub(crate) transport: Box<dyn Transport>,
    /// Per rank a number: equal for ranks that share memory with each other.
    pub(crate) islands: Vec<u32>,
}

/// What this rank opens before it joins, so that its report can tell the address: at `ip`, by which
/// the hub is reached, or at that of an interface that the settings choose.
pub(crate) fn open(ip: IpAddr, config: &Config) -> Result<Listener, Error> {
    let ip = match &config.socket_ifname {
        Some(filter) => {
            let there = interfaces::of_this_host()
                .map_err(|source| Error::system("cannot list the network interfaces", source))?;
            interfaces::choose(&there, Some(filter), ip)
                .map_err(|problem| setting("TUTTI_SOCKET_IFNAME", filter, problem))?
        }
        None => ip,
    };
    let Some(range) = &config.port_range else {
        return Listener::bind(ip)
            .map_err(|error| refused(format!("cannot listen on {ip}"), error));
    };
    match Listener::bind_in(ip, range.iter()) {
        Err(TransportError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            let problem = format!(
                "none of these ports is free at {ip}; widen the range, each rank of a host needs one"
            );
            Err(setting("TUTTI_PORT_RANGE", range, problem))
        }
        result => result.map_err(|error| refused(format!("cannot listen on {ip}"), error)),
    }
}

fn setting(name: &str, value: &impl ToString, problem: String) -> Error {
    let (name, value) = (name.into(), value.to_string());
    Error::new(None, ErrorKind::Setting { name, value, problem })
}

fn refused(what: impl Into<String>, error: TransportError) -> Error {
    Error::system(what, std::io::Error::other(error))
}

/// Sets up the transport that `config` asks for. Blocks until the ranks of this host have met
/// in shared memory; TCP connections are made on first use.
pub(crate) fn connect(
    rank: Rank,
    listener: Listener,
    joined: &mut Joined,
    secret: &Secret,
    config: &Config,
) -> Result<Links, Error> {
    let limit = config.start_deadline;
    let (shm, islands) = match config.transport {
        TransportChoice::Tcp => (None, (0..joined.reports.len() as u32).collect()),
        TransportChoice::Auto | TransportChoice::Shm => {
            share_memory(rank, joined, secret, config, limit)?
        }
    };
    let me = islands[rank.index()];
    let is_local: Vec<bool> = islands.iter().map(|island| *island == me).collect();
    if config.transport == TransportChoice::Shm && is_local.contains(&false) {
        let host = |rank: usize| &joined.reports[rank].host;
        let other = is_local.iter().position(|local| !local).expect("just found");
        return Err(Error::new(
            Some(rank),
            ErrorKind::Setting {
                name: "TUTTI_TRANSPORT".into(),
                value: "shm".into(),
                problem: format!(
                    "rank {other} (host {}) and rank {rank} (host {}) share no memory; use auto or tcp",
                    host(other),
                    host(rank.index())
                ),
            },
        ));
    }
    let addresses = joined.reports.iter().enumerate();
    let addresses =
        addresses.map(|(peer, report)| (peer != rank.index()).then_some(report.address)).collect();
    let tcp = || {
        let options = tutti_tcp::Options { connect_timeout: limit, ..Default::default() };
        listener.into_transport(Peer(rank.0), addresses, secret.clone(), joined.session, options)
    };
    let transport: Box<dyn Transport> = match shm {
        Some(shm) if !is_local.contains(&false) => Box::new(shm),
        Some(shm) => Box::new(Mixed { shm, tcp: tcp(), is_local }),
        None => Box::new(tcp()),
    };
    Ok(Links { transport, islands })
}

/// As [`connect`], for ranks that know each other from another communicator: their reports are
/// those they gave there.
pub(crate) fn connect_again(
    rank: Rank,
    joined: &mut Joined,
    secret: &Secret,
    config: &Config,
) -> Result<Box<dyn Transport>, Error> {
    if joined.reports.len() == 1 {
        return Ok(Box::new(tutti_transport::memory::group(1, 4096).remove(0)));
    }
    let listener = open(joined.reports[rank.index()].address.ip(), config)?;
    let address = listener.local_addr().to_string();
    let addresses = exchange(rank, &mut joined.monitor, address.as_bytes(), config.start_deadline)?;
    for (report, address) in joined.reports.iter_mut().zip(addresses) {
        let address = String::from_utf8_lossy(&address);
        report.address = address.parse().map_err(|_| {
            Error::start(Some(rank), format!("a rank says it listens at {address:?}, no address"))
        })?;
    }
    Ok(connect(rank, listener, joined, secret, config)?.transport)
}

/// Brings together the ranks of each host. Ranks whose reports say that they may share memory try
/// to; who fails is an island of its own, on all ranks.
fn share_memory(
    rank: Rank,
    joined: &mut Joined,
    secret: &Secret,
    config: &Config,
    limit: Duration,
) -> Result<(Option<Shm>, Vec<u32>), Error> {
    let groups = islands(&joined.reports);
    let members: Vec<Peer> = peers_of(&groups, groups[rank.index()]);
    let options = tutti_shm::Options {
        ring_bytes: config.shm_ring_bytes,
        board_bytes: config.shm_board_bytes,
    };
    let leader = members[0];
    let host = (leader == Peer(rank.0) && members.len() > 1)
        .then(|| tutti_shm::Host::create(&members, leader, &options));
    let name = match &host {
        Some(Ok(host)) => host.name().to_string(),
        Some(Err(error)) => {
            tracing::warn!(%error, "no shared memory on this host: its ranks use TCP");
            String::new()
        }
        None => String::new(),
    };
    let names = exchange(rank, &mut joined.monitor, name.as_bytes(), limit)?;
    let name = String::from_utf8_lossy(&names[leader.index()]).into_owned();
    let until = Instant::now() + limit;
    let shm = match host {
        Some(Ok(host)) => Some(host.serve(secret, joined.session, until)),
        _ if members.len() > 1 && !name.is_empty() => {
            Some(Shm::join(&name, &members, Peer(rank.0), leader, secret, joined.session, until))
        }
        _ => None,
    };
    if let Some(Err(error)) = &shm {
        tracing::warn!(rank = rank.0, %error, "shares no memory with the other ranks of its host and uses TCP");
    }
    let shm = shm.and_then(Result::ok);
    let together = exchange(rank, &mut joined.monitor, &[u8::from(shm.is_some())], limit)?;
    let alone = |rank: usize| together[rank] != [1];
    // The segment was laid out for all: when one of them is missing, none can use the board.
    let broken = |island: u32| (0..groups.len()).any(|rank| groups[rank] == island && alone(rank));
    let result: Vec<u32> = (0..groups.len())
        .map(|rank| if broken(groups[rank]) { rank as u32 } else { groups[rank] })
        .collect();
    Ok((shm.filter(|_| !broken(groups[rank.index()])), result))
}

/// Per rank the lowest rank with the same host key.
fn islands(reports: &[Report]) -> Vec<u32> {
    let first =
        |report: &Report| reports.iter().position(|other| other.host_key == report.host_key);
    reports.iter().map(|report| first(report).expect("a report equals itself") as u32).collect()
}

fn peers_of(islands: &[u32], island: u32) -> Vec<Peer> {
    (0..islands.len())
        .filter(|&rank| islands[rank] == island)
        .map(|rank| Peer(rank as u32))
        .collect()
}

/// A control exchange while starting.
fn exchange(
    rank: Rank,
    monitor: &mut Monitor,
    blob: &[u8],
    limit: Duration,
) -> Result<Vec<Vec<u8>>, Error> {
    monitor.exchange("start", blob, limit).map_err(|cause| match cause {
        Some(cause) => Error::new(Some(rank), ErrorKind::Failed(cause)),
        None => Error::start(
            Some(rank),
            format!("some ranks have joined but did not finish starting in {limit:?}"),
        ),
    })
}

/// Shared memory to the ranks of this host, TCP to the others.
struct Mixed<S, T> {
    shm: S,
    tcp: T,
    is_local: Vec<bool>,
}

impl<S: Transport, T: Transport> Mixed<S, T> {
    fn way(&mut self, peer: Peer) -> &mut dyn Transport {
        if self.is_local[peer.index()] { &mut self.shm } else { &mut self.tcp }
    }
}

impl<S: Transport, T: Transport> Transport for Mixed<S, T> {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, TransportError> {
        self.way(peer).send(peer, bytes)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], TransportError> {
        self.way(peer).peek(peer)
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        self.way(peer).consume(peer, len);
    }

    fn recv(&mut self, peer: Peer, dst: &mut [u8]) -> Result<usize, TransportError> {
        self.way(peer).recv(peer, dst)
    }

    /// Sleeps in shared memory's way, and watches TCP's descriptor meanwhile.
    fn park(&mut self, also: &[BorrowedFd<'_>], limit: Duration) -> Result<(), TransportError> {
        let watched: Vec<_> = also.iter().copied().chain(self.tcp.news()).collect();
        self.shm.park(&watched, limit)?;
        self.tcp.park(&[], Duration::ZERO)
    }

    fn kind(&self, peer: Peer) -> &'static str {
        if self.is_local[peer.index()] { self.shm.kind(peer) } else { self.tcp.kind(peer) }
    }

    fn board(&mut self) -> Option<&mut dyn Board> {
        None
    }
}
