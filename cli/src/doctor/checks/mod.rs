//! The checks: each looks at the readings and at nothing else.

mod job;
mod memory;
mod names;
mod network;
mod ports;
mod processes;

use super::finding::{Finding, Outcome};
use super::readings::Readings;

type Check = fn(&Readings) -> Option<Finding>;

/// All of them, by name.
const CHECKS: [(&str, Check); 15] = [
    ("variables", job::variables),
    ("cores", processes::cores),
    ("open files", processes::open_files),
    ("shared memory", memory::shared_memory),
    ("memory", memory::memory),
    ("/dev/shm", memory::dev_shm),
    ("locked memory", memory::locked_memory),
    ("loopback", network::loopback),
    ("interfaces", network::interfaces),
    ("TUTTI_SOCKET_IFNAME", network::socket_ifname),
    ("host name", names::host_name),
    ("MASTER_ADDR", names::master_addr),
    ("MASTER_PORT", ports::master_port),
    ("TUTTI_PORT_RANGE", ports::port_range),
    ("ephemeral ports", ports::ephemeral_ports),
];

/// Runs all checks.
pub(super) fn examine(readings: &Readings) -> Vec<Outcome> {
    let outcome =
        |(name, check): &(&str, Check)| Outcome { check: (*name).into(), finding: check(readings) };
    CHECKS.iter().map(outcome).collect()
}

pub(super) use memory::segment_bytes;

/// So many bytes in words.
fn bytes(count: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) if count.is_multiple_of(unit) => format!("{} {name}", count / unit),
        Some((unit, name)) => format!("{:.1} {name}", count as f64 / unit as f64),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_where_nothing_is_wrong() {
        for Outcome { check, finding } in examine(&Readings::healthy()) {
            assert_eq!(finding, None, "{check}");
        }
    }

    #[test]
    fn bytes_have_the_largest_unit_that_fits() {
        let words = [0, 1023, 65536, 1 << 20, 3 << 29].map(bytes);
        assert_eq!(words, ["0 B", "1023 B", "64 KiB", "1 MiB", "1.5 GiB"]);
    }
}
