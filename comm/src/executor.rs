//! Runs one operation: a state machine that owns no thread, lock or clock, and no buffer.
//!
//! The caller lends the data and the transport to each [`Operation::progress`], which moves what
//! can be moved now. Results depend on the schedule alone, never on timing: two steps on the same
//! bytes take effect in list order.

use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::{Part, Step, Vector};
use tutti_transport::{Peer, Transport};
use zerocopy::IntoBytes;

use crate::call::Fingerprint;
use crate::fold::Kernel;
use crate::layout::{Blocks, Layout};
use crate::program::{Program, Way};
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
    kernel: Kernel,
    element: u64,
    steps: Vec<Progress>,
    lanes: Vec<LaneState>,
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
    /// What both ends are in.
    fingerprint: Fingerprint,
    /// The index of the lane's current step, in the lane's own list.
    at: usize,
    /// How many bytes of the fingerprint have passed.
    header: usize,
    /// Payload bytes still to pass in this operation, those in `overflow` included.
    left: u64,
    /// Bytes that were taken from the transport before their step could use them.
    overflow: Vec<u8>,
}

impl Operation {
    /// The operation before its first step; elements have `element` bytes.
    pub(crate) fn new(
        program: Arc<Program>,
        layout: &Layout,
        blocks: &Blocks,
        element: u64,
        fingerprint: Fingerprint,
        kernel: Kernel,
    ) -> Self {
        let progress = |step: &Step| {
            let range = layout.elements(step.main_part(), &program);
            let source = match *step {
                Step::Reduce { from, .. } | Step::Copy { from, .. } => {
                    layout.elements(from, &program)
                }
                _ => range.clone(),
            };
            let [start, source] = [range.start * element, source.start * element];
            Progress { start, source, len: (range.end - range.start) * element, done: 0 }
        };
        let steps: Vec<Progress> = program.steps.iter().map(progress).collect();
        let lanes = program.lanes.iter().map(|lane| LaneState {
            fingerprint: match (blocks, lane.way) {
                (Blocks::Pairs { to, .. }, Way::To(rank)) => {
                    fingerprint.with_count(to[rank.index()])
                }
                (Blocks::Pairs { from, .. }, Way::From(rank)) => {
                    fingerprint.with_count(from[rank.index()])
                }
                _ => fingerprint,
            },
            at: 0,
            header: 0,
            left: lane.steps.iter().map(|&step| steps[step as usize].len).sum(),
            overflow: Vec::new(),
        });
        Operation {
            lanes: lanes.collect(),
            kernel,
            element,
            steps,
            scratch: vec![0; (layout.scratch(&program) * element) as usize],
            program,
        }
    }

    /// Moves what can be moved; says whether anything did. Never blocks.
    pub(crate) fn progress(
        &mut self,
        memory: &mut Memory,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let program = Arc::clone(&self.program);
        let mut moved = false;
        for (index, lane) in program.lanes.iter().enumerate() {
            while !self.finished(index) {
                let stepped = match lane.way {
                    Way::To(rank) => self
                        .send(index, &lane.steps, memory, group.peer(rank), transport)
                        .map_err(|source| Fault::Transport { rank: Some(rank), source }),
                    Way::From(rank) => self.receive(
                        index,
                        &lane.steps,
                        memory.data,
                        (rank, group.peer(rank)),
                        transport,
                    ),
                    Way::Local => Ok(self.local(index, &lane.steps, memory)),
                }?;
                if !stepped {
                    break;
                }
                moved = true;
            }
        }
        Ok(moved || self.spill(&program, group, transport)?)
    }

    pub(crate) fn is_done(&self) -> bool {
        (0..self.lanes.len()).all(|lane| self.finished(lane))
    }

    /// The rank whose bytes, or whose room for bytes, this operation lacks first.
    pub(crate) fn waits_for(&self) -> Option<Rank> {
        let open = |from: bool| {
            let lanes =
                self.program.lanes.iter().enumerate().filter(|(index, _)| !self.finished(*index));
            lanes.into_iter().find_map(move |(_, lane)| match lane.way {
                Way::From(rank) if from => Some(rank),
                Way::To(rank) if !from => Some(rank),
                _ => None,
            })
        };
        open(true).or_else(|| open(false))
    }

    /// What a rank from which this one receives should be in.
    pub(crate) fn fingerprint_from(&self, rank: Rank) -> Option<Fingerprint> {
        let lane = self.program.lanes.iter().position(|lane| lane.way == Way::From(rank))?;
        Some(self.lanes[lane].fingerprint)
    }

    fn finished(&self, lane: usize) -> bool {
        let state = &self.lanes[lane];
        let local = self.program.lanes[lane].way == Way::Local;
        state.left == 0 && (local || state.header == Fingerprint::LEN)
    }

    /// The lane's current step; steps without bytes, and those that are done, are passed over.
    fn current(&mut self, lane: usize, steps: &[u32]) -> Option<u32> {
        let state = &mut self.lanes[lane];
        while let Some(&step) = steps.get(state.at) {
            let progress = &self.steps[step as usize];
            if progress.done < progress.len {
                return Some(step);
            }
            state.at += 1;
        }
        None
    }

    /// How many bytes of `step` may be done by now: on common bytes it stays behind the steps
    /// that come first. A step between places of different number waits for these to be done.
    fn limit(&self, step: u32) -> u64 {
        let own = &self.steps[step as usize];
        let before = self.program.after(step).iter().map(|&other| &self.steps[other as usize]);
        before.filter(|other| other.done < other.len).fold(own.len, |limit, other| {
            let apart = own.start != own.source || other.start != other.source;
            let behind = (other.start + other.done).saturating_sub(own.start);
            limit.min(if apart { 0 } else { behind })
        })
    }

    /// The bytes of `step` that it may do now, as a range of its vector.
    fn window(&self, step: u32) -> std::ops::Range<usize> {
        let own = &self.steps[step as usize];
        let limit = self.limit(step).max(own.done);
        (own.start + own.done) as usize..(own.start + limit) as usize
    }

    fn advance(&mut self, lane: usize, step: u32, len: usize) -> bool {
        self.steps[step as usize].done += len as u64;
        self.lanes[lane].left -= len as u64;
        len > 0
    }

    fn vector<'a>(&'a self, part: Part, memory: &'a Memory) -> &'a [u8] {
        match part.vector {
            Vector::Data => memory.data,
            Vector::Input => memory.input,
            Vector::Scratch => &self.scratch,
        }
    }

    /// Sends the fingerprint, then the bytes of the lane's current step. The fingerprint goes out
    /// at once, with the first bytes if they are there.
    fn send(
        &mut self,
        lane: usize,
        steps: &[u32],
        memory: &Memory,
        peer: Peer,
        transport: &mut dyn Transport,
    ) -> Result<bool, tutti_transport::Error> {
        let current = self.current(lane, steps);
        let bytes = match current {
            None => &[],
            Some(step) => {
                let (Step::Send { part, .. }, window) =
                    (self.program.steps[step as usize], self.window(step))
                else {
                    unreachable!("a lane to a rank holds sends only")
                };
                &self.vector(part, memory)[window]
            }
        };
        let header = self.lanes[lane].header;
        if header == Fingerprint::LEN {
            let sent = if bytes.is_empty() { 0 } else { transport.send(peer, bytes)? };
            return Ok(current.is_some_and(|step| self.advance(lane, step, sent)));
        }
        let rest = &self.lanes[lane].fingerprint.as_bytes()[header..];
        let sent = send_joined(rest, bytes, peer, transport)?;
        let of_header = sent.min(rest.len());
        self.lanes[lane].header += of_header;
        if let Some(step) = current {
            self.advance(lane, step, sent - of_header);
        }
        Ok(sent > 0)
    }

    fn receive(
        &mut self,
        lane: usize,
        steps: &[u32],
        data: &mut [u8],
        (rank, peer): (Rank, Peer),
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let fault = |source| Fault::Transport { rank: Some(rank), source };
        if self.lanes[lane].header < Fingerprint::LEN {
            return self.receive_header(lane, (rank, peer), transport);
        }
        let Some(step) = self.current(lane, steps) else { return Ok(false) };
        let window = self.window(step);
        if window.is_empty() {
            return Ok(false);
        }
        let len = match self.program.steps[step as usize] {
            Step::Recv { part, .. } => {
                let into = &mut vector_mut(part, data, &mut self.scratch)[window];
                let overflow = &mut self.lanes[lane].overflow;
                if overflow.is_empty() {
                    transport.recv(peer, into).map_err(fault)?
                } else {
                    let len = overflow.len().min(into.len());
                    into[..len].copy_from_slice(&overflow[..len]);
                    overflow.drain(..len);
                    len
                }
            }
            Step::RecvReduce { part, .. } => {
                let into = &mut vector_mut(part, data, &mut self.scratch)[window];
                fold_arrived(
                    &mut self.lanes[lane].overflow,
                    &self.kernel,
                    self.element as usize,
                    into,
                    peer,
                    transport,
                )
                .map_err(fault)?
            }
            _ => unreachable!("a lane from a rank holds receives only"),
        };
        Ok(self.advance(lane, step, len))
    }

    /// Compares what `rank` is in with what this operation is.
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

    fn local(&mut self, lane: usize, steps: &[u32], memory: &mut Memory) -> bool {
        let Some(step) = self.current(lane, steps) else { return false };
        let mut window = self.window(step);
        window.end -= (window.end - window.start) % self.element as usize;
        let len = window.len();
        let own = &self.steps[step as usize];
        let read = (own.source + own.done) as usize..(own.source + own.done) as usize + len;
        let (from, into, fold) = match self.program.steps[step as usize] {
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
        self.advance(lane, step, len)
    }

    /// When nothing moves: takes in what has arrived for steps that may not use it yet, so that
    /// the senders can go on. The overflow is never more than this operation will receive.
    fn spill(
        &mut self,
        program: &Program,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let mut moved = false;
        for (state, lane) in self.lanes.iter_mut().zip(&program.lanes) {
            let Way::From(rank) = lane.way else { continue };
            let room = state.left - state.overflow.len() as u64;
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

/// How many payload bytes share the first message with the fingerprint.
const FIRST_BYTES: usize = 992;

/// Sends what is left of a fingerprint together with the first bytes that follow it; returns how
/// many bytes went, those of the fingerprint first.
pub(crate) fn send_joined(
    header: &[u8],
    bytes: &[u8],
    peer: Peer,
    transport: &mut dyn Transport,
) -> Result<usize, tutti_transport::Error> {
    let mut joined = [0; Fingerprint::LEN + FIRST_BYTES];
    let first = bytes.len().min(FIRST_BYTES);
    joined[..header.len()].copy_from_slice(header);
    joined[header.len()..header.len() + first].copy_from_slice(&bytes[..first]);
    transport.send(peer, &joined[..header.len() + first])
}

fn vector_mut<'a>(part: Part, data: &'a mut [u8], scratch: &'a mut [u8]) -> &'a mut [u8] {
    match part.vector {
        Vector::Data => data,
        Vector::Scratch => scratch,
        Vector::Input => panic!("no step writes to the input"),
    }
}

/// Folds whole elements of what has arrived, from the overflow first, into the front of `into`.
fn fold_arrived(
    overflow: &mut Vec<u8>,
    kernel: &Kernel,
    element: usize,
    into: &mut [u8],
    peer: Peer,
    transport: &mut dyn Transport,
) -> Result<usize, tutti_transport::Error> {
    let whole = |len: usize| len - len % element;
    if overflow.is_empty() {
        let arrived = transport.peek(peer)?;
        let len = whole(arrived.len().min(into.len()));
        if len > 0 {
            kernel.fold(&mut into[..len], &arrived[..len]);
            transport.consume(peer, len);
        }
        return Ok(len);
    }
    let broken = overflow.len() % element;
    if broken > 0 {
        // An element lies across the end of the overflow: its rest is in the transport.
        let mut rest = [0; MAX_ELEMENT];
        let got = transport.recv(peer, &mut rest[..element - broken])?;
        overflow.extend_from_slice(&rest[..got]);
    }
    let len = whole(overflow.len().min(into.len()));
    kernel.fold(&mut into[..len], &overflow[..len]);
    overflow.drain(..len);
    Ok(len)
}

/// The largest element of any type, in bytes.
const MAX_ELEMENT: usize = 16;
