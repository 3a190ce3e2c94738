use std::collections::HashMap;

use super::Fault;
use super::order::predecessors;
use super::terms::{Term, Terms};
use crate::Rank;
use crate::schedule::{Part, Schedule, Vector};

/// The state of one rank in a run: how far it is, and what its chunks hold.
pub(super) struct Seat {
    rank: Rank,
    /// For each step those that must be done before it takes effect.
    before: Vec<Vec<u32>>,
    /// How many steps have started.
    pub(super) started: u32,
    /// Which steps are done.
    pub(super) done: Vec<bool>,
    /// The steps that have started and are not done, in order.
    pub(super) open: Vec<u32>,
    /// What each send carries, from its start until it is received, by step.
    pub(super) sent: Vec<Vec<Value>>,
    /// What the chunks hold; those that hold nothing are not there.
    held: HashMap<(Vector, u32), Value>,
    /// Whether it is in the queue of ranks that may be able to move.
    pub(super) awake: bool,
}

/// What a chunk holds.
#[derive(Clone, Copy)]
pub(super) struct Value {
    pub(super) term: Term,
    /// The longest row of messages that led to it.
    pub(super) rounds: u32,
}

impl Seat {
    /// The rank before its first step, whose own term is `own`.
    pub(super) fn new(
        rank: Rank,
        schedule: &Schedule,
        own: Term,
        starts_with: impl Fn(Vector, u32) -> bool,
    ) -> Seat {
        let steps = schedule.steps.len();
        let vectors = [Vector::Data, Vector::Input].into_iter();
        let chunks =
            vectors.flat_map(|vector| (0..schedule.chunks).map(move |chunk| (vector, chunk)));
        let own = Value { term: own, rounds: 0 };
        let held = chunks.filter(|&(vector, chunk)| starts_with(vector, chunk));
        Seat {
            rank,
            before: predecessors(schedule),
            started: 0,
            done: vec![false; steps],
            open: Vec::new(),
            sent: vec![Vec::new(); steps],
            held: held.map(|chunk| (chunk, own)).collect(),
            awake: true,
        }
    }

    /// Whether the step must wait for an earlier one.
    pub(super) fn is_blocked(&self, step: u32) -> bool {
        self.before[step as usize].iter().any(|&before| !self.done[before as usize])
    }

    /// What the part holds.
    pub(super) fn values(&self, step: u32, part: Part) -> Result<Vec<Value>, Fault> {
        let rank = self.rank;
        let chunks = part.first..part.first + part.len;
        let value =
            |chunk| self.value(part.vector, chunk).ok_or(Fault::Nothing { rank, step, chunk });
        chunks.map(value).collect()
    }

    /// Puts the values in place of what the part holds.
    pub(super) fn overwrite(
        &mut self,
        step: u32,
        into: Part,
        values: Vec<Value>,
    ) -> Result<(), Fault> {
        let rank = self.rank;
        for (chunk, value) in (into.first..).zip(values) {
            let before = self.held.insert((into.vector, chunk), value);
            if before.is_some_and(|before| before.term == value.term) {
                return Err(Fault::Idle { rank, step, chunk });
            }
        }
        Ok(())
    }

    /// Folds the values into what the part holds.
    pub(super) fn fold(
        &mut self,
        step: u32,
        into: Part,
        values: Vec<Value>,
        terms: &mut Terms,
    ) -> Result<(), Fault> {
        let rank = self.rank;
        for (chunk, value) in (into.first..).zip(values) {
            let held = self.held.get_mut(&(into.vector, chunk));
            let held = held.ok_or(Fault::Nothing { rank, step, chunk })?;
            let term = terms.fold(held.term, value.term);
            held.term = term.map_err(|again| Fault::Twice { rank, step, chunk, again })?;
            held.rounds = held.rounds.max(value.rounds);
        }
        Ok(())
    }

    /// What the chunk holds.
    pub(super) fn value(&self, vector: Vector, chunk: u32) -> Option<Value> {
        self.held.get(&(vector, chunk)).copied()
    }
}
