//! The command line of `tutti bench`, with the flags of hccl_test.

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use tutti::{Collective, Config, DataType, Rank, Reduction, TransportChoice};
use tutti_topo::plan::Overrides;

use super::case::{Act, Case};
use super::check::Check;
use super::measure::Repeats;
use super::report::Format;
use super::sizes::{Step, sizes};
use crate::size;

const EXAMPLES: &str = "\
Examples:
  tutti bench all_reduce                           4 ranks on this machine, 8 B to 64 MiB
  tutti bench all_reduce -p 2 -b 1K -e 1G -f 4     2 ranks, 1 KiB to 1 GiB, four times more each row
  tutti bench broadcast -d bf16 -r 3 --json b.json the table here, all figures in b.json
  tutti bench all_reduce --algo ring --transport tcp
  tutti bench all_gather -p 8 --out-of-place       contribution and result in two buffers
  tutti bench all_reduce --limits                  next to what this machine can do at best
  torchrun --nproc-per-node 4 --no-python tutti bench all_reduce

Each iteration starts at a barrier and counts as long as its slowest rank takes. A size is that of one
rank's data (of all blocks together, where there is one for each rank), rounded down to whole elements
and blocks. algbw is bytes by median time; busbw is algbw x 2(p-1)/p for all_reduce, x 1 for broadcast,
reduce and send_recv, x (p-1)/p for the rest; GB/s are 10^9 bytes a second. The exit status is 1 if a check fails.";

/// Measures a collective and checks its results
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to measure
    #[arg(value_name = "COLLECTIVE")]
    pub(super) what: What,
    /// Ranks to start on this machine [default: 4]; a launcher's number must agree
    #[arg(short = 'p', long, value_name = "N")]
    ranks: Option<NonZeroU32>,
    /// Smallest size in bytes; K, M, G are powers of 1024
    #[arg(short = 'b', long, value_name = "SIZE", default_value = "8", value_parser = size::parse)]
    min_bytes: u64,
    /// Largest size in bytes
    #[arg(short = 'e', long, value_name = "SIZE", default_value = "64M", value_parser = size::parse)]
    max_bytes: u64,
    /// Bytes added from one row to the next, instead of a factor
    #[arg(short = 'i', long, value_name = "SIZE", value_parser = size::parse, conflicts_with = "step_factor")]
    step_bytes: Option<u64>,
    /// Factor from one row to the next, at least 2
    #[arg(short = 'f', long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(2..))]
    step_factor: u64,
    /// Timed iterations per row
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    iterations: NonZeroU32,
    /// Iterations per row before those
    #[arg(short = 'w', long, value_name = "N", default_value_t = 10)]
    warm_up: u32,
    /// Type of the elements
    #[arg(short = 'd', long = "type", value_name = "TYPE", default_value = "fp32", value_parser = data_type)]
    data_type: DataType,
    /// How reductions combine them
    #[arg(short = 'o', long = "op", value_name = "OP", default_value = "sum", value_parser = reduction)]
    reduction: Reduction,
    /// Root of broadcast, reduce, gather and scatter
    #[arg(short = 'r', long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Results to check: of no iteration (0), of one more after the timed ones (1), of all (2)
    #[arg(short = 'c', long, value_name = "HOW", default_value = "1")]
    check: Check,
    /// What carries the bytes: auto, shm or tcp
    #[arg(long, value_name = "NAME", value_parser = transport)]
    transport: Option<TransportChoice>,
    /// The algorithm for this collective, instead of the planner's choice
    #[arg(long, value_name = "NAME")]
    algo: Option<String>,
    /// How long an operation may stand still before it fails
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    deadline: Option<Duration>,
    /// Has contribution and result in two buffers instead of one, as all_to_all and send_recv always have
    #[arg(long)]
    out_of_place: bool,
    /// Writes all figures to a file; without FILE, or as -, to standard output and nothing else there
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(super) json: Option<String>,
    /// Form of the rows
    #[arg(long, value_name = "FORM", default_value = "table")]
    pub(super) format: Format,
    /// Measures first what this machine can do at best, as `tutti bench limits` does alone
    #[arg(long)]
    pub(super) limits: bool,
    /// Flips a bit in the result of this rank, to see the check find it
    #[arg(long, value_name = "RANK", hide = true)]
    corrupt: Option<u32>,
}

/// What `tutti bench` can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum What {
    /// Every rank ends with the reduction over all ranks' data
    #[value(alias = "allreduce")]
    AllReduce,
    /// Every rank ends with the root's data
    Broadcast,
    /// The root ends with the reduction over all ranks' data
    Reduce,
    /// Every rank ends with the blocks of all
    #[value(alias = "allgather")]
    AllGather,
    /// The same, with blocks of different sizes
    AllGatherV,
    /// Every rank ends with its block of the reduction over all ranks' data
    ReduceScatter,
    /// The same, with blocks of different sizes
    ReduceScatterV,
    /// The root ends with the blocks of all
    Gather,
    /// The same, with blocks of different sizes
    GatherV,
    /// Every rank ends with its block of the root's data
    Scatter,
    /// The same, with blocks of different sizes
    ScatterV,
    /// Every rank ends with the blocks that all have for it
    #[value(alias = "alltoall")]
    AllToAll,
    /// The same, with blocks of different sizes
    #[value(alias = "alltoallv")]
    AllToAllV,
    /// Every rank sends its data to the next and receives that of the one before
    #[value(alias = "sendrecv")]
    SendRecv,
    /// No rank leaves before every rank has entered
    Barrier,
    /// What this machine's memory and loopback can do at best
    Limits,
}

impl Args {
    /// Ranks to start on this machine.
    pub(super) fn ranks(&self) -> u32 {
        self.ranks.map_or(4, NonZeroU32::get)
    }

    /// What clap cannot see: flags that do not go together.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.min_bytes > self.max_bytes {
            let (min, max) = (self.min_bytes, self.max_bytes);
            return Err(format!("-b {min} is more than -e {max}"));
        }
        if self.step_bytes == Some(0) && self.min_bytes < self.max_bytes {
            return Err("-i 0 never reaches -e".into());
        }
        if let Some(algo) = &self.algo {
            match self.what {
                What::SendRecv => return Err("--algo has no meaning for send_recv".into()),
                What::Limits => {}
                _ => drop(self.overrides(algo, &Overrides::default())?),
            }
        }
        if self.collective().reduces() {
            self.reduction.applies_to(self.data_type)?;
            if self.reduction == Reduction::PremulSum {
                return Err("premul_sum needs a scale for each rank, and no flag gives one".into());
            }
        }
        let launched = std::env::var("LOCAL_WORLD_SIZE").ok();
        let launched = launched.and_then(|size| size.parse::<u32>().ok());
        match (self.ranks, launched) {
            (Some(asked), Some(launched)) if asked.get() != launched => {
                Err(format!("-p {asked} differs from the launcher's LOCAL_WORLD_SIZE={launched}"))
            }
            _ if super::launched() => Ok(()),
            _ => self.check_group(self.ranks()),
        }
    }

    /// Whether the ranks that the flags name exist in a group of that size.
    pub(super) fn check_group(&self, size: u32) -> Result<(), String> {
        let named = [("-r", Some(self.root)), ("--corrupt", self.corrupt)];
        for (flag, rank) in named {
            if let Some(rank) = rank.filter(|rank| *rank >= size) {
                return Err(format!("{flag} {rank} is outside a group of {size} ranks"));
            }
        }
        Ok(())
    }

    /// The environment's settings, changed by the flags.
    pub(super) fn config(&self) -> Result<Config> {
        let mut config = Config::from_env()?;
        if let Some(algo) = &self.algo {
            config.algo = self.overrides(algo, &config.algo).map_err(anyhow::Error::msg)?;
        }
        config.transport = self.transport.unwrap_or(config.transport);
        config.deadline = self.deadline.unwrap_or(config.deadline);
        Ok(config)
    }

    /// The algorithm of the flag for this collective, and of `others` for the rest.
    fn overrides(&self, algo: &str, others: &Overrides) -> Result<Overrides, String> {
        let this = self.collective().name();
        let rest = Collective::KINDS.into_iter().filter(|other| other.name() != this);
        let rest = rest.filter_map(|other| Some((other.name(), others.algorithm(other)?.name())));
        let list: Vec<String> = std::iter::once((this, algo))
            .chain(rest)
            .map(|(collective, algorithm)| format!("{collective}:{algorithm}"))
            .collect();
        Overrides::parse(&list.join(",")).map_err(|problem| format!("--algo {algo}: {problem}"))
    }

    pub(super) fn collective(&self) -> Collective {
        let root = Rank(self.root);
        match self.what {
            What::AllReduce => Collective::AllReduce,
            What::Broadcast => Collective::Broadcast { root },
            What::Reduce => Collective::Reduce { root },
            What::AllGather | What::AllGatherV => Collective::AllGather,
            What::ReduceScatter | What::ReduceScatterV => Collective::ReduceScatter,
            What::Gather | What::GatherV => Collective::Gather { root },
            What::Scatter | What::ScatterV => Collective::Scatter { root },
            What::AllToAll => Collective::AllToAll,
            What::AllToAllV => Collective::AllToAllV,
            What::Barrier | What::SendRecv | What::Limits => Collective::Barrier,
        }
    }

    fn act(&self) -> Act {
        match self.what {
            What::SendRecv => Act::SendRecv,
            _ => Act::Collective(self.collective()),
        }
    }

    /// What is measured at this size: as many whole elements as fit, in as many blocks as there are
    /// ranks, if there are blocks.
    pub(super) fn case(&self, bytes: u64, ranks: u32) -> Case {
        let act = self.act();
        let count = bytes / self.data_type.size() as u64;
        let has_blocks = matches!(act, Act::Collective(collective) if collective.has_blocks());
        let blocks = if has_blocks { u64::from(ranks) } else { 1 };
        Case {
            act,
            data_type: self.data_type,
            reduction: self.reduction,
            ranks,
            count: count - count % blocks,
            uneven: matches!(
                self.what,
                What::AllGatherV
                    | What::ReduceScatterV
                    | What::GatherV
                    | What::ScatterV
                    | What::AllToAllV
            ),
            in_place: !self.out_of_place
                && !matches!(self.what, What::AllToAll | What::AllToAllV | What::SendRecv),
        }
    }

    pub(super) fn repeats(&self) -> Repeats {
        Repeats {
            warm_up: self.warm_up,
            iterations: self.iterations.get(),
            check: self.check,
            corrupt: self.corrupt.map(Rank),
        }
    }

    /// The largest size of a row, in bytes.
    pub(super) fn max_bytes(&self) -> u64 {
        if self.what == What::Barrier { 0 } else { self.max_bytes }
    }

    /// The sizes of the rows in bytes.
    pub(super) fn sizes(&self) -> impl Iterator<Item = u64> + use<> {
        let step = self.step_bytes.map_or(Step::Factor(self.step_factor), Step::Bytes);
        let (begin, end) = match self.what {
            What::Barrier => (0, 0),
            _ => (self.min_bytes, self.max_bytes),
        };
        sizes(begin, end, step, self.data_type.size() as u64)
    }
}

fn data_type(name: &str) -> Result<DataType, String> {
    let possible = || DataType::ALL.map(DataType::name).join(", ");
    DataType::from_name(name).ok_or_else(|| format!("possible are {}", possible()))
}

fn reduction(name: &str) -> Result<Reduction, String> {
    let possible = || Reduction::ALL.map(Reduction::name).join(", ");
    Reduction::from_name(name).ok_or_else(|| format!("possible are {}", possible()))
}

fn transport(name: &str) -> Result<TransportChoice, String> {
    TransportChoice::from_name(name).ok_or_else(|| "possible are auto, shm, tcp".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "a number of seconds above 0 is expected".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, String> {
        let words = ["bench"].into_iter().chain(line.split_whitespace());
        let args = Line::try_parse_from(words).map_err(|error| error.to_string())?.args;
        args.check().map(|()| args)
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for line in [
            "all_reduce -b 16 -e 8",
            "all_reduce -i 0",
            "all_reduce -i 8 -f 2",
            "all_reduce -f 1",
            "all_reduce -n 0",
            "all_reduce -p 0",
            "all_reduce -p 2 -r 2",
            "all_reduce -c 3",
            "all_reduce -d int7",
            "all_reduce -o xor",
            "all_reduce -d fp32 -o band",
            "all_reduce -o premul_sum",
            "all_reduce --transport pigeon",
            "all_reduce --deadline 0",
            "gather_all",
            "send_recv --algo ring",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_manual() {
        let args = parse("all_reduce").unwrap();
        assert_eq!((args.ranks(), args.min_bytes, args.max_bytes), (4, 8, 64 << 20));
        assert_eq!((args.data_type, args.reduction), (DataType::F32, Reduction::Sum));
        assert_eq!(args.check, Check::Once);
        assert_eq!(args.json, None);
        assert_eq!(args.sizes().count(), 24);
        assert_eq!(parse("barrier -b 8 -e 1G").unwrap().sizes().collect::<Vec<u64>>(), [0]);
        assert_eq!(parse("all_reduce --json").unwrap().json.as_deref(), Some("-"));
    }
}
