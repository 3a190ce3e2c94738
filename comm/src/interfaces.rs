//! Which of this host's addresses the other ranks are told.

use std::fmt;
use std::net::IpAddr;

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
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) ip: IpAddr,
}

/// The interfaces that are up, once per address.
pub(crate) fn of_this_host() -> std::io::Result<Vec<Interface>> {
    let all = if_addrs::get_if_addrs()?.into_iter();
    // Without its interface's number, a link-local IPv6 address leads nowhere.
    let reachable = |found: &if_addrs::Interface| found.ip().is_ipv4() || !found.is_link_local();
    let up = all.filter(|found| found.is_oper_up() && reachable(found));
    Ok(up.map(|found| Interface { ip: found.ip(), name: found.name }).collect())
}

/// The address, of the same family as `like`, of the best interface that the filter allows: one to a
/// network before a bridge to containers, and that before the loopback; else in the system's order.
///
/// # Errors
///
/// What there is, if nothing of it is allowed.
pub(crate) fn choose(
    interfaces: &[Interface],
    filter: Option<&InterfaceFilter>,
    like: IpAddr,
) -> Result<IpAddr, String> {
    let family = if like.is_ipv4() { "IPv4" } else { "IPv6" };
    let fits = |found: &&Interface| found.ip.is_ipv4() == like.is_ipv4();
    let allowed = |found: &&Interface| filter.is_none_or(|filter| filter.allows(&found.name));
    let best = interfaces.iter().filter(fits).filter(allowed).min_by_key(|found| remoteness(found));
    best.map(|found| found.ip).ok_or_else(|| {
        let there: Vec<_> = interfaces.iter().map(|i| format!("{} ({})", i.name, i.ip)).collect();
        format!("allows no interface with an {family} address; there are {}", there.join(", "))
    })
}

/// 0 for an interface to a network, more for those that lead less far.
fn remoteness(interface: &Interface) -> u8 {
    const BRIDGES: [&str; 5] = ["docker", "virbr", "cni", "br-", "veth"];
    let is_bridge = BRIDGES.iter().any(|bridge| interface.name.starts_with(bridge));
    if interface.ip.is_loopback() { 2 } else { u8::from(is_bridge) }
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
            ("eth0", "fd00::7"),
            ("ib0", "10.1.0.7"),
        ];
        all.map(|(name, ip)| Interface { name: name.into(), ip: ip.parse().unwrap() }).into()
    }

    fn chosen(filter: &str, like: &str) -> Result<String, String> {
        let filter = InterfaceFilter::parse(filter).unwrap();
        choose(&host(), Some(&filter), like.parse().unwrap()).map(|ip| ip.to_string())
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
    fn nothing_allowed_names_what_there_is() {
        let text = chosen("ib", "fd00::1").unwrap_err();
        assert!(text.contains("IPv6") && text.contains("docker0 (172.17.0.1)"), "{text}");
    }
}
