//! Names of hosts, and where they lead.

use std::net::IpAddr;

use crate::doctor::finding::Finding;
use crate::doctor::readings::{Master, Readings};

/// Whether the host's own name leads to the host.
pub(super) fn host_name(readings: &Readings) -> Option<Finding> {
    let name = &readings.host_name;
    if matches!(&**name, "" | "(none)" | "localhost" | "localhost.localdomain") {
        return Some(Finding::warning(
            format!("the host is called {name:?}"),
            "errors name hosts by it, and launchers reach them by it: it tells no host from another",
            "hostname NAME; for good hostnamectl set-hostname NAME",
        ));
    }
    let addresses = match &readings.own_addresses {
        Ok(addresses) => addresses,
        Err(error) => {
            return Some(Finding::warning(
                format!("the host is called {name}, which does not resolve: {error}"),
                "mpirun, torchrun and a MASTER_ADDR by name reach a host by its name",
                format!(
                    "hostname NAME if that is the wrong name; else echo 'ADDRESS {name}' >> /etc/hosts"
                ),
            ));
        }
    };
    if addresses.iter().all(IpAddr::is_loopback) {
        return loopback_name(readings, addresses);
    }
    let is_own = |ip: &&IpAddr| readings.is_own(**ip);
    addresses.iter().find(is_own).is_none().then(|| {
        Finding::warning(
            format!("the host is called {name}, which resolves to {}", listed(addresses)),
            "no interface of this host that is up has such an address: who looks for this host by its \
             name finds another one, or none",
            format!("correct the line of {name} in /etc/hosts or the DNS; or hostname NAME"),
        )
    })
}

/// The name is a loopback address, as Debian's 127.0.1.1: fine, unless other hosts take part.
fn loopback_name(readings: &Readings, addresses: &[IpAddr]) -> Option<Finding> {
    let is_beyond = |ip: &IpAddr| !ip.is_loopback();
    let master = readings.master.as_ref().and_then(|master| master.addresses.as_ref().ok());
    let several = master.is_some_and(|addresses| addresses.iter().any(is_beyond));
    let make = if several { Finding::warning } else { Finding::note };
    let name = &readings.host_name;
    Some(make(
        format!("the host is called {name}, which resolves to {} here", listed(addresses)),
        "Tutti copes with it; a launcher that tells other hosts this address sends them to themselves"
            .to_owned(),
        format!("for jobs on several hosts, give {name} its network address in /etc/hosts"),
    ))
}

/// Whether `MASTER_ADDR` leads anywhere.
pub(super) fn master_addr(readings: &Readings) -> Option<Finding> {
    let Master { host, addresses } = readings.master.as_ref()?;
    let problem = match addresses {
        Err(error) => error.clone(),
        Ok(addresses) if addresses.is_empty() => "no address".into(),
        Ok(_) => return None,
    };
    Some(Finding::error(
        format!("MASTER_ADDR={host} does not resolve: {problem}"),
        "the ranks meet there",
        "set MASTER_ADDR to the address of rank 0's host, or add the name to /etc/hosts on every host",
    ))
}

fn listed(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    fn named(name: &str, own_addresses: Result<Vec<IpAddr>, String>) -> Readings {
        Readings { host_name: name.into(), own_addresses, ..Readings::healthy() }
    }

    #[test]
    fn a_name_that_leads_nowhere_or_elsewhere_is_a_warning() {
        let found = host_name(&named("wrong", Err("Name or service not known".into()))).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.found.contains("wrong") && found.found.contains("not known"), "{found:?}");
        let found = host_name(&named("wrong", Ok(ips(&["10.9.9.9"])))).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.found.contains("10.9.9.9"), "{found:?}");
        assert_eq!(host_name(&named("right", Ok(ips(&["10.9.9.9", "10.0.0.7"])))), None);
    }

    #[test]
    fn a_host_without_a_name_of_its_own_is_a_warning() {
        for name in ["localhost", "(none)", ""] {
            assert!(host_name(&named(name, Ok(ips(&["127.0.0.1"])))).is_some(), "{name}");
        }
    }

    #[test]
    fn a_loopback_name_matters_where_other_hosts_take_part() {
        let mut readings = named("node7", Ok(ips(&["127.0.1.1"])));
        assert_eq!(host_name(&readings).unwrap().severity, Severity::Note);
        let addresses = Ok(ips(&["10.0.0.1"]));
        readings.master = Some(Master { host: "node1".into(), addresses });
        assert_eq!(host_name(&readings).unwrap().severity, Severity::Warning);
    }

    #[test]
    fn a_master_that_does_not_resolve_is_an_error() {
        let addresses = Err("no answer within 5s".to_owned());
        let master = Some(Master { host: "nowhere".into(), addresses });
        let found = master_addr(&Readings { master, ..Readings::healthy() }).unwrap();
        assert_eq!(found.severity, Severity::Error);
        assert!(found.found.contains("nowhere") && found.found.contains("no answer"), "{found:?}");
    }
}
