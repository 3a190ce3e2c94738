//! Where the chunks of a call's vectors lie in memory.

use std::ops::Range;
use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::{Collective, Part, Vector};

use crate::call::Call;
use crate::program::Program;

/// How the data of a collective that has blocks is cut into them, in elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// All blocks have the same size.
    #[default]
    Even,
    /// One block for each rank, of the sizes that all ranks know.
    Listed(Arc<[u64]>),
    /// What this rank has for each rank, and what each has for it.
    Pairs { to: Arc<[u64]>, from: Arc<[u64]> },
}

/// Where each chunk of each vector lies on this rank, in elements from the front of the vector.
#[derive(PartialEq, Eq)]
pub(crate) enum Layout {
    /// Every vector is cut into chunks as evenly as can be: of `each` elements, and the first `rest`
    /// of them of one more.
    Even { count: u64, each: u64, rest: u64 },
    /// Every vector has one block for each rank, one after the other.
    Blocks { starts: Vec<u64> },
    /// The same in scratch memory; data and input are this rank's own block.
    OwnBlock { starts: Vec<u64> },
    /// The input has one block for each rank, the data one from each; blocks that pass through lie
    /// in scratch memory as the program numbers them, and all have the same size.
    Pairs { size: u32, to: Vec<u64>, from: Vec<u64> },
}

impl Layout {
    /// The layout on rank `me` of `size`.
    pub(crate) fn new(
        call: &Call,
        blocks: &Blocks,
        program: &Program,
        me: Rank,
        size: u32,
    ) -> Layout {
        let even = || vec![call.count / u64::from(size); size as usize];
        let list = |blocks: &Blocks| match blocks {
            Blocks::Listed(counts) => starts(counts),
            _ => starts(&even()),
        };
        match call.collective {
            Collective::AllReduce
            | Collective::Broadcast { .. }
            | Collective::Reduce { .. }
            | Collective::Barrier => {
                let (count, chunks) = (call.count, program.chunks);
                Layout::Even { count, each: count / chunks, rest: count % chunks }
            }
            Collective::AllGather | Collective::ReduceScatter => {
                Layout::Blocks { starts: list(blocks) }
            }
            Collective::Gather { root } | Collective::Scatter { root } if root == me => {
                Layout::Blocks { starts: list(blocks) }
            }
            Collective::Gather { .. } | Collective::Scatter { .. } => {
                Layout::OwnBlock { starts: list(blocks) }
            }
            Collective::AllToAll | Collective::AllToAllV => {
                let (to, from) = match blocks {
                    Blocks::Pairs { to, from } => (starts(to), starts(from)),
                    _ => (starts(&even()), starts(&even())),
                };
                Layout::Pairs { size, to, from }
            }
        }
    }

    /// The elements of a part within its vector.
    pub(crate) fn elements(&self, part: Part, program: &Program) -> Range<u64> {
        let Part { vector, first, len } = part;
        let ends = |starts: &[u64]| starts[first as usize]..starts[(first + len) as usize];
        match (self, vector) {
            (&Layout::Even { each, rest, .. }, _) => {
                let start = |chunk: u32| u64::from(chunk) * each + rest.min(chunk.into());
                start(first)..start(first + len)
            }
            (Layout::Blocks { starts }, _) | (Layout::OwnBlock { starts }, Vector::Scratch) => {
                ends(starts)
            }
            (Layout::OwnBlock { starts }, _) => {
                0..starts[first as usize + 1] - starts[first as usize]
            }
            (Layout::Pairs { size, to, .. }, Vector::Input) => {
                let first = (first % size) as usize;
                to[first]..to[first + len as usize]
            }
            (Layout::Pairs { size, from, .. }, Vector::Data) => {
                let first = (first / size) as usize;
                from[first]..from[first + 1]
            }
            (Layout::Pairs { to, .. }, Vector::Scratch) => {
                let (slot, block) = (program.scratch_slot(first), to[1]);
                slot * block..(slot + u64::from(len)) * block
            }
        }
    }

    /// How much scratch memory the program needs.
    pub(crate) fn scratch(&self, program: &Program) -> u64 {
        match self {
            _ if program.scratch_slots() == 0 => 0,
            Layout::Even { count, .. } => *count,
            Layout::Blocks { starts } | Layout::OwnBlock { starts } => starts[starts.len() - 1],
            Layout::Pairs { to, .. } => program.scratch_slots() * to[1],
        }
    }
}

/// Where the block of `rank` lies among blocks one after the other, in elements.
pub(crate) fn block(call: &Call, blocks: &Blocks, rank: Rank, size: u32) -> Range<u64> {
    match blocks {
        Blocks::Listed(counts) | Blocks::Pairs { to: counts, .. } => {
            let start = counts[..rank.index()].iter().sum();
            start..start + counts[rank.index()]
        }
        Blocks::Even => {
            let each = call.count / u64::from(size);
            let start = each * u64::from(rank.0);
            start..start + each
        }
    }
}

/// The sums of all counts before each, and of all.
fn starts(counts: &[u64]) -> Vec<u64> {
    let mut sum = 0;
    let ends = counts.iter().map(|count| {
        sum += count;
        sum
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Reduction};
    use tutti_topo::schedule::{Algorithm, Shape};

    fn call(collective: Collective, count: u64) -> Call {
        let (data_type, reduction) = (DataType::I8, Reduction::Sum);
        Call { collective, data_type, reduction, count, counts: 0 }
    }

    fn program(algorithm: Algorithm, collective: Collective, me: Rank, size: u32) -> Program {
        Program::new(algorithm.schedule(collective, me, &Shape::flat(size)).unwrap())
    }

    fn part(vector: Vector, first: u32, len: u32) -> Part {
        Part { vector, first, len }
    }

    #[test]
    fn chunks_cover_every_element_once_whatever_the_count() {
        let program = program(Algorithm::Ring, Collective::AllReduce, Rank(0), 7);
        for count in [0, 1, 6, 7, 8, 1000, (1 << 33) + 5] {
            let call = call(Collective::AllReduce, count);
            let layout = Layout::new(&call, &Blocks::Even, &program, Rank(0), 7);
            let mut end = 0;
            for chunk in 0..7 {
                let elements = layout.elements(part(Vector::Data, chunk, 1), &program);
                assert_eq!(elements.start, end);
                end = elements.end;
            }
            assert_eq!(end, count);
        }
    }

    #[test]
    fn listed_blocks_lie_one_after_the_other() {
        let program = program(Algorithm::Ring, Collective::AllGather, Rank(1), 3);
        let (call, blocks) = (call(Collective::AllGather, 9), Blocks::Listed([4, 0, 5].into()));
        let layout = Layout::new(&call, &blocks, &program, Rank(1), 3);
        let elements = |first, len| layout.elements(part(Vector::Data, first, len), &program);
        assert_eq!([elements(0, 1), elements(1, 1), elements(2, 1)], [0..4, 4..4, 4..9]);
        assert_eq!(elements(0, 3), 0..9);
        assert_eq!(block(&call, &blocks, Rank(2), 3), 4..9);
    }

    #[test]
    fn a_rank_that_is_not_the_root_has_only_its_own_block() {
        let collective = Collective::Gather { root: Rank(0) };
        let program = program(Algorithm::Binomial, collective, Rank(2), 4);
        let layout = Layout::new(&call(collective, 12), &Blocks::Even, &program, Rank(2), 4);
        assert_eq!(layout.elements(part(Vector::Input, 2, 1), &program), 0..3);
        assert_eq!(layout.elements(part(Vector::Scratch, 3, 1), &program), 9..12);
        assert_eq!(layout.scratch(&program), 12);
    }

    #[test]
    fn blocks_that_pass_through_have_their_own_places() {
        let program = program(Algorithm::Bruck, Collective::AllToAll, Rank(0), 8);
        let layout =
            Layout::new(&call(Collective::AllToAll, 24), &Blocks::Even, &program, Rank(0), 8);
        let mut places: Vec<_> = program
            .steps
            .iter()
            .map(|step| step.main_part())
            .filter(|part| part.vector == Vector::Scratch)
            .map(|part| (layout.elements(part, &program).start, part.first))
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut starts: Vec<_> = places.iter().map(|place| place.0).collect();
        starts.dedup();
        assert_eq!(starts.len(), places.len());
        assert_eq!(layout.scratch(&program), 3 * places.len() as u64);
    }

    #[test]
    fn pairs_have_blocks_of_their_own_sizes_on_both_sides() {
        let program = program(Algorithm::Pairwise, Collective::AllToAllV, Rank(1), 3);
        let blocks = Blocks::Pairs { to: [1, 2, 3].into(), from: [5, 2, 0].into() };
        let layout = Layout::new(&call(Collective::AllToAllV, 0), &blocks, &program, Rank(1), 3);
        let pair = |from: u32, to: u32| from * 3 + to;
        assert_eq!(layout.elements(part(Vector::Input, pair(1, 2), 1), &program), 3..6);
        assert_eq!(layout.elements(part(Vector::Data, pair(0, 1), 1), &program), 0..5);
        assert_eq!(layout.elements(part(Vector::Data, pair(2, 1), 1), &program), 7..7);
    }
}
