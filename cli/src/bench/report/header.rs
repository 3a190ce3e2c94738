//! What stands above the rows.

use std::fmt::Write;
use std::num::NonZeroUsize;

use tutti::Communicator;

use super::Args;
use crate::bench::limits::Limits;

/// What all rows of a run share.
pub(in crate::bench) struct Header {
    pub(super) collective: &'static str,
    pub(super) ranks: u32,
    pub(super) hosts: u32,
    /// Cores that rank 0 may use.
    pub(super) cores: usize,
    pub(super) transport: &'static str,
    pub(super) warm_up: u32,
    pub(super) iterations: u32,
    pub(super) data_type: Option<&'static str>,
    pub(super) reduction: Option<&'static str>,
}

impl Header {
    pub(in crate::bench) fn new(comm: &Communicator, args: &Args) -> Self {
        let (case, repeats) = (args.case(0, comm.size()), args.repeats());
        Header {
            collective: case.name(),
            ranks: comm.size(),
            hosts: comm.hosts(),
            cores: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            transport: comm.transport_name(),
            warm_up: repeats.warm_up,
            iterations: repeats.iterations,
            data_type: case.type_name(),
            reduction: case.reduction_name(),
        }
    }

    /// Lines that start with `#`.
    pub(super) fn text(&self) -> String {
        let Header { collective, ranks, hosts, cores, transport, .. } = self;
        let version = env!("CARGO_PKG_VERSION");
        let whose = match hosts {
            1 if *ranks as usize > *cores => ", shared by the ranks",
            1 => "",
            _ => " on the host of rank 0",
        };
        format!(
            "# tutti {version} bench {collective}\n\
             # ranks {ranks}, hosts {hosts}, usable cores {cores}{whose}, transport {transport}\n\
             # warm-up {}, iterations {}; an iteration takes as long as on its slowest rank\n",
            self.warm_up, self.iterations,
        )
    }
}

/// Lines that start with `#`.
pub(super) fn limits(limits: &Limits) -> String {
    let mut text = String::from("# what this machine can do at best, without any collective:\n");
    let mut line = |what: &str, value: Option<f64>, digits: usize, unit: &str| {
        let value = match value {
            Some(value) => format!("{value:>9.digits$} {unit}"),
            None => "needs 2 usable cores".into(),
        };
        writeln!(text, "#   {what:<52} {value}").expect("a string takes everything");
    };
    let copy = format!("memory copy of {} MiB, ", limits.copy_bytes >> 20);
    line("a cache line from one process to another", limits.cache_line_us, 3, "us");
    line("8 bytes through loopback TCP, one way", Some(limits.tcp_8_bytes_us), 3, "us");
    line("loopback TCP, one connection", Some(limits.tcp_gbps), 2, "GB/s");
    line(&format!("{copy}one core"), Some(limits.copy_one_core_gbps), 2, "GB/s");
    line(&format!("{copy}two cores together"), limits.copy_two_cores_gbps, 2, "GB/s");
    text
}
