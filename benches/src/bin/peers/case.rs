//! What is measured, at which sizes and how often.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

const ELEMENT_BYTES: u64 = 4;

/// One collective over so many ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Case {
    pub(crate) collective: Collective,
    pub(crate) ranks: u32,
    pub(crate) transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    Reduce,
    AllToAll,
    Barrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transport {
    Shm,
    Tcp,
}

/// Sizes that are measured with as many iterations: from `begin` bytes, each `factor` times the
/// one before, up to `end`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    pub(crate) begin: u64,
    pub(crate) factor: u64,
    pub(crate) end: u64,
    pub(crate) warm_up: u32,
    pub(crate) iterations: u32,
}

impl Collective {
    pub(crate) const ALL: [Collective; 7] = [
        Collective::AllReduce,
        Collective::AllGather,
        Collective::ReduceScatter,
        Collective::Broadcast,
        Collective::Reduce,
        Collective::AllToAll,
        Collective::Barrier,
    ];

    /// The name that all programs know it by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collective::AllReduce => "all_reduce",
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::Broadcast => "broadcast",
            Collective::Reduce => "reduce",
            Collective::AllToAll => "all_to_all",
            Collective::Barrier => "barrier",
        }
    }

    /// Whether the data are a block per rank.
    fn has_blocks(self) -> bool {
        matches!(self, Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll)
    }
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Shm => "shm",
            Transport::Tcp => "tcp",
        }
    }
}

impl Case {
    /// Whether ranks share cores.
    pub(crate) fn is_crowded(&self, cores: usize) -> bool {
        self.ranks as usize > cores
    }

    /// The sizes, small and large: many iterations of what is short, few of what is long.
    pub(crate) fn bands(&self, quick: bool, cores: usize) -> Vec<Band> {
        let short = if quick { 100 } else { 500 };
        let short = if self.is_crowded(cores) { short / 5 } else { short };
        let long = 20;
        let band = |begin, end, iterations| Band {
            begin,
            factor: if quick { 16 } else { 4 },
            end,
            warm_up: iterations / 2,
            iterations,
        };
        if self.collective == Collective::Barrier {
            return vec![band(0, 0, short)];
        }
        let least = if self.collective.has_blocks() {
            (u64::from(self.ranks) * ELEMENT_BYTES).next_power_of_two().max(8)
        } else {
            8
        };
        let largest = if quick { 16 << 20 } else { 64 << 20 };
        vec![band(least, 32 << 10, short), band(64 << 10, largest, long)]
    }

    /// The sizes of a band in bytes, in whole elements and blocks.
    pub(crate) fn sizes(&self, band: &Band) -> Vec<u64> {
        let unit = if self.collective.has_blocks() { u64::from(self.ranks) } else { 1 };
        let unit = unit * ELEMENT_BYTES;
        let next =
            |size: &u64| Some(size * band.factor).filter(|next| *size > 0 && *next <= band.end);
        std::iter::successors(Some(band.begin), next).map(|size| size - size % unit).collect()
    }

    /// The bytes that each of `processes` has to move at least, if they share the work evenly: to
    /// copy, each byte read once and written once; or to send, at least one, while as many are
    /// received.
    pub(crate) fn least_bytes(&self, bytes: u64, processes: usize) -> u64 {
        let all = match self.transport {
            Transport::Shm => self.touched(bytes) / 2,
            Transport::Tcp => self.sent(bytes).max(processes as u64),
        };
        all / processes as u64
    }

    /// The bytes that all ranks together read and write at least.
    fn touched(&self, bytes: u64) -> u64 {
        let (p, n) = (u64::from(self.ranks), bytes);
        match self.collective {
            // Each element is read on every rank; the result is written on every rank.
            Collective::AllReduce => 2 * p * n,
            Collective::ReduceScatter | Collective::Reduce => p * n + n,
            // A block that is in place already is not written.
            Collective::AllGather => n + (p - 1) * n,
            Collective::Broadcast => n + (p - 1) * n,
            Collective::AllToAll => 2 * p * n,
            Collective::Barrier => 0,
        }
    }

    /// The bytes that all ranks together send at least, without a switch that multiplies them.
    fn sent(&self, bytes: u64) -> u64 {
        let once = u64::from(self.ranks - 1) * bytes;
        if self.collective == Collective::AllReduce { 2 * once } else { once }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (collective, transport) = (self.collective.name(), self.transport.name());
        write!(f, "{collective}, {transport}, {} ranks", self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(collective: Collective, ranks: u32) -> Case {
        Case { collective, ranks, transport: Transport::Shm }
    }

    fn sizes(case: &Case, quick: bool) -> Vec<u64> {
        case.bands(quick, 2).iter().flat_map(|band| case.sizes(band)).collect()
    }

    #[test]
    fn sizes_go_from_8_bytes_to_64_mebibytes() {
        let all = sizes(&case(Collective::AllReduce, 2), false);
        assert_eq!((all[0], all[all.len() - 1], all.len()), (8, 64 << 20, 13));
        assert!(all.is_sorted());
        let quick = sizes(&case(Collective::AllReduce, 2), true);
        assert_eq!(quick, [8, 128, 2048, 32768, 65536, 1 << 20, 16 << 20]);
        assert_eq!(sizes(&case(Collective::Barrier, 2), false), [0]);
    }

    #[test]
    fn blocks_are_whole_elements() {
        for ranks in [2, 3, 8] {
            for size in sizes(&case(Collective::AllGather, ranks), false) {
                assert!(size > 0 && size % (4 * u64::from(ranks)) == 0, "{size} for {ranks} ranks");
            }
        }
    }

    #[test]
    fn ranks_that_share_cores_iterate_less() {
        let case = case(Collective::AllReduce, 4);
        assert!(case.bands(false, 2)[0].iterations < case.bands(false, 4)[0].iterations);
    }

    #[test]
    fn the_least_work_is_shared_by_the_cores() {
        assert_eq!(case(Collective::AllReduce, 2).least_bytes(1000, 2), 1000);
        assert_eq!(case(Collective::AllReduce, 4).least_bytes(1000, 2), 2000);
        assert_eq!(case(Collective::Broadcast, 2).least_bytes(1000, 2), 500);
        let tcp = Case { transport: Transport::Tcp, ..case(Collective::AllReduce, 2) };
        assert_eq!(tcp.least_bytes(1000, 2), 1000);
    }
}
