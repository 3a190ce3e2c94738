//! Interfaces: what they are, and which may be used.

use std::net::IpAddr;

use tutti::machine::Interface;

use crate::doctor::finding::Finding;
use crate::doctor::readings::Readings;

/// Whether the ranks of this machine can meet at 127.0.0.1.
pub(super) fn loopback(readings: &Readings) -> Option<Finding> {
    let error = readings.loopback.as_ref().err()?;
    let there = readings.interfaces.as_ref().map_or(&[][..], Vec::as_slice);
    let is_there = there.iter().any(|interface| interface.ip.is_loopback());
    let state = if is_there { "" } else { "; the interface lo is missing or down" };
    Some(Finding::error(
        format!("127.0.0.1 is not reached: {error}{state}"),
        "ranks that tutti run starts meet there, and TCP between ranks of a host goes through it",
        "ip link set lo up",
    ))
}

/// Whether other hosts can be reached.
pub(super) fn interfaces(readings: &Readings) -> Option<Finding> {
    let there = match &readings.interfaces {
        Ok(there) => there,
        Err(error) => {
            return Some(Finding::error(
                format!("the interfaces cannot be listed: {error}"),
                "a rank tells the others an address of an interface",
                "allow netlink sockets (AF_NETLINK) in the seccomp profile or service",
            ));
        }
    };
    let beyond: Vec<&Interface> = there.iter().filter(|i| !i.ip.is_loopback()).collect();
    if beyond.is_empty() {
        return Some(Finding::warning(
            "no interface but the loopback is up and has an address",
            "ranks of this host reach each other, those of other hosts they do not",
            "ip link set eth0 up (ip link lists the names); a container needs a network (docker run \
             --network=host)",
        ));
    }
    let only_6 = beyond.iter().all(|interface| interface.ip.is_ipv6());
    only_6.then(|| {
        Finding::note(
            format!("only IPv6 leads to other hosts: {}", listed(&beyond)),
            "Tutti works over IPv6; a MASTER_ADDR that is an IPv4 address does not lead there",
            "set MASTER_ADDR to an IPv6 address or a name that has one",
        )
    })
}

/// Whether the filter leaves an interface.
pub(super) fn socket_ifname(readings: &Readings) -> Option<Finding> {
    let filter = readings.config.as_ref().ok()?.socket_ifname.as_ref()?;
    let there = readings.interfaces.as_ref().ok()?;
    if there.iter().any(|interface| filter.allows(&interface.name)) {
        return None;
    }
    Some(Finding::error(
        format!("TUTTI_SOCKET_IFNAME={filter} allows none of the interfaces that are up"),
        "a rank has no address to tell the others, and refuses to start",
        format!("unset TUTTI_SOCKET_IFNAME, or name one of: {}", listed(there.iter())),
    ))
}

fn listed<'a>(
    interfaces: impl IntoIterator<Item = impl std::borrow::Borrow<&'a Interface>>,
) -> String {
    let one = |interface: &Interface| -> String {
        let ip: IpAddr = interface.ip;
        format!("{} ({ip})", interface.name)
    };
    interfaces.into_iter().map(|i| one(i.borrow())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    fn with_interfaces(all: &[(&str, &str)]) -> Readings {
        let interface = |(name, ip): &(&str, &str)| Interface {
            name: name.to_string(),
            ip: ip.parse().unwrap(),
            index: 1,
        };
        Readings { interfaces: Ok(all.iter().map(interface).collect()), ..Readings::healthy() }
    }

    #[test]
    fn a_loopback_that_is_down_is_an_error_with_the_command() {
        let loopback = Err("Network is unreachable".to_owned());
        let found = super::loopback(&Readings { loopback, ..with_interfaces(&[]) }).unwrap();
        assert_eq!((found.severity, &*found.remedy), (Severity::Error, "ip link set lo up"));
        assert!(found.found.contains("missing or down"), "{found:?}");
    }

    #[test]
    fn a_machine_of_its_own_is_warned_and_one_of_ipv6_told() {
        let found = interfaces(&with_interfaces(&[("lo", "127.0.0.1"), ("lo", "::1")])).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        let found = interfaces(&with_interfaces(&[("eth0", "fd00::7")])).unwrap();
        assert_eq!(found.severity, Severity::Note);
        assert!(found.found.contains("eth0 (fd00::7)"), "{found:?}");
    }

    #[test]
    fn interfaces_that_cannot_be_listed_are_an_error() {
        let interfaces = Err("Permission denied".to_owned());
        let found = super::interfaces(&Readings { interfaces, ..Readings::healthy() }).unwrap();
        assert_eq!(found.severity, Severity::Error);
    }

    #[test]
    fn a_filter_that_leaves_nothing_names_what_there_is() {
        let found = socket_ifname(&Readings::with_variables(&[("TUTTI_SOCKET_IFNAME", "ib")]));
        let found = found.unwrap();
        assert!(found.found.contains("=ib") && found.remedy.contains("eth0 (10.0.0.7)"));
        let fits = Readings::with_variables(&[("TUTTI_SOCKET_IFNAME", "eth")]);
        assert_eq!(socket_ifname(&fits), None);
    }
}
