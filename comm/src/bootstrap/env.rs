//! From the launcher's variables to a place in the job.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use tutti_topo::Rank;
use tutti_transport::handshake::Secret;

use super::{Rendezvous, UniqueId};
use crate::config::{Config, Launch};
use crate::error::{Error, ErrorKind};

/// Which rank of how many this process is, and where the ranks meet.
pub(crate) struct Place {
    pub(crate) rank: Rank,
    pub(crate) size: u32,
    /// Addresses of the hub (several if a name has several), and the secret; none for a rank alone.
    pub(crate) meet: Option<(Vec<SocketAddr>, Secret)>,
}

impl Place {
    /// The place that the launcher's variables name. On rank 0 of a job without a launcher's
    /// rendezvous this also opens it, at `MASTER_ADDR:MASTER_PORT`, for as long as the process lives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Setting`] names the variable that is missing or makes no sense.
    pub(crate) fn from_config(config: &Config) -> Result<Place, Error> {
        let launch = &config.launch;
        if launch.rank.is_none() && launch.world_size.is_none() && launch.id.is_none() {
            return Ok(Place { rank: Rank(0), size: 1, meet: None });
        }
        let rank = Rank(number("RANK", &launch.rank)?);
        let size = number("WORLD_SIZE", &launch.world_size)?;
        if rank.0 >= size {
            let problem = format!("ranks go from 0 to WORLD_SIZE - 1, and WORLD_SIZE={size}");
            return Err(setting("RANK", &rank.to_string(), problem));
        }
        if let Some(id) = &launch.id {
            let UniqueId { address, secret } = id.parse()?;
            return Ok(Place { rank, size, meet: Some((vec![address], secret)) });
        }
        if size == 1 {
            return Ok(Place { rank, size, meet: None });
        }
        let addresses = master(launch)?;
        let secret = secret(config, &addresses);
        if rank.0 == 0 {
            host(&addresses, &secret)?.detach();
        }
        Ok(Place { rank, size, meet: Some((addresses, secret)) })
    }
}

fn setting(name: &str, value: &str, problem: impl Into<String>) -> Error {
    Error::new(
        None,
        ErrorKind::Setting { name: name.into(), value: value.into(), problem: problem.into() },
    )
}

fn needed<'a>(name: &str, value: &'a Option<String>) -> Result<&'a str, Error> {
    value.as_deref().ok_or_else(|| {
        setting(name, "", "is not set; a launcher sets RANK, WORLD_SIZE and MASTER_ADDR, MASTER_PORT (or TUTTI_ID)")
    })
}

fn number(name: &str, value: &Option<String>) -> Result<u32, Error> {
    let text = needed(name, value)?;
    text.parse().map_err(|_| setting(name, text, "a whole number from 0 is expected"))
}

fn master(launch: &Launch) -> Result<Vec<SocketAddr>, Error> {
    let host = needed("MASTER_ADDR", &launch.master_addr)?;
    let port = needed("MASTER_PORT", &launch.master_port)?;
    let port: u16 = port
        .parse()
        .map_err(|_| setting("MASTER_PORT", port, "a port from 1 to 65535 is expected"))?;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let found = (bare, port).to_socket_addrs();
    let found: Vec<_> = found
        .map_err(|error| setting("MASTER_ADDR", host, format!("cannot be resolved: {error}")))?
        .collect();
    if found.is_empty() {
        return Err(setting("MASTER_ADDR", host, "resolves to no address"));
    }
    Ok(found)
}

/// The job's secret, or else one that only keeps jobs at different addresses apart.
fn secret(config: &Config, addresses: &[SocketAddr]) -> Secret {
    config.job_secret.clone().unwrap_or_else(|| {
        if addresses.iter().any(|address| !address.ip().is_loopback()) {
            tracing::warn!(
                "TUTTI_JOB_SECRET is not set: any process that reaches {} can join this job",
                addresses[0]
            );
        }
        Secret::from_text(&format!("no secret, port {}", addresses[0].port()))
    })
}

/// Opens the rendezvous on rank 0: at the address itself, or on all interfaces where the
/// address is not one of this host's own (a load balancer's, a container's).
fn host(addresses: &[SocketAddr], secret: &Secret) -> Result<Rendezvous, Error> {
    let mut last = None;
    for &address in addresses {
        let any: IpAddr = match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match Rendezvous::bind_with(address, secret.clone()) {
            Ok(rendezvous) => return Ok(rendezvous),
            Err(error) if is_not_ours(&error) => {
                match Rendezvous::bind_with(SocketAddr::new(any, address.port()), secret.clone()) {
                    Ok(rendezvous) => return Ok(rendezvous),
                    Err(error) => last = Some(error),
                }
            }
            Err(error) => last = Some(error),
        }
    }
    let error = last.expect("there is at least one address");
    Err(Error::start(
        Some(Rank(0)),
        format!("{error}; if the port is taken, set MASTER_PORT to a free one"),
    ))
}

fn is_not_ours(error: &Error) -> bool {
    matches!(&error.kind, ErrorKind::System { error, .. } if error.kind() == std::io::ErrorKind::AddrNotAvailable)
}
