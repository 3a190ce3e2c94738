//! Runs one operation: a state machine that owns no thread, lock or clock, and no buffer.
//!
//! The caller lends the data and the transport to each [`Operation::progress`], which moves what
//! can be moved now. Results depend on the schedule alone, never on timing: two steps on the same
//! bytes take effect in list order.

use std::ops::Range;
use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::{Step, Vector};
use tutti_transport::{Peer, Transport};
use zerocopy::IntoBytes;

use crate::call::Fingerprint;
use crate::fold::Kernel;
use crate::layout::{Blocks, Layout};
use crate::program::{Lane, Program, Way};
use crate::stage::Memory;

/// The ranks of a communicator as the transport numbers them.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) me: Rank,
    pub(crate) peers: Vec<Peer>,
}

impl Group {
    pub(crate) fn size(&self) -> u32 {
        self.peers.len() as u32
    }

    pub(crate) fn peer(&self, rank: Rank) -> Peer {
        self.peers[rank.index()]
    }
}

/// Why an operation cannot go on.
#[derive(Debug)]
pub(crate) enum Fault {
    /// `rank` is in another operation.
    Mismatch { rank: Rank, theirs: Option<Fingerprint> },
    /// The transport failed on the way to or from `rank`.
    Transport { rank: Option<Rank>, source: tutti_transport::Error },
}

/// One collective under way on this rank, carried by the steps of a program.
pub(crate) struct Operation {
    program: Arc<Program>,
    layout: Layout,
    kernel: Kernel,
    element: usize,
    steps: Vec<Progress>,
    lanes: Vec<LaneState>,
    /// The lanes that are not at their end, in order.
    open: Vec<u32>,
    scratch: Vec<u8>,
}

/// Where a step's bytes lie, and how many of them, from the front, are done.
#[derive(Clone, Copy)]
struct Progress {
    /// Where they start in the vector that the step writes, or sends from.
    start: u64,
    /// Where they start in the vector that a local step reads.
    source: u64,
    len: u64,
    done: u64,
}

/// How far a lane has come.
struct LaneState {
    way: Way,
    /// The current step, and the one behind the last.
    at: u32,
    end: u32,
    /// How many bytes of the fingerprint have passed.
    header: usize,
    /// What both ends are in.
    fingerprint: Fingerprint,
    /// Bytes that were taken from the transport before their step could use them.
    overflow: Vec<u8>,
}

impl LaneState {
    fn is_done(&self) -> bool {
        self.at == self.end && (self.way == Way::Local || self.header == Fingerprint::LEN)
    }
}

/// What came of a look at a lane, or at all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Nothing can move before the other end of the lane has done something.
    Waits,
    /// What may have arrived cannot be used before another lane has moved.
    Blocked,
    Moved,
}

/// The most scratch memory, in bytes, that is kept between operations.
const KEPT_SCRATCH: usize = 64 << 10;

/// How often the lanes are gone through before the caller looks at what else there is.
const PASSES: u32 = 16;

impl Outcome {
    fn moved(moved: bool) -> Outcome {
        if moved { Outcome::Moved } else { Outcome::Waits }
    }
}

impl Operation {
    /// The operation before its first step; elements have `element` bytes. What an earlier one has
    /// left is used again if it fits.
    pub(crate) fn new(
        spare: Option<Operation>,
        program: Arc<Program>,
        layout: Layout,
        blocks: &Blocks,
        element: u64,
        fingerprint: Fingerprint,
        kernel: Kernel,
    ) -> Self {
        let element = element as usize;
        let fits = |spare: &Operation| {
            Arc::ptr_eq(&spare.program, &program)
                && (&spare.layout, spare.element) == (&layout, element)
        };
        let mut operation = match spare.filter(fits) {
            Some(spare) => Operation { kernel, ..spare },
            None => Operation::bind(program, layout, element, fingerprint, kernel),
        };
        operation.rewind(blocks, fingerprint);
        operation
    }

    /// A program with its places in memory.
    fn bind(
        program: Arc<Program>,
        layout: Layout,
        element: usize,
        fingerprint: Fingerprint,
        kernel: Kernel,
    ) -> Operation {
        let size = element as u64;
        let progress = |step: &Step| {
            let range = layout.elements(step.main_part(), &program);
            let source = match *step {
                Step::Reduce { from, .. } | Step::Copy { from, .. } => {
                    layout.elements(from, &program).start
                }
                _ => range.start,
            };
            let len = (range.end - range.start) * size;
            Progress { start: range.start * size, source: source * size, len, done: 0 }
        };
        let lane = |lane: &Lane| LaneState {
            way: lane.way,
            at: lane.steps.start,
            end: lane.steps.end,
            header: 0,
            fingerprint,
            overflow: Vec::new(),
        };
        Operation {
            steps: program.steps.iter().map(progress).collect(),
            lanes: program.lanes.iter().map(lane).collect(),
            open: Vec::with_capacity(program.lanes.len()),
            scratch: vec![0; (layout.scratch(&program) * size) as usize],
            kernel,
            element,
            layout,
            program,
        }
    }

    /// Puts it before its first step.
    fn rewind(&mut self, blocks: &Blocks, fingerprint: Fingerprint) {
        self.steps.iter_mut().for_each(|step| step.done = 0);
        for (state, lane) in self.lanes.iter_mut().zip(&self.program.lanes) {
            state.at = lane.steps.start;
            state.header = 0;
            state.fingerprint = match (blocks, lane.way) {
                (Blocks::Pairs { to, .. }, Way::To(rank)) => {
                    fingerprint.with_count(to[rank.index()])
                }
                (Blocks::Pairs { from, .. }, Way::From(rank)) => {
                    fingerprint.with_count(from[rank.index()])
                }
                _ => fingerprint,
            };
        }
        self.open.extend(0..self.lanes.len() as u32);
    }

    /// What a next operation may use of one that is done, unless that is much memory.
    pub(crate) fn into_spare(mut self) -> Option<Operation> {
        self.lanes.iter_mut().for_each(|lane| lane.overflow = Vec::new());
        (self.is_done() && self.scratch.len() <= KEPT_SCRATCH).then_some(self)
    }

    /// Moves what can be moved; says whether anything did. Never blocks.
    pub(crate) fn progress(
        &mut self,
        memory: &mut Memory,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        for pass in 0..PASSES {
            match self.pass(memory, group, transport)? {
                Outcome::Moved if !self.is_done() => {}
                Outcome::Moved => return Ok(true),
                _ if pass > 0 => return Ok(true),
                Outcome::Blocked => return self.spill(group, transport),
                Outcome::Waits => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Goes through the lanes once.
    fn pass(
        &mut self,
        memory: &mut Memory,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<Outcome, Fault> {
        let (mut best, mut ended) = (Outcome::Waits, false);
        for index in 0..self.open.len() {
            let lane = self.open[index] as usize;
            let outcome = match self.lanes[lane].way {
                Way::To(rank) => self
                    .send(lane, memory, group.peer(rank), transport)
                    .map_err(|source| Fault::Transport { rank: Some(rank), source })?,
                Way::From(rank) => {
                    self.receive(lane, memory.data, (rank, group.peer(rank)), transport)?
                }
                Way::Local => self.local(lane, memory),
            };
            best = best.max(outcome);
            ended |= self.lanes[lane].is_done();
        }
        if ended {
            self.open.retain(|&lane| !self.lanes[lane as usize].is_done());
        }
        Ok(best)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// The rank whose bytes, or whose room for bytes, this operation lacks first.
    pub(crate) fn waits_for(&self) -> Option<Rank> {
        let ways = || self.open.iter().map(|&lane| self.lanes[lane as usize].way);
        let from = ways().find_map(|way| match way {
            Way::From(rank) => Some(rank),
            _ => None,
        });
        from.or_else(|| {
            ways().find_map(|way| match way {
                Way::To(rank) => Some(rank),
                _ => None,
            })
        })
    }

    /// What a rank from which this one receives should be in.
    pub(crate) fn fingerprint_from(&self, rank: Rank) -> Option<Fingerprint> {
        let lane = self.lanes.iter().find(|lane| lane.way == Way::From(rank))?;
        Some(lane.fingerprint)
    }

    /// The lane's current step, and the bytes of its vector that it may do now; steps without
    /// bytes, and those that are done, are passed over.
    #[inline]
    fn current(&mut self, lane: usize) -> Option<(usize, Range<usize>)> {
        let state = &mut self.lanes[lane];
        while state.at < state.end {
            let step = state.at as usize;
            let own = &self.steps[step];
            if own.done < own.len {
                let end = limit(own, self.program.after(step), &self.steps).max(own.done);
                return Some((step, (own.start + own.done) as usize..(own.start + end) as usize));
            }
            state.at += 1;
        }
        None
    }

    /// Sends the fingerprint, then the bytes of the lane's steps, as far as there is room.
    fn send(
        &mut self,
        lane: usize,
        memory: &Memory,
        peer: Peer,
        transport: &mut dyn Transport,
    ) -> Result<Outcome, tutti_transport::Error> {
        let mut moved = false;
        if self.lanes[lane].header < Fingerprint::LEN {
            moved = self.send_first(lane, memory, peer, transport)?;
            if self.lanes[lane].header < Fingerprint::LEN {
                return Ok(Outcome::moved(moved));
            }
        }
        while let Some((step, window)) = self.current(lane) {
            let wanted = window.len();
            let sent = match wanted {
                0 => 0,
                _ => transport.send(peer, self.sent_from(step, window, memory))?,
            };
            self.steps[step].done += sent as u64;
            moved |= sent > 0;
            if sent < wanted || wanted == 0 {
                break;
            }
        }
        Ok(Outcome::moved(moved))
    }

    /// Sends the fingerprint with the first bytes: by itself it would be one more message to start and
    /// to receive. Says whether anything went.
    fn send_first(
        &mut self,
        lane: usize,
        memory: &Memory,
        peer: Peer,
        transport: &mut dyn Transport,
    ) -> Result<bool, tutti_transport::Error> {
        let current = self.current(lane);
        let state = &self.lanes[lane];
        let rest = &state.fingerprint.as_bytes()[state.header..];
        let bytes = match &current {
            Some((step, window)) => self.sent_from(*step, window.clone(), memory),
            None => &[],
        };
        if current.is_some() && bytes.is_empty() {
            return Ok(false);
        }
        let sent = transport.send_joined(peer, rest, bytes)?;
        let of_header = sent.min(rest.len());
        self.lanes[lane].header += of_header;
        if let Some((step, _)) = current {
            self.steps[step].done += (sent - of_header) as u64;
        }
        Ok(sent > 0)
    }

    /// Bytes that a step sends.
    fn sent_from<'a>(&'a self, step: usize, window: Range<usize>, memory: &'a Memory) -> &'a [u8] {
        let Step::Send { part, .. } = self.program.steps[step] else {
            unreachable!("a lane to a rank holds sends only")
        };
        match part.vector {
            Vector::Data => &memory.data[window],
            Vector::Input => &memory.input[window],
            Vector::Scratch => &self.scratch[window],
        }
    }

    /// Compares the fingerprint, then takes what has arrived for the lane's steps.
    fn receive(
        &mut self,
        lane: usize,
        data: &mut [u8],
        (rank, peer): (Rank, Peer),
        transport: &mut dyn Transport,
    ) -> Result<Outcome, Fault> {
        let fault = |source| Fault::Transport { rank: Some(rank), source };
        let mut moved = false;
        if self.lanes[lane].header < Fingerprint::LEN {
            moved = self.receive_header(lane, (rank, peer), transport)?;
            if !moved {
                return Ok(Outcome::Waits);
            }
        }
        while let Some((step, mut window)) = self.current(lane) {
            let (part, fold) = match self.program.steps[step] {
                Step::Recv { part, .. } => (part, false),
                Step::RecvReduce { part, .. } => (part, true),
                _ => unreachable!("a lane from a rank holds receives only"),
            };
            if fold {
                window.end = window.start + whole(window.len(), self.element);
            }
            if window.is_empty() {
                return Ok(if moved { Outcome::Moved } else { Outcome::Blocked });
            }
            let into = match part.vector {
                Vector::Data => &mut data[window],
                Vector::Scratch => &mut self.scratch[window],
                Vector::Input => panic!("no step writes to the input"),
            };
            let mut arrived = Arrived { overflow: &mut self.lanes[lane].overflow, peer, transport };
            let len = match fold {
                true => arrived.fold(into, &self.kernel, self.element).map_err(fault)?,
                false => Some(arrived.copy(into).map_err(fault)?),
            };
            match len {
                None => return Ok(if moved { Outcome::Moved } else { Outcome::Blocked }),
                Some(0) => break,
                Some(len) => self.steps[step].done += len as u64,
            }
            moved = true;
        }
        Ok(Outcome::moved(moved))
    }

    /// Compares what `rank` is in with what this operation is; says whether that had arrived.
    fn receive_header(
        &mut self,
        lane: usize,
        (rank, peer): (Rank, Peer),
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let fault = |source| Fault::Transport { rank: Some(rank), source };
        let arrived = transport.peek(peer).map_err(fault)?;
        let Some(header) = arrived.get(..Fingerprint::LEN) else { return Ok(false) };
        if header != self.lanes[lane].fingerprint.as_bytes() {
            let theirs = zerocopy::FromBytes::read_from_bytes(header).ok();
            return Err(Fault::Mismatch { rank, theirs });
        }
        transport.consume(peer, Fingerprint::LEN);
        self.lanes[lane].header = Fingerprint::LEN;
        Ok(true)
    }

    /// Does what local steps can do.
    fn local(&mut self, lane: usize, memory: &mut Memory) -> Outcome {
        let mut moved = false;
        while let Some((step, mut window)) = self.current(lane) {
            let len = whole(window.len(), self.element);
            if len == 0 {
                break;
            }
            window.end = window.start + len;
            let own = &self.steps[step];
            let read = (own.source + own.done) as usize..(own.source + own.done) as usize + len;
            let (from, into, fold) = match self.program.steps[step] {
                Step::Reduce { from, into } => (from, into, true),
                Step::Copy { from, into } => (from, into, false),
                _ => unreachable!("the local lane holds local steps only"),
            };
            let (source, target): (&[u8], &mut [u8]) = match (from.vector, into.vector) {
                (Vector::Data, Vector::Scratch) => (memory.data, &mut self.scratch),
                (Vector::Input, Vector::Scratch) => (memory.input, &mut self.scratch),
                (Vector::Input, Vector::Data) => (memory.input, memory.data),
                (Vector::Scratch, Vector::Data) => (&self.scratch, memory.data),
                _ => panic!("a local step goes from one vector to another, and not to the input"),
            };
            if fold {
                self.kernel.fold(&mut target[window], &source[read]);
            } else {
                target[window].copy_from_slice(&source[read]);
            }
            self.steps[step].done += len as u64;
            moved = true;
        }
        Outcome::moved(moved)
    }

    /// When nothing moves: takes in what has arrived for steps that may not use it yet, so that
    /// the senders can go on. The overflow is never more than this operation will receive.
    fn spill(&mut self, group: &Group, transport: &mut dyn Transport) -> Result<bool, Fault> {
        let mut moved = false;
        for &lane in &self.open {
            let state = &mut self.lanes[lane as usize];
            let Way::From(rank) = state.way else { continue };
            let steps = &self.steps[state.at as usize..state.end as usize];
            let left: u64 = steps.iter().map(|step| step.len - step.done).sum();
            let room = left - state.overflow.len() as u64;
            if state.header < Fingerprint::LEN || room == 0 {
                continue;
            }
            let peer = group.peer(rank);
            let fault = |source| Fault::Transport { rank: Some(rank), source };
            let arrived = transport.peek(peer).map_err(fault)?;
            let len = arrived.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            state.overflow.extend_from_slice(&arrived[..len]);
            if len > 0 {
                transport.consume(peer, len);
                moved = true;
            }
        }
        Ok(moved)
    }
}

/// The payload from one rank: first what was taken from the transport before, then what is in it.
struct Arrived<'a> {
    overflow: &'a mut Vec<u8>,
    peer: Peer,
    transport: &'a mut dyn Transport,
}

impl Arrived<'_> {
    /// Moves bytes to the front of `into`; returns how many.
    fn copy(&mut self, into: &mut [u8]) -> Result<usize, tutti_transport::Error> {
        if self.overflow.is_empty() {
            return self.transport.recv(self.peer, into);
        }
        let len = self.overflow.len().min(into.len());
        into[..len].copy_from_slice(&self.overflow[..len]);
        self.overflow.drain(..len);
        Ok(len)
    }

    /// Folds whole elements into the front of `into`, which has at least one; returns how many
    /// bytes, or `None` if of the next element there is a part.
    fn fold(
        &mut self,
        into: &mut [u8],
        kernel: &Kernel,
        element: usize,
    ) -> Result<Option<usize>, tutti_transport::Error> {
        if self.overflow.is_empty() {
            let arrived = self.transport.peek(self.peer)?;
            let len = whole(arrived.len().min(into.len()), element);
            if len == 0 {
                return Ok(arrived.is_empty().then_some(0));
            }
            kernel.fold(&mut into[..len], &arrived[..len]);
            self.transport.consume(self.peer, len);
            return Ok(Some(len));
        }
        let broken = self.overflow.len() % element;
        if broken > 0 {
            // An element lies across the end of the overflow: its rest is in the transport.
            let mut rest = [0; MAX_ELEMENT];
            let got = self.transport.recv(self.peer, &mut rest[..element - broken])?;
            self.overflow.extend_from_slice(&rest[..got]);
        }
        let len = whole(self.overflow.len().min(into.len()), element);
        kernel.fold(&mut into[..len], &self.overflow[..len]);
        self.overflow.drain(..len);
        Ok(Some(len))
    }
}

/// How many bytes of a step may be done by now: on common bytes it stays behind the steps that come
/// first. A step between places of different number waits for these to be done.
#[inline]
fn limit(own: &Progress, after: &[u32], steps: &[Progress]) -> u64 {
    let mut limit = own.len;
    for &other in after {
        let other = &steps[other as usize];
        if other.done < other.len {
            let apart = own.start != own.source || other.start != other.source;
            let behind = (other.start + other.done).saturating_sub(own.start);
            limit = limit.min(if apart { 0 } else { behind });
        }
    }
    limit
}

/// The largest number of whole elements in `len` bytes, in bytes.
fn whole(len: usize, element: usize) -> usize {
    debug_assert!(element.is_power_of_two(), "so is the size of every type");
    len & !(element - 1)
}

/// The largest element of any type, in bytes.
const MAX_ELEMENT: usize = 16;
