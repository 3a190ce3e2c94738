use super::{Part, Schedule, Step, Vector};
use crate::Rank;

/// The steps of one rank as a generator writes them: peers are positions in the order of the
/// shape, and every step has a round.
///
/// Steps of one round keep the order in which they were added. Rounds are the same on all ranks:
/// of two messages from one rank to another, the one sent in an earlier round is received in an
/// earlier round. That is what lets channels with different orders run side by side and still
/// meet every message with its receive.
pub(super) struct Rounds {
    chunks: u32,
    steps: Vec<(u32, Step)>,
}

impl Rounds {
    /// No steps yet, on vectors of `chunks` chunks.
    pub(super) fn new(chunks: u32) -> Rounds {
        Rounds { chunks, steps: Vec::new() }
    }

    pub(super) fn send(&mut self, round: u32, to: u32, part: Part) {
        self.steps.push((round, Step::Send { to: Rank(to), part }));
    }

    pub(super) fn recv(&mut self, round: u32, from: u32, part: Part) {
        self.steps.push((round, Step::Recv { from: Rank(from), part }));
    }

    pub(super) fn recv_reduce(&mut self, round: u32, from: u32, part: Part) {
        self.steps.push((round, Step::RecvReduce { from: Rank(from), part }));
    }

    pub(super) fn reduce(&mut self, round: u32, from: Part, into: Part) {
        self.steps.push((round, Step::Reduce { from, into }));
    }

    pub(super) fn copy(&mut self, round: u32, from: Part, into: Part) {
        self.steps.push((round, Step::Copy { from, into }));
    }

    /// Turns the positions of peers into the ranks that `order` lists there.
    pub(super) fn relabel(mut self, order: &[Rank]) -> Rounds {
        for (_, step) in &mut self.steps {
            if let Some(peer) = step.peer_mut() {
                *peer = order[peer.index()];
            }
        }
        self
    }

    /// Gives every chunk the number that `renumber` tells. Where neighbours do not stay neighbours, a
    /// step becomes several, the same on both ends of a message.
    pub(super) fn renumber(self, renumber: impl Fn(u32) -> u32) -> Rounds {
        let mut renumbered = Rounds::new(self.chunks);
        for (round, step) in self.steps {
            let Part { first, len, .. } = step.main_part();
            let mut chunks = (first..first + len).map(&renumber).peekable();
            while let Some(first) = chunks.next() {
                let mut len = 1;
                while chunks.next_if_eq(&(first + len)).is_some() {
                    len += 1;
                }
                let mut piece = step;
                piece.for_each_part(|part| (part.first, part.len) = (first, len));
                renumbered.steps.push((round, piece));
            }
        }
        renumbered
    }

    /// One schedule that runs all channels round by round, each on its own run of chunks.
    pub(super) fn side_by_side(channels: Vec<Rounds>) -> Schedule {
        let mut all = Rounds::new(0);
        for channel in channels {
            for (round, mut step) in channel.steps {
                step.for_each_part(|part| part.first += all.chunks);
                all.steps.push((round, step));
            }
            all.chunks += channel.chunks;
        }
        all.steps.sort_by_key(|&(round, _)| round); // stable: channels in turn within a round
        Schedule {
            chunks: all.chunks,
            steps: all.steps.into_iter().map(|(_, step)| step).collect(),
        }
    }
}

/// The first and the length of the runs that make up the `len` chunks from `first` on in a circle of
/// `size` chunks.
pub(super) fn circular(first: u32, len: u32, size: u32) -> impl Iterator<Item = (u32, u32)> {
    let straight = len.min(size - first);
    [(first, straight), (0, len - straight)].into_iter().filter(|&(_, len)| len > 0)
}

impl Part {
    /// `len` chunks of the data.
    pub(super) fn data(first: u32, len: u32) -> Part {
        Part { vector: Vector::Data, first, len }
    }

    /// `len` chunks of the input.
    pub(super) fn input(first: u32, len: u32) -> Part {
        Part { vector: Vector::Input, first, len }
    }

    /// `len` chunks of scratch memory.
    pub(super) fn scratch(first: u32, len: u32) -> Part {
        Part { vector: Vector::Scratch, first, len }
    }
}

impl Step {
    /// The rank at the other end of a message.
    pub(super) fn peer(&self) -> Option<Rank> {
        let mut step = *self;
        step.peer_mut().copied()
    }

    /// The same, to be changed.
    pub(super) fn peer_mut(&mut self) -> Option<&mut Rank> {
        match self {
            Step::Send { to: peer, .. }
            | Step::Recv { from: peer, .. }
            | Step::RecvReduce { from: peer, .. } => Some(peer),
            Step::Reduce { .. } | Step::Copy { .. } => None,
        }
    }

    /// The part that a message carries, or that a local step writes: the other has the same chunks.
    pub fn main_part(&self) -> Part {
        match *self {
            Step::Send { part, .. } | Step::Recv { part, .. } | Step::RecvReduce { part, .. } => {
                part
            }
            Step::Reduce { into, .. } | Step::Copy { into, .. } => into,
        }
    }

    fn for_each_part(&mut self, mut change: impl FnMut(&mut Part)) {
        match self {
            Step::Send { part, .. } | Step::Recv { part, .. } | Step::RecvReduce { part, .. } => {
                change(part);
            }
            Step::Reduce { from, into } | Step::Copy { from, into } => {
                change(from);
                change(into);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_take_turns_round_by_round_on_their_own_chunks() {
        let channel = |peer| {
            let mut rounds = Rounds::new(2);
            rounds.send(0, peer, Part::data(0, 1));
            rounds.recv(1, peer, Part::data(0, 2));
            rounds
        };
        let schedule = Rounds::side_by_side(vec![channel(1), channel(2)]);
        let send = |to, first| Step::Send { to: Rank(to), part: Part::data(first, 1) };
        let recv = |from, first| Step::Recv { from: Rank(from), part: Part::data(first, 2) };
        assert_eq!(schedule.chunks, 4);
        assert_eq!(schedule.steps, [send(1, 0), send(2, 2), recv(1, 0), recv(2, 2)]);
    }

    #[test]
    fn renumbering_keeps_neighbours_together_where_they_stay_neighbours() {
        let mut rounds = Rounds::new(4);
        rounds.send(0, 1, Part::data(0, 4));
        let schedule =
            Rounds::side_by_side(vec![rounds.renumber(|chunk| [2, 3, 1, 0][chunk as usize])]);
        let send = |first, len| Step::Send { to: Rank(1), part: Part::data(first, len) };
        assert_eq!(schedule.steps, [send(2, 2), send(1, 1), send(0, 1)]);
    }

    #[test]
    fn relabelling_turns_positions_into_ranks() {
        let mut rounds = Rounds::new(1);
        rounds.recv_reduce(0, 0, Part::data(0, 1));
        let schedule = Rounds::side_by_side(vec![rounds.relabel(&[Rank(5), Rank(0)])]);
        let expected = Step::RecvReduce { from: Rank(5), part: Part::data(0, 1) };
        assert_eq!(schedule.steps, [expected]);
    }
}
