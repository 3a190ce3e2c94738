//! One row: the iterations of one case, timed and checked.

use anyhow::Result;
use tutti::{Communicator, Point, Rank, Request};

use super::buffer::Buffers;
use super::case::{Act, Case};
use super::check::{Check, Verdict, early_exits, judge};
use super::data;
use super::places::Places;
use super::timing::{Span, Summary, now_ns, share, slowest};

/// How often a case is run, and which results are checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    pub(super) warm_up: u32,
    /// Timed iterations, at least one.
    pub(super) iterations: u32,
    pub(super) check: Check,
    /// The rank whose result is falsified before it is checked.
    pub(super) corrupt: Option<Rank>,
}

/// What is known of a case once it was measured; the same on all ranks.
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) algorithm: &'static str,
    pub(super) transport: &'static str,
    pub(super) times: Summary,
    pub(super) checked: bool,
    /// What the check found, a sentence each.
    pub(super) failures: Vec<String>,
}

/// Measures one case. Nothing but the collective lies between the two readings of the clock; what
/// the ranks tell each other about times and checks they tell after the last iteration.
pub(super) fn measure(
    comm: &Communicator,
    case: &Case,
    buffers: &mut Buffers,
    repeats: Repeats,
) -> Result<Row> {
    let mut run = Run::new(comm, case, buffers);
    let corrupt = repeats.corrupt == Some(comm.rank());
    let mut verdict = Verdict::default();
    run.fill();
    for _ in 0..repeats.warm_up {
        comm.barrier()?;
        run.once()?;
    }

    let mut spans = Vec::with_capacity(repeats.iterations as usize);
    for _ in 0..repeats.iterations {
        if repeats.check == Check::Every {
            run.fill();
        }
        comm.barrier()?;
        let enter = now_ns();
        run.once()?;
        let leave = now_ns();
        spans.push(Span { enter, leave });
        if repeats.check == Check::Every {
            verdict.add(case, &run.places, run.buffers, corrupt);
        }
    }

    if repeats.check == Check::Once {
        run.fill();
        run.once()?;
        verdict.add(case, &run.places, run.buffers, corrupt);
    }
    conclude(comm, case, repeats, &spans, &verdict)
}

/// One case on one rank, with its buffers cut to size.
struct Run<'a> {
    comm: &'a Communicator,
    case: &'a Case,
    request: Option<Request>,
    places: Places,
    buffers: &'a mut Buffers,
}

impl<'a> Run<'a> {
    fn new(comm: &'a Communicator, case: &'a Case, buffers: &'a mut Buffers) -> Self {
        let places = Places::of(case, comm.rank().0);
        let size = case.data_type.size() as u64;
        buffers.from.resize(places.from_len * size);
        buffers.into.resize(places.into_len * size);
        Run { comm, case, request: case.request(comm.rank()), places, buffers }
    }

    /// Puts the contribution where it belongs, and nothing right anywhere else.
    fn fill(&mut self) {
        let Buffers { from, into } = &mut *self.buffers;
        into.spoil();
        let buffer = if self.case.in_place { into } else { from };
        data::fill(self.case, &self.places.contribution, buffer.data());
    }

    /// Carries the collective out.
    fn once(&mut self) -> Result<(), tutti::Error> {
        let Buffers { from, into } = &mut *self.buffers;
        let from = (!self.case.in_place).then(|| &*from.data());
        if let Some(request) = &self.request {
            return self.comm.run(request, from, into.data());
        }
        let (next, previous) = self.case.neighbours(self.comm.rank());
        self.comm.batch(&mut [
            Point::send_bytes(from.unwrap_or(&[]), self.case.data_type, next),
            Point::recv_bytes(into.data(), self.case.data_type, previous),
        ])
    }
}

/// Combines the times and verdicts of all ranks.
fn conclude(
    comm: &Communicator,
    case: &Case,
    repeats: Repeats,
    spans: &[Span],
    verdict: &Verdict,
) -> Result<Row> {
    let all = share(comm, spans)?;
    let (mut checked, mut failures) = (repeats.check != Check::Nothing, Vec::new());
    if checked && case.is_barrier() {
        // Clocks of several hosts cannot be compared.
        checked = comm.hosts() == 1;
        if checked {
            failures = early_exits(&all);
        }
    } else if checked {
        failures = judge(comm, verdict)?;
    }
    Ok(Row {
        case: *case,
        algorithm: match case.act {
            Act::Collective(collective) => comm.plan(collective, case.bytes())?.algorithm.name(),
            Act::SendRecv => "direct",
        },
        transport: comm.transport_name(),
        times: Summary::of(slowest(&all)),
        checked,
        failures,
    })
}

impl Row {
    /// Bytes of data by median time, in 10^9 bytes a second.
    pub(super) fn algbw(&self) -> f64 {
        gb_per_s(self.case.bytes(), self.times.median)
    }

    /// The bandwidth of each rank's link that this amounts to, in 10^9 bytes a second.
    pub(super) fn busbw(&self) -> f64 {
        self.algbw() * self.case.bus_factor()
    }

    /// `ok`, `failed`, or `none` if nothing was checked.
    pub(super) fn check_name(&self) -> &'static str {
        match (self.checked, self.failures.is_empty()) {
            (false, _) => "none",
            (true, true) => "ok",
            (true, false) => "failed",
        }
    }
}

/// 10^9 bytes a second.
pub(super) fn gb_per_s(bytes: u64, time_us: f64) -> f64 {
    if bytes == 0 { 0.0 } else { bytes as f64 / 1e3 / time_us.max(1e-3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti::{Collective, DataType, Reduction};

    fn row(collective: Collective, ranks: u32) -> Row {
        let (data_type, reduction) = (DataType::F32, Reduction::Sum);
        Row {
            case: Case {
                act: Act::Collective(collective),
                data_type,
                reduction,
                ranks,
                count: 250_000,
                uneven: false,
                in_place: true,
            },
            algorithm: "ring",
            transport: "shm",
            times: Summary::of(vec![1_000_000]),
            checked: true,
            failures: Vec::new(),
        }
    }

    #[test]
    fn a_megabyte_in_a_millisecond_is_a_gigabyte_per_second() {
        assert_eq!(row(Collective::AllReduce, 4).algbw(), 1.0);
    }

    #[test]
    fn bus_bandwidth_counts_what_passes_a_link() {
        assert_eq!(row(Collective::AllReduce, 4).busbw(), 1.5);
        assert_eq!(row(Collective::AllReduce, 1).busbw(), 0.0);
        assert_eq!(row(Collective::Broadcast { root: Rank(1) }, 4).busbw(), 1.0);
        assert_eq!(row(Collective::AllGather, 4).busbw(), 0.75);
        assert_eq!(row(Collective::AllToAll, 2).busbw(), 0.5);
    }

    #[test]
    fn no_bytes_have_no_bandwidth() {
        assert_eq!(gb_per_s(0, 0.0), 0.0);
        assert!(gb_per_s(8, 0.0).is_finite());
    }
}
