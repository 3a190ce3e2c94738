//! Which of this host's addresses the other ranks are told.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{fmt, io};

/// Names of network interfaces that may be used, or that may not.
///
/// A list of beginnings (`eth,ib`), or after `=` of whole names (`=eth0,eth2`). A `^` before
/// either turns it round: `^docker,lo`, `^=eth3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFilter {
    excludes: bool,
    exact: bool,
    names: Vec<String>,
}

impl InterfaceFilter {
    /// Reads a filter.
    ///
    /// # Errors
    ///
    /// What is expected, if a name is empty.
    pub fn parse(text: &str) -> Result<InterfaceFilter, String> {
        let (excludes, rest) = after(text.trim(), '^');
        let (exact, rest) = after(rest, '=');
        let names: Vec<String> = rest.split(',').map(|name| name.trim().into()).collect();
        if names.iter().any(String::is_empty) {
            let forms =
                "eth,ib (beginnings), =eth0,eth1 (whole names), ^docker or ^=eth0 (all but these)";
            return Err(format!("a list of interfaces is expected, in one of the forms {forms}"));
        }
        Ok(InterfaceFilter { excludes, exact, names })
    }

    /// Whether the interface of that name may be used.
    pub fn allows(&self, interface: &str) -> bool {
        let fits = |name: &String| {
            if self.exact { interface == name } else { interface.starts_with(name.as_str()) }
        };
        self.names.iter().any(fits) != self.excludes
    }
}

impl fmt::Display for InterfaceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.excludes { "^" } else { "" };
        let exact = if self.exact { "=" } else { "" };
        write!(f, "{not}{exact}{}", self.names.join(","))
    }
}

fn after(text: &str, mark: char) -> (bool, &str) {
    text.strip_prefix(mark).map_or((false, text), |rest| (true, rest))
}

/// An address of this host and the interface that has it.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// The address.
    pub ip: IpAddr,
    /// The system's number of the interface.
    pub index: u32,
}

impl Interface {
    /// Its address, with port 0. A link-local IPv6 address counts within an interface only, which
    /// its number tells.
    pub(crate) fn address(&self) -> SocketAddr {
        match self.ip {
            IpAddr::V4(ip) => SocketAddrV4::new(ip, 0).into(),
            IpAddr::V6(ip) => {
                let scope = if ip.is_unicast_link_local() { self.index } else { 0 };
                SocketAddrV6::new(ip, 0, 0, scope).into()
            }
        }
    }
}

/// The interfaces that are up, once per address.
///
/// # Errors
///
/// What the system says if it does not list them.
pub fn of_this_host() -> io::Result<Vec<Interface>> {
    let up = if_addrs::get_if_addrs()?.into_iter().filter(if_addrs::Interface::is_oper_up);
    Ok(up
        .map(|found| Interface {
            ip: found.ip(),
            index: found.index.unwrap_or(0),
            name: found.name,
        })
        .collect())
}

/// An address that another host told, as this one can connect to it: the interface of a link-local
/// address is that by which this host reaches the others, who listens `own` address.
pub(crate) fn seen_from_here(mut told: SocketAddr, own: SocketAddr) -> SocketAddr {
    if let (SocketAddr::V6(told), SocketAddr::V6(own)) = (&mut told, own)
        && told.ip().is_unicast_link_local()
    {
        told.set_scope_id(own.scope_id());
    }
    told
}

/// The interfaces that the filter allows, with an address of the same family as `like`, in the order
/// in which they are tried: the one with the address `like` itself, then those to a network, link-local
/// addresses, bridges to containers, the loopback; else in the system's order.
///
/// # Errors
///
/// What there is, if nothing of it is allowed.
pub(crate) fn candidates<'a>(
    interfaces: &'a [Interface],
    filter: Option<&InterfaceFilter>,
    like: IpAddr,
) -> Result<Vec<&'a Interface>, String> {
    let family = if like.is_ipv4() { "IPv4" } else { "IPv6" };
    let fits = |found: &&Interface| found.ip.is_ipv4() == like.is_ipv4();
    let allowed = |found: &&Interface| filter.is_none_or(|filter| filter.allows(&found.name));
    let mut candidates: Vec<_> = interfaces.iter().filter(fits).filter(allowed).collect();
    candidates.sort_by_key(|found| (found.ip != like, remoteness(found)));
    match candidates.is_empty() {
        false => Ok(candidates),
        true => {
            let there = interfaces.iter().map(|i| format!("{} ({})", i.name, i.ip));
            let there = there.collect::<Vec<_>>().join(", ");
            Err(format!("allows no interface with an {family} address; there are {there}"))
        }
    }
}

/// The first candidate from which `reaches` finds a way to the other ranks; the first of all if none
/// has one. The log tells which, and why not those before.
pub(crate) fn first_that_reaches<'a>(
    candidates: &[&'a Interface],
    reaches: impl Fn(SocketAddr) -> io::Result<()>,
) -> &'a Interface {
    for found in candidates {
        let Interface { name, ip, .. } = found;
        match reaches(found.address()) {
            Ok(()) => {
                tracing::info!(
                    "interface {name} ({ip}) is used: the rendezvous is reached from it"
                );
                return found;
            }
            Err(error) => tracing::info!(
                "interface {name} ({ip}) is passed over: no way from it to the rendezvous: {error}"
            ),
        }
    }
    let Interface { name, ip, .. } = candidates[0];
    tracing::warn!(
        "interface {name} ({ip}) is used, although no allowed interface reaches the rendezvous; \
         name the one to the other ranks in TUTTI_SOCKET_IFNAME"
    );
    candidates[0]
}

/// 0 for an interface to a network, more for those that lead less far.
fn remoteness(interface: &Interface) -> u8 {
    const BRIDGES: [&str; 5] = ["docker", "virbr", "cni", "br-", "veth"];
    let is_bridge = BRIDGES.iter().any(|bridge| interface.name.starts_with(bridge));
    match interface.ip {
        ip if ip.is_loopback() => 3,
        _ if is_bridge => 2,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(filter: &str, name: &str) -> bool {
        InterfaceFilter::parse(filter).unwrap().allows(name)
    }

    fn host() -> Vec<Interface> {
        let all = [
            ("lo", "127.0.0.1"),
            ("docker0", "172.17.0.1"),
            ("eth0", "10.0.0.7"),
            ("eth0", "fe80::7"),
            ("eth0", "fd00::7"),
            ("ib0", "10.1.0.7"),
        ];
        let interface = |(name, ip): (&str, &str)| Interface {
            name: name.into(),
            ip: ip.parse().unwrap(),
            index: 4,
        };
        all.map(interface).into()
    }

    fn chosen(filter: &str, like: &str) -> Result<String, String> {
        let filter = InterfaceFilter::parse(filter).unwrap();
        let there = host();
        let candidates = candidates(&there, Some(&filter), like.parse().unwrap())?;
        Ok(candidates[0].ip.to_string())
    }

    #[test]
    fn filter_takes_beginnings_whole_names_and_their_opposites() {
        assert!(allows("eth,ib", "eth0") && allows("eth,ib", "ib3") && !allows("eth,ib", "lo"));
        assert!(allows("=eth1,eth2", "eth2") && !allows("=eth1", "eth10"));
        assert!(allows("^docker,lo", "eth0") && !allows("^docker,lo", "docker0"));
        assert!(allows("^=eth1", "eth10") && !allows("^=eth1", "eth1"));
    }

    #[test]
    fn filter_survives_text() {
        for text in ["eth,ib", "=eth1,eth2", "^docker,lo", "^=eth1"] {
            assert_eq!(InterfaceFilter::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn filter_without_names_is_refused() {
        for text in ["", "^", "=", "^=", "eth,,ib", "eth,"] {
            assert!(InterfaceFilter::parse(text).unwrap_err().contains("=eth0,eth1"), "{text}");
        }
    }

    #[test]
    fn networks_go_before_bridges_and_these_before_the_loopback() {
        assert_eq!(chosen("^none", "10.9.9.9").unwrap(), "10.0.0.7");
        assert_eq!(chosen("^eth,ib", "10.9.9.9").unwrap(), "172.17.0.1");
        assert_eq!(chosen("=lo", "10.9.9.9").unwrap(), "127.0.0.1");
        assert_eq!(chosen("ib,eth", "fd00::1").unwrap(), "fd00::7");
    }

    #[test]
    fn the_address_that_reached_the_rendezvous_goes_first() {
        assert_eq!(chosen("^none", "10.1.0.7").unwrap(), "10.1.0.7");
        assert_eq!(chosen("eth", "10.1.0.7").unwrap(), "10.0.0.7");
    }

    #[test]
    fn an_interface_that_leads_nowhere_is_passed_over() {
        let there = host();
        let candidates = candidates(&there, None, "10.9.9.9".parse().unwrap()).unwrap();
        let reach = |ip: &'static str| {
            let reaches = move |from: SocketAddr| match from.ip().to_string() == ip {
                true => Ok(()),
                false => Err(io::ErrorKind::HostUnreachable.into()),
            };
            first_that_reaches(&candidates, reaches).name.clone()
        };
        assert_eq!(reach("10.1.0.7"), "ib0");
        assert_eq!(reach("172.17.0.1"), "docker0");
        assert_eq!(reach("none"), "eth0");
    }

    #[test]
    fn a_link_local_address_counts_on_the_interface_of_who_connects() {
        let there = host();
        let own = there[3].address();
        assert_eq!(own.to_string(), "[fe80::7%4]:0");
        let told: SocketAddr = "[fe80::9%2]:77".parse().unwrap();
        assert_eq!(seen_from_here(told, own).to_string(), "[fe80::9%4]:77");
        let global: SocketAddr = "[fd00::9]:77".parse().unwrap();
        assert_eq!(seen_from_here(global, own), global);
    }

    #[test]
    fn nothing_allowed_names_what_there_is() {
        let text = chosen("ib", "fd00::1").unwrap_err();
        assert!(text.contains("IPv6") && text.contains("docker0 (172.17.0.1)"), "{text}");
    }
}
