use std::collections::{HashMap, VecDeque};

use super::matching::Matching;
use super::seat::{Seat, Value};
use super::terms::{Term, Terms};
use super::{Fault, Semantics, Wait};
use crate::Rank;
use crate::schedule::{Collective, Schedule, Step, Vector};

/// Runs all ranks on symbols. What happens does not depend on which rank moves first, because
/// messages are matched beforehand and conflicting steps keep their order; so one run is a proof.
pub(super) struct Machine<'a> {
    collective: Collective,
    schedules: &'a [Schedule],
    matching: &'a Matching,
    semantics: Semantics,
    terms: Terms,
    seats: Vec<Seat>,
    /// The ranks that may be able to move, each at most once.
    awake: VecDeque<Rank>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        collective: Collective,
        schedules: &'a [Schedule],
        matching: &'a Matching,
        semantics: Semantics,
    ) -> Machine<'a> {
        let size = schedules.len() as u32;
        let terms = Terms::new(size);
        if let Some(root) = collective.root() {
            assert!(root.0 < size, "root {root} is outside a group of {size}");
        }
        let ranks = (0..size).map(Rank);
        let seat = |(rank, schedule)| {
            let starts_with = |vector, chunk| collective.starts_with(rank, vector, chunk, size);
            Seat::new(rank, schedule, terms.of(rank), starts_with)
        };
        let seats = ranks.clone().zip(schedules).map(seat).collect();
        Machine { collective, schedules, matching, semantics, terms, seats, awake: ranks.collect() }
    }

    /// Moves every rank as far as it goes.
    ///
    /// # Errors
    ///
    /// A step that cannot be right, or ranks that wait for each other.
    pub(super) fn run(&mut self) -> Result<(), Fault> {
        while let Some(rank) = self.awake.pop_front() {
            self.seats[rank.index()].awake = false;
            while self.start_steps(rank)? | self.finish_steps(rank)? {}
        }
        match (0..self.seats.len() as u32).find_map(|rank| self.wait(Rank(rank))) {
            Some(wait) => Err(Fault::Stuck { waits: self.circle(wait) }),
            None => Ok(()),
        }
    }

    /// Asks for the result on every rank, and gives the longest row of messages that led to it.
    ///
    /// # Errors
    ///
    /// A chunk of a rank that does not hold the result.
    pub(super) fn result(&self) -> Result<u32, Fault> {
        let (size, mut rounds) = (self.seats.len() as u32, 0);
        let mut alike: HashMap<u32, Term> = HashMap::new();
        for (rank, seat) in (0..).map(Rank).zip(&self.seats) {
            let chunks = 0..self.schedules[0].chunks;
            for chunk in chunks.filter(|&chunk| self.collective.ends_with(rank, chunk, size)) {
                let value = seat.value(Vector::Data, chunk);
                if let Some(missing) = self.missing(chunk, value) {
                    return Err(Fault::Lost { rank, chunk, missing });
                }
                let value = value.expect("a chunk that misses no rank holds something");
                if *alike.entry(chunk).or_insert(value.term) != value.term {
                    return Err(Fault::Order { rank, chunk });
                }
                rounds = rounds.max(value.rounds);
            }
        }
        Ok(rounds)
    }

    fn missing(&self, chunk: u32, value: Option<Value>) -> Option<Rank> {
        let size = self.seats.len() as u32;
        match (self.collective.source(chunk, size), value) {
            (Some(source), None) => Some(source),
            (Some(_), Some(_)) => None, // only the source's data is there
            (None, None) => Some(Rank(0)),
            (None, Some(value)) => self.terms.missing(value.term, size),
        }
    }

    /// Starts steps of a rank in order until one must wait; says whether any did start.
    fn start_steps(&mut self, rank: Rank) -> Result<bool, Fault> {
        let schedule = &self.schedules[rank.index()];
        let before = self.seats[rank.index()].started;
        for step in &schedule.steps[before as usize..] {
            let seat = &mut self.seats[rank.index()];
            let index = seat.started;
            // A receive that folds comes in beside the vectors, so it need not wait to start.
            if !matches!(step, Step::RecvReduce { .. }) && seat.is_blocked(index) {
                break;
            }
            if let Step::Send { part, .. } = *step {
                seat.sent[index as usize] = seat.values(index, part)?;
            }
            seat.started += 1;
            seat.open.push(index);
            step.peer().into_iter().for_each(|peer| self.wake(peer));
        }
        Ok(self.seats[rank.index()].started > before)
    }

    /// Finishes the open steps of a rank that can be; says whether any could.
    fn finish_steps(&mut self, rank: Rank) -> Result<bool, Fault> {
        let mut place = 0;
        let before = self.seats[rank.index()].open.len();
        while let Some(&index) = self.seats[rank.index()].open.get(place) {
            if self.can_finish(rank, index) {
                self.take_effect(rank, index)?;
                let seat = &mut self.seats[rank.index()];
                seat.open.remove(place);
                seat.done[index as usize] = true;
            } else {
                place += 1;
            }
        }
        Ok(self.seats[rank.index()].open.len() < before)
    }

    fn can_finish(&self, rank: Rank, index: u32) -> bool {
        let peer_started =
            |peer: Rank| self.seats[peer.index()].started > self.matching.partner(rank, index);
        match self.step(rank, index) {
            Step::Send { to, .. } => self.semantics == Semantics::Eager || peer_started(to),
            Step::Recv { from, .. } => peer_started(from),
            Step::RecvReduce { from, .. } => {
                peer_started(from) && !self.seats[rank.index()].is_blocked(index)
            }
            Step::Reduce { .. } | Step::Copy { .. } => true,
        }
    }

    fn take_effect(&mut self, rank: Rank, index: u32) -> Result<(), Fault> {
        let seat = rank.index();
        match self.step(rank, index) {
            Step::Send { .. } => Ok(()),
            Step::Recv { from, part } => {
                let values = self.message(rank, index, from);
                self.seats[seat].overwrite(index, part, values)
            }
            Step::RecvReduce { from, part } => {
                let values = self.message(rank, index, from);
                self.seats[seat].fold(index, part, values, &mut self.terms)
            }
            Step::Reduce { from, into } => {
                let values = self.seats[seat].values(index, from)?;
                self.seats[seat].fold(index, into, values, &mut self.terms)
            }
            Step::Copy { from, into } => {
                let values = self.seats[seat].values(index, from)?;
                self.seats[seat].overwrite(index, into, values)
            }
        }
    }

    /// What the message that meets a receive carries, one round later than it was sent.
    fn message(&mut self, rank: Rank, index: u32, from: Rank) -> Vec<Value> {
        let sent = self.matching.partner(rank, index);
        let mut values = std::mem::take(&mut self.seats[from.index()].sent[sent as usize]);
        values.iter_mut().for_each(|value| value.rounds += 1);
        values
    }

    fn step(&self, rank: Rank, index: u32) -> Step {
        self.schedules[rank.index()].steps[index as usize]
    }

    fn wake(&mut self, rank: Rank) {
        if !std::mem::replace(&mut self.seats[rank.index()].awake, true) {
            self.awake.push_back(rank);
        }
    }

    /// What a rank waits for when nothing moves any more, if it is not done. Its first open step
    /// has no earlier one to wait for, so it is one end of a message.
    fn wait(&self, rank: Rank) -> Option<Wait> {
        let &step = self.seats[rank.index()].open.first()?;
        let on = self.step(rank, step).peer().expect("a local step waits for earlier steps only");
        Some(Wait { rank, step, on })
    }

    /// The circle that one ends in who goes from each to whom it waits for.
    fn circle(&self, start: Wait) -> Vec<Wait> {
        let mut path = vec![start];
        loop {
            let on = path[path.len() - 1].on;
            if let Some(first) = path.iter().position(|wait| wait.rank == on) {
                return path.split_off(first);
            }
            path.push(self.wait(on).expect("who keeps others waiting is waiting"));
        }
    }
}
