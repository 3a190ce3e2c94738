//! A key-value store of the caller as the place where the ranks find the rendezvous.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tutti_topo::Rank;

use super::env::Place;
use super::{Rendezvous, UniqueId};
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::interfaces;

/// Where rank 0 puts the unique id.
const KEY: &str = "tutti/unique_id";

/// A key-value store that all ranks of a job reach, such as etcd, Redis or the store of a training
/// framework; [`Communicator::from_store`](crate::Communicator::from_store) starts from it.
///
/// The key `tutti/unique_id` is written once, by rank 0, and read by all others. So a store serves
/// one communicator: a job that makes several, or a store that outlives a job, needs a prefix of
/// its own before the key for each. The value is the job's secret: whoever reads it can join.
pub trait Store {
    /// Sets the key to the value, for all who get it from now on.
    ///
    /// # Errors
    ///
    /// Why it could not be set.
    fn set(&self, key: &str, value: &[u8]) -> io::Result<()>;

    /// The value of the key. Blocks until it is set, but no longer than `limit`.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](io::ErrorKind::TimedOut) if nobody has set it within the limit, or why the store
    /// cannot be asked.
    fn get(&self, key: &str, limit: Duration) -> io::Result<Vec<u8>>;
}

impl Place {
    /// The place at a rendezvous that the store names. On rank 0 this opens it, for as long as the
    /// process lives.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] names the key; those of opening a rendezvous on rank 0.
    pub(crate) fn from_store(
        store: &dyn Store,
        rank: Rank,
        size: u32,
        config: &Config,
    ) -> Result<Place, Error> {
        if size <= 1 {
            return Ok(Place { rank, size, meet: None });
        }
        let UniqueId { address, secret } = match rank {
            Rank(0) => publish(store, config)?,
            _ => find(store, rank, config.start_deadline)?,
        };
        Ok(Place { rank, size, meet: Some((vec![address], secret)) })
    }
}

fn publish(store: &dyn Store, config: &Config) -> Result<UniqueId, Error> {
    let rendezvous = open(config)?;
    let id = rendezvous.id();
    store.set(KEY, id.to_string().as_bytes()).map_err(|error| {
        let what = format!(
            "the store does not set the key {KEY:?}: {error}; look whether its server runs and can be written to \
             from this host"
        );
        Error::start(Some(Rank(0)), what)
    })?;
    rendezvous.detach();
    Ok(id)
}

fn find(store: &dyn Store, rank: Rank, limit: Duration) -> Result<UniqueId, Error> {
    let refuse = |what: String| Error::start(Some(rank), what);
    let value = store.get(KEY, limit).map_err(|error| {
        refuse(format!(
            "the store does not give the key {KEY:?} within {limit:?}: {error}; look whether rank 0 was started \
             and uses the same store with the same prefix, or raise TUTTI_START_DEADLINE"
        ))
    })?;
    let id = String::from_utf8_lossy(&value).parse();
    id.map_err(|error: Error| {
        refuse(format!(
            "the store's value of the key {KEY:?} is not what rank 0 sets there: {error}; give each job a prefix \
             of its own"
        ))
    })
}

/// A rendezvous at the address and port that the settings choose.
fn open(config: &Config) -> Result<Rendezvous, Error> {
    let mut address = own_address(config)?;
    let ports: Vec<u16> =
        config.port_range.as_ref().map_or(vec![0], |range| range.iter().collect());
    let mut last = None;
    for port in ports {
        address.set_port(port);
        match Rendezvous::bind(address) {
            Ok(rendezvous) => return Ok(rendezvous),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("there is at least one port"))
}

/// The address by which the other ranks may reach this host, IPv4 before IPv6.
fn own_address(config: &Config) -> Result<SocketAddr, Error> {
    let there = interfaces::of_this_host()
        .map_err(|source| Error::system("cannot list the network interfaces", source))?;
    let filter = config.socket_ifname.as_ref();
    let of_family = |like| {
        interfaces::candidates(&there, filter, like).map(|candidates| candidates[0].address())
    };
    of_family(Ipv4Addr::UNSPECIFIED.into())
        .or_else(|none| of_family(Ipv6Addr::UNSPECIFIED.into()).map_err(|_| none))
        .map_err(|problem| {
            let value = filter.map_or_else(String::new, ToString::to_string);
            Error::new(
                Some(Rank(0)),
                ErrorKind::Setting { name: "TUTTI_SOCKET_IFNAME".into(), value, problem },
            )
        })
}
