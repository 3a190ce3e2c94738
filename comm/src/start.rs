//! From a place in the job to the parts of a communicator: the ranks meet, tell each other what
//! they are, and connect.

use std::collections::BTreeMap;
use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::fabric::{Fabric, Inside, RankReport};
use tutti_transport::{Peer, Transport};

use crate::bootstrap::wire::{GroupId, Report};
use crate::bootstrap::{Joined, Line, Place};
use crate::config::{Config, TransportChoice};
use crate::engine::Parts;
use crate::error::{Error, Member};
use crate::executor::Group;
use crate::interfaces::seen_from_here;
use crate::links::{self, Links, SharedTcp};
use crate::wait::Patience;
use crate::{cores, host};

/// Joins the job. Blocks until all ranks have.
pub(crate) fn join(place: Place, config: &Config) -> Result<Parts, Error> {
    let Place { rank, size, meet } = place;
    let Some((addresses, secret)) = meet else { return Ok(alone(config)) };
    let line = Line::connect(&addresses, &secret, rank, config.start_deadline)?;
    let listener = links::open(&line, config)?;
    let report = Report {
        host: host::name(),
        host_key: config.host_id.clone().unwrap_or_else(host::key),
        network: host::network(),
        pid: std::process::id(),
        numa_node: host::numa_node(),
        cores: cores::usable(),
        address: listener.local_addr(),
        settings: settings(config),
    };
    let own = report.address;
    let mut joined = line.join(size, report)?;
    for report in &mut joined.reports {
        report.address = seen_from_here(report.address, own);
    }
    compare_settings(rank, &joined.reports)?;
    if let Some(what) = out_of_reach(&joined.reports) {
        return Err(Error::start(Some(rank), what));
    }
    let Links { transport, islands } =
        links::connect(rank, listener, &mut joined, &secret, config)?;
    let shared = Arc::new(SharedTcp::new(rank, &joined, secret));
    let Joined { monitor, reports, .. } = joined;
    let key = &reports[rank.index()].host_key;
    let ranks_here = reports.iter().filter(|report| report.host_key == *key).count();
    let members = reports.iter().zip(0..);
    Ok(Parts {
        group: Group { me: rank, peers: (0..size).map(Peer).collect() },
        members: members
            .map(|(r, rank)| Member { rank, world_rank: rank, host: r.host.clone(), pid: r.pid })
            .collect(),
        patience: Patience::new(config.spin, config.deadline, ranks_here, cores_of(key, &reports)),
        fabric: fabric(&reports, &islands, config),
        transport,
        monitor: Some(monitor),
        acquaintance: Some(Acquaintance { reports, shared }),
    })
}

/// What the members of a communicator know of each other, from which a communicator of some of
/// them is made.
pub(crate) struct Acquaintance {
    reports: Vec<Report>,
    shared: Arc<SharedTcp>,
}

/// A communicator of some ranks of `parent`, in this order, among them the own one. All of them make
/// it by the same `id`. Blocks until they have.
pub(crate) fn group(
    parent: &Parts,
    id: GroupId,
    ranks: &[Rank],
    config: &Config,
) -> Result<Parts, Error> {
    let (Some(monitor), Some(known)) = (&parent.monitor, &parent.acquaintance) else {
        return Ok(alone(config));
    };
    let me = ranks.iter().position(|rank| *rank == parent.group.me);
    let me = Rank(me.expect("a group is made by its members") as u32);
    let of_parent = ranks.iter().map(|rank| &parent.members[rank.index()]);
    let members: Vec<_> =
        (0..).zip(of_parent).map(|(rank, member)| Member { rank, ..member.clone() }).collect();
    let reports = ranks.iter().map(|rank| known.reports[rank.index()].clone()).collect();
    let world_ranks: Vec<u32> = members.iter().map(|member| member.world_rank).collect();
    let monitor = monitor.open(id, world_ranks.clone());
    let mut joined = Joined { monitor, session: id, reports };
    let shared = Arc::clone(&known.shared);
    let transport = links::connect_group(me, &world_ranks, &shared, &mut joined, config)?;
    let Joined { monitor, reports, .. } = joined;
    Ok(Parts {
        group: Group { me, peers: (0..ranks.len() as u32).map(Peer).collect() },
        members,
        fabric: parent.fabric.subset(ranks),
        patience: parent.patience,
        transport,
        monitor: Some(monitor),
        acquaintance: Some(Acquaintance { reports, shared }),
    })
}

/// The parts of a communicator over a transport that stands already, without a hub.
pub(crate) fn over(
    transport: Box<dyn Transport>,
    rank: Rank,
    fabric: Fabric,
    config: &Config,
) -> Parts {
    let size = fabric.ranks();
    let pid = std::process::id();
    let member = |rank| Member { rank, world_rank: rank, host: host::name(), pid };
    Parts {
        group: Group { me: rank, peers: (0..size).map(Peer).collect() },
        members: (0..size).map(member).collect(),
        patience: Patience::new(config.spin, config.deadline, 1, 1.0),
        transport,
        fabric,
        monitor: None,
        acquaintance: None,
    }
}

fn alone(config: &Config) -> Parts {
    let cores = cores::usable().count();
    let report =
        RankReport { host: host::key(), numa_node: 0, cores, inside: Inside::SharedMemory };
    let transport = tutti_transport::memory::group(1, 4096).remove(0);
    over(Box::new(transport), Rank(0), Fabric::discovered(&[report]), config)
}

/// What must be set alike on all ranks, or they would wait for each other for ever.
fn settings(config: &Config) -> Vec<(String, String)> {
    let pairs = [
        ("version", env!("CARGO_PKG_VERSION").to_string()),
        ("TUTTI_ALGO", config.algo.to_string()),
        ("TUTTI_TRANSPORT", config.transport.name().to_string()),
        ("TUTTI_SHM_RING", config.shm_ring_bytes.to_string()),
        ("TUTTI_SHM_BOARD", config.shm_board_bytes.to_string()),
    ];
    pairs.map(|(name, value)| (name.to_string(), value)).into()
}

/// # Errors
///
/// Names the first setting that is not alike on all ranks, with the ranks of each of its values.
fn compare_settings(rank: Rank, reports: &[Report]) -> Result<(), Error> {
    for (name, _) in &reports[0].settings {
        let mut ranks: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        for (rank, report) in reports.iter().enumerate() {
            let value = report.settings.iter().find(|(known, _)| known == name);
            ranks.entry(value.map(|(_, value)| value.as_str())).or_default().push(rank);
        }
        if ranks.len() > 1 {
            let value = |(value, ranks): (&Option<&str>, &Vec<usize>)| {
                format!("{:?} on {}", value.unwrap_or("unknown"), ranks_and_hosts(ranks, reports))
            };
            let values = ranks.iter().map(value).collect::<Vec<_>>().join("; ");
            let what = format!("{name} differs between ranks: {values}; set it alike on all");
            return Err(Error::start(Some(rank), what));
        }
    }
    Ok(())
}

/// The first of some ranks, with their hosts, as in `rank 0 (host a), rank 3 (host b)`.
fn ranks_and_hosts(ranks: &[usize], reports: &[Report]) -> String {
    const SHOWN: usize = 8;
    let one = |rank: &usize| format!("rank {rank} (host {})", reports[*rank].host);
    let shown = ranks.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    match ranks.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The first rank that listens where one on another host cannot reach it, in words.
fn out_of_reach(reports: &[Report]) -> Option<String> {
    let (rank, report) =
        reports.iter().enumerate().find(|(_, report)| report.address.ip().is_loopback())?;
    let far = |other: &&Report| other.network != report.network;
    let (other, from) = reports.iter().enumerate().find(|(_, other)| far(other))?;
    let (host, ip) = (&report.host, report.address.ip());
    Some(format!(
        "rank {rank} (host {host}) listens at {ip}, which rank {other} (host {}) cannot reach: a loopback \
         address, by which {host} reaches the rendezvous or which TUTTI_SOCKET_IFNAME chose there; see \
         that MASTER_ADDR and /etc/hosts give {host} an address of a network",
        from.host
    ))
}

/// The fabric as the ranks report it. An island of one that could not share its host's memory
/// is still on that host.
fn fabric(reports: &[Report], islands: &[u32], config: &Config) -> Fabric {
    let shares =
        |rank: usize| islands.iter().filter(|island| **island == islands[rank]).count() > 1;
    let inside = |rank| match config.transport {
        TransportChoice::Tcp => Inside::Tcp,
        _ if shares(rank) => Inside::SharedMemory,
        _ => Inside::Tcp,
    };
    let report = |(rank, report): (usize, &Report)| RankReport {
        host: report.host_key.clone(),
        numa_node: report.numa_node,
        cores: cores_of(&report.host_key, reports),
        inside: inside(rank),
    };
    Fabric::discovered(&reports.iter().enumerate().map(report).collect::<Vec<_>>())
}

fn cores_of(host_key: &str, reports: &[Report]) -> f64 {
    cores::shared(reports.iter().filter(|r| r.host_key == host_key).map(|r| &r.cores)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(host: &str, address: &str) -> Report {
        Report {
            host: host.into(),
            host_key: host.into(),
            network: host.into(),
            pid: 7,
            numa_node: 0,
            cores: cores::usable(),
            address: format!("{address}:99").parse().unwrap(),
            settings: Vec::new(),
        }
    }

    #[test]
    fn a_loopback_address_is_out_of_reach_for_other_hosts_only() {
        let one_host = [report("a", "127.0.0.1"), report("a", "127.0.0.1")];
        assert_eq!(out_of_reach(&one_host), None);
        let two_hosts =
            [report("a", "10.0.0.1"), report("b", "127.0.1.1"), report("a", "10.0.0.1")];
        let what = out_of_reach(&two_hosts).unwrap();
        assert!(what.starts_with("rank 1 (host b) listens at 127.0.1.1"), "{what}");
        assert!(what.contains("/etc/hosts"), "{what}");
    }

    #[test]
    fn every_version_is_named_with_its_ranks_where_they_differ() {
        let with = |host: &str, version: &str| Report {
            settings: vec![("version".into(), version.into())],
            ..report(host, "10.0.0.1")
        };
        assert!(compare_settings(Rank(0), &[with("a", "1"), with("b", "1")]).is_ok());
        let mut reports = vec![with("a", "1"), with("b", "2"), with("a", "1"), with("c", "3")];
        let what = compare_settings(Rank(0), &reports).unwrap_err().to_string();
        let all = "version differs between ranks: \"1\" on rank 0 (host a), rank 2 (host a); \
                   \"2\" on rank 1 (host b); \"3\" on rank 3 (host c); set it alike on all";
        assert!(what.contains(all), "{what}");
        reports.extend((0..9).map(|_| with("d", "4")));
        let what = compare_settings(Rank(0), &reports).unwrap_err().to_string();
        assert!(what.contains("rank 11 (host d) and 1 more"), "{what}");
    }
}
