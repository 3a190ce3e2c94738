//! From the ranks' reports to a transport: the one place that names the concrete ones.

mod mixed;
mod shared;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tutti_shm::Shm;
use tutti_tcp::Listener;
use tutti_topo::Rank;
use tutti_transport::handshake::Secret;
use tutti_transport::{Error as TransportError, Peer, Transport};

use crate::bootstrap::wire::Report;
use crate::bootstrap::{Joined, Line, Monitor};
use crate::config::{Config, TransportChoice};
use crate::error::{Error, ErrorKind};
use crate::interfaces;
use mixed::Mixed;
pub(crate) use shared::SharedTcp;

/// A transport that reaches all ranks (peer `i` is rank `i`), and which of them share memory.
pub(crate) struct Links {
    pub(crate) transport: Box<dyn Transport>,
    /// Per rank a number: equal for ranks that share memory with each other.
    pub(crate) islands: Vec<u32>,
}

/// What this rank opens before it joins, so that its report can tell the address: at that by which
/// the hub is reached, or at that of an interface that the settings allow.
pub(crate) fn open(line: &Line, config: &Config) -> Result<Listener, Error> {
    let own = line.local_addr()?;
    let Some(filter) = &config.socket_ifname else { return listen(own, config) };
    let there = interfaces::of_this_host()
        .map_err(|source| Error::system("cannot list the network interfaces", source))?;
    let candidates = interfaces::candidates(&there, Some(filter), own.ip())
        .map_err(|problem| setting("TUTTI_SOCKET_IFNAME", filter, problem))?;
    let chosen = match &candidates[..] {
        [only] => only,
        [first, ..] if first.ip == own.ip() => first,
        several => interfaces::first_that_reaches(several, |from| line.reaches_from(from)),
    };
    listen(chosen.address(), config)
}

/// Listens at an address whose port does not count, by the ports that the settings allow.
fn listen(at: SocketAddr, config: &Config) -> Result<Listener, Error> {
    let ip = at.ip();
    let Some(range) = &config.port_range else {
        return Listener::bind(at)
            .map_err(|error| refused(format!("cannot listen on {ip}"), error));
    };
    match Listener::bind_in(at, range.iter()) {
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
/// in shared memory; TCP connections are made on first use, over `listener`.
pub(crate) fn connect(
    rank: Rank,
    listener: Listener,
    joined: &mut Joined,
    secret: &Secret,
    config: &Config,
) -> Result<Links, Error> {
    connect_by(rank, joined, secret, config, |joined| {
        let options =
            tutti_tcp::Options { connect_timeout: config.start_deadline, ..Default::default() };
        let addresses = joined.reports.iter().map(|report| Some(report.address)).collect();
        let me = Peer(rank.0);
        Ok(listener.into_transport(me, addresses, secret.clone(), joined.session, options))
    })
}

/// As [`connect`], for a group of ranks that have joined before; `world_ranks` are those of its
/// members. TCP goes over the connections that all groups share.
pub(crate) fn connect_group(
    rank: Rank,
    world_ranks: &[u32],
    shared: &SharedTcp,
    joined: &mut Joined,
    config: &Config,
) -> Result<Box<dyn Transport>, Error> {
    if world_ranks.len() == 1 {
        return Ok(Box::new(tutti_transport::memory::group(1, 4096).remove(0)));
    }
    let links = connect_by(rank, joined, shared.secret(), config, |joined| {
        shared.channel(rank, world_ranks, joined, config)
    })?;
    Ok(links.transport)
}

/// Sets up shared memory as far as it goes, and takes `tcp` where it does not go everywhere: on all
/// ranks then.
fn connect_by<T: Transport + 'static>(
    rank: Rank,
    joined: &mut Joined,
    secret: &Secret,
    config: &Config,
    tcp: impl FnOnce(&mut Joined) -> Result<T, Error>,
) -> Result<Links, Error> {
    let (shm, islands) = match config.transport {
        TransportChoice::Tcp => (None, (0..joined.reports.len() as u32).collect()),
        TransportChoice::Auto | TransportChoice::Shm => {
            share_memory(rank, joined, secret, config, config.start_deadline)?
        }
    };
    let me = islands[rank.index()];
    let is_local: Vec<bool> = islands.iter().map(|island| *island == me).collect();
    if config.transport == TransportChoice::Shm
        && let Some(other) = is_local.iter().position(|local| !local)
    {
        return Err(no_memory(rank, other, &joined.reports));
    }
    let transport: Box<dyn Transport> = match shm {
        Some(shm) if !is_local.contains(&false) => Box::new(shm),
        Some(shm) => Box::new(Mixed { shm, tcp: tcp(joined)?, is_local }),
        None => Box::new(tcp(joined)?),
    };
    Ok(Links { transport, islands })
}

/// Shared memory was asked for, and does not lead from `rank` to `other`.
fn no_memory(rank: Rank, other: usize, reports: &[Report]) -> Error {
    let (there, here) = (&reports[other].host, &reports[rank.index()].host);
    let problem = format!(
        "rank {other} (host {there}) and rank {rank} (host {here}) share no memory; use auto or tcp"
    );
    let (name, value) = ("TUTTI_TRANSPORT".into(), "shm".into());
    Error::new(Some(rank), ErrorKind::Setting { name, value, problem })
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
