//! From the launcher's variables to a place in the job.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use tutti_topo::Rank;
use tutti_transport::handshake::Secret;

use super::meet::{self, Meeting, Seat, missing, setting};
use super::rank_table::RankTable;
use super::{Rendezvous, UniqueId};
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::interfaces;
use crate::launch::Launch;

/// Which rank of how many this process is, and where the ranks meet.
pub(crate) struct Place {
    pub(crate) rank: Rank,
    pub(crate) size: u32,
    /// Candidate addresses of the hub, and the secret by which it is known; none for a rank alone.
    pub(crate) meet: Option<(Vec<SocketAddr>, Secret)>,
}

impl Place {
    /// The place that the launcher's variables name. On rank 0 of a job without a launcher's
    /// rendezvous this also opens it, at the first candidate that is free, for as long as the
    /// process lives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Setting`] names the variable that is missing or makes no sense.
    pub(crate) fn from_config(config: &Config) -> Result<Place, Error> {
        let Some(seat) = seat(&config.launch)? else {
            return Ok(Place { rank: Rank(0), size: 1, meet: None });
        };
        let Seat { rank, size, .. } = seat;
        if let Some(id) = config.launch.get("TUTTI_ID") {
            let UniqueId { address, secret } = id.parse()?;
            return Ok(Place { rank, size, meet: Some((vec![address], secret)) });
        }
        if size == 1 {
            return Ok(Place { rank, size, meet: None });
        }
        let meeting = meet::place(config, &seat)?;
        let mut found = resolve(&meeting.host)?;
        let everywhere = is_own_name(&meeting.host, &found);
        if everywhere {
            found = beyond_loopback(config, found[0]).map_or(found, |ip| vec![ip]);
        }
        let addresses = with_ports(&found, &meeting.ports);
        let secret = secret(config, &meeting, &addresses);
        if rank.0 == 0 {
            host(&addresses, everywhere, &secret)?.detach();
        }
        Ok(Place { rank, size, meet: Some((addresses, secret)) })
    }
}

/// Which rank of how many this process is, if a launcher started it.
pub(super) fn seat(launch: &Launch) -> Result<Option<Seat>, Error> {
    let Some(launcher) = launch.launcher() else {
        return if launch.get("TUTTI_ID").is_some() { Err(missing("RANK")) } else { Ok(None) };
    };
    let rank = Rank(number(launch, launcher.rank)?);
    let table = launch.rank_table().filter(|_| launcher.rank == "RANK_ID");
    let table = table.map(|path| read_table(launch, path)).transpose()?;
    let size = match &table {
        Some(table) => table.size,
        None => number(launch, launcher.size)?,
    };
    if rank.0 >= size {
        let name = launcher.size;
        let problem = format!("ranks go from 0 to {name} - 1, and {name}={size}");
        return Err(setting(launcher.rank, &rank.to_string(), problem));
    }
    Ok(Some(Seat { rank, size, launcher, table }))
}

fn read_table(launch: &Launch, path: &str) -> Result<RankTable, Error> {
    let refuse = |what| setting("RANK_TABLE_FILE", path, what);
    let table = RankTable::read(path).map_err(refuse)?;
    match launch.get("RANK_SIZE") {
        Some(size) if size != table.size.to_string() => {
            let problem = format!("the rank table has {} ranks", table.size);
            Err(setting("RANK_SIZE", size, problem))
        }
        _ => Ok(table),
    }
}

fn number(launch: &Launch, name: &str) -> Result<u32, Error> {
    let text = launch.get(name).ok_or_else(|| missing(name))?;
    text.parse().map_err(|_| setting(name, text, "a whole number from 0 is expected"))
}

fn resolve(host: &str) -> Result<Vec<SocketAddr>, Error> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let found = (bare, 0).to_socket_addrs();
    let found: Vec<_> = found
        .map_err(|error| setting("MASTER_ADDR", host, format!("cannot be resolved: {error}")))?
        .collect();
    if found.is_empty() {
        return Err(setting("MASTER_ADDR", host, "resolves to no address"));
    }
    Ok(found)
}

/// Whether this is the host's own name, which its `/etc/hosts` gives a loopback address (as Debian's
/// 127.0.1.1) though other hosts know it by another.
fn is_own_name(host: &str, found: &[SocketAddr]) -> bool {
    let is_literal = host.parse::<IpAddr>().is_ok() || host.starts_with('[');
    let names_loopback = host.starts_with("localhost") || host.starts_with("ip6-");
    !is_literal && !names_loopback && found.iter().all(|address| address.ip().is_loopback())
}

/// The address by which other hosts may know this one.
fn beyond_loopback(config: &Config, like: SocketAddr) -> Option<SocketAddr> {
    let there = interfaces::of_this_host().ok()?;
    let filter = config.socket_ifname.as_ref();
    Some(interfaces::candidates(&there, filter, like.ip()).ok()?[0].address())
}

/// Every address with every port, in the order in which they are tried.
fn with_ports(found: &[SocketAddr], ports: &[u16]) -> Vec<SocketAddr> {
    let with_port = |mut address: SocketAddr, port| {
        address.set_port(port);
        address
    };
    ports.iter().flat_map(|&port| found.iter().map(move |&a| with_port(a, port))).collect()
}

/// The job's secret, or else one that only keeps jobs apart.
fn secret(config: &Config, meeting: &Meeting, addresses: &[SocketAddr]) -> Secret {
    config.job_secret.clone().unwrap_or_else(|| {
        if addresses.iter().any(|address| !address.ip().is_loopback()) {
            tracing::warn!(
                "TUTTI_JOB_SECRET is not set: any process that reaches {} can join this job",
                addresses[0]
            );
        }
        Secret::from_text(&format!("no secret, {}", meeting.mark))
    })
}

/// Opens the rendezvous on rank 0 at the first candidate that is free: at the address itself, or
/// on all interfaces if `everywhere`, and where the address is not one of this host's own (a load
/// balancer's, a container's).
fn host(addresses: &[SocketAddr], everywhere: bool, secret: &Secret) -> Result<Rendezvous, Error> {
    let mut last = None;
    for &address in addresses {
        let any: IpAddr = match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let any = SocketAddr::new(any, address.port());
        let at = |address| Rendezvous::bind_with(address, secret.clone());
        let opened = match at(if everywhere { any } else { address }) {
            Err(error) if is_not_ours(&error) => at(any),
            result => result,
        };
        match opened {
            Ok(rendezvous) => return Ok(rendezvous),
            Err(error) => last = Some(error),
        }
    }
    let error = last.expect("there is at least one address");
    let tried = match addresses {
        [_] => String::new(),
        _ => format!(" (the last of {} addresses tried)", addresses.len()),
    };
    Err(Error::start(
        Some(Rank(0)),
        format!("{error}{tried}; if the port is taken, set MASTER_PORT to a free one"),
    ))
}

fn is_not_ours(error: &Error) -> bool {
    matches!(&error.kind, ErrorKind::System { error, .. } if error.kind() == std::io::ErrorKind::AddrNotAvailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_calls_itself_loopback_is_seen() {
        let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 0);
        assert!(is_own_name("node03", &[at("127.0.1.1"), at("::1")]));
        assert!(!is_own_name("node03", &[at("127.0.1.1"), at("10.0.0.3")]));
        for literal in ["127.0.1.1", "[::1]", "::1", "localhost", "localhost.localdomain"] {
            assert!(!is_own_name(literal, &[at("127.0.0.1")]), "{literal}");
        }
    }

    #[test]
    fn every_address_is_tried_on_a_port_before_the_next_port() {
        let found: Vec<SocketAddr> = ["[::1]:0", "10.0.0.1:0"].map(|a| a.parse().unwrap()).into();
        let all = with_ports(&found, &[7, 8]).iter().map(SocketAddr::to_string).collect::<Vec<_>>();
        assert_eq!(all, ["[::1]:7", "10.0.0.1:7", "[::1]:8", "10.0.0.1:8"]);
    }
}
