//! Ports: given, free, and given out by the system.

use crate::doctor::finding::Finding;
use crate::doctor::readings::Readings;

/// Whether rank 0 can listen on `MASTER_PORT`.
pub(super) fn master_port(readings: &Readings) -> Option<Finding> {
    let port = readings.master_port.as_ref()?;
    if port.parse::<u16>().is_err() {
        return Some(Finding::error(
            format!("MASTER_PORT={port} is no port"),
            "the ranks meet there",
            "export MASTER_PORT=29500, or another number up to 65535",
        ));
    }
    let error = readings.master_port_refused.as_ref()?;
    Some(Finding::error(
        format!("MASTER_PORT={port} cannot be listened on: {error}"),
        "rank 0 opens the rendezvous there",
        format!(
            "set MASTER_PORT to a free port; ss -ltnp 'sport = :{port}' shows who has this one"
        ),
    ))
}

/// Whether each rank finds a port in the range.
pub(super) fn port_range(readings: &Readings) -> Option<Finding> {
    let (size, free) = readings.port_range?;
    // Ranks that are started already may hold theirs.
    let needed = if readings.launched { 1 } else { readings.ranks as usize };
    (free < needed).then(|| {
        Finding::error(
            format!("TUTTI_PORT_RANGE has {size} ports, of which {free} are free"),
            format!("each rank of a host listens on one, and there are to be {}", readings.ranks),
            "widen the range, or unset TUTTI_PORT_RANGE",
        )
    })
}

/// Whether the system has ports for connections, and gives out those that jobs meet at.
pub(super) fn ephemeral_ports(readings: &Readings) -> Option<Finding> {
    let (first, last) = readings.ephemeral_ports?;
    let (count, ranks) = (u64::from(last.saturating_sub(first)) + 1, u64::from(readings.ranks));
    // A port to listen on and a control line for each rank, a connection for each pair.
    let needed = 2 * ranks + ranks * ranks.saturating_sub(1) / 2;
    let range = format!("the system gives out {count} ports, {first} to {last}");
    if count < needed {
        return Some(Finding::error(
            range,
            format!("{ranks} ranks on this host need up to {needed} over TCP"),
            "sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
        ));
    }
    let port = readings.master_port.as_ref()?.parse::<u16>().ok()?;
    (first..=last).contains(&port).then(|| {
        Finding::note(
            format!("MASTER_PORT={port} is one of the ports that the system gives out"),
            "any program may happen to have it as the job starts",
            format!("set MASTER_PORT below {first}; or sysctl -w net.ipv4.ip_local_reserved_ports={port}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn a_taken_master_port_is_an_error_with_who_to_ask() {
        let readings = Readings {
            master_port: Some("29500".into()),
            master_port_refused: Some("Address already in use".into()),
            ..Readings::healthy()
        };
        let found = master_port(&readings).unwrap();
        assert_eq!(found.severity, Severity::Error);
        assert!(found.found.contains("in use") && found.remedy.contains("ss -ltnp"), "{found:?}");
    }

    #[test]
    fn a_master_port_that_is_no_number_is_an_error() {
        for port in ["x", "65536", "-1"] {
            let master_port = Some(port.to_owned());
            let readings = Readings { master_port, ..Readings::healthy() };
            assert!(super::master_port(&readings).unwrap().found.contains(port));
        }
    }

    #[test]
    fn a_range_has_a_free_port_for_each_rank() {
        let found = |free, launched| {
            let readings =
                Readings { port_range: Some((8, free)), launched, ..Readings::healthy() };
            port_range(&readings)
        };
        assert_eq!(found(2, false), None);
        assert!(found(1, false).unwrap().found.contains("8 ports, of which 1"));
        assert_eq!(found(1, true), None);
        assert!(found(0, true).is_some());
    }

    #[test]
    fn the_system_has_ports_for_all_connections() {
        let with = |range, ranks| {
            let ephemeral_ports = Some(range);
            super::ephemeral_ports(&Readings { ephemeral_ports, ranks, ..Readings::healthy() })
        };
        assert_eq!(with((40000, 40004), 2), None);
        assert_eq!(with((40000, 40003), 2).unwrap().severity, Severity::Error);
        assert!(with((40000, 39999), 2).is_some());
    }

    #[test]
    fn a_master_port_that_others_may_get_is_a_note() {
        let with = |port: &str| {
            let master_port = Some(port.to_owned());
            ephemeral_ports(&Readings { master_port, ..Readings::healthy() })
        };
        assert_eq!(with("40000").unwrap().severity, Severity::Note);
        assert_eq!(with("29500"), None);
    }
}
