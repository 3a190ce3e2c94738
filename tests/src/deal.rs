//! Any collective as a plain loop has it: what each rank passes, and what must come out.

use std::ops::Range;

use tutti::{Collective, Communicator, Counts, DataType, Rank, Reduction, Request};

use crate::reference;

/// One call of a whole group.
#[derive(Clone, Debug)]
pub struct Deal {
    /// What is called.
    pub collective: Collective,
    /// The size of the group.
    pub ranks: u32,
    /// The type of the elements.
    pub data_type: DataType,
    /// How they are combined, if they are.
    pub reduction: Reduction,
    /// The sizes of the blocks, in elements.
    pub sizes: Sizes,
    /// Whether contribution and result share a buffer.
    pub in_place: bool,
}

/// The sizes of the blocks of a deal.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// Of every block; where there are no blocks, of the data.
    Even(u64),
    /// By rank.
    Listed(Vec<u64>),
    /// By sender and receiver.
    Pairs(Vec<Vec<u64>>),
}

impl Deal {
    /// Makes the call on this rank and compares.
    ///
    /// # Errors
    ///
    /// What differs, or the error of the call.
    pub fn check(&self, comm: &Communicator) -> Result<(), String> {
        let me = comm.rank().0;
        let (from, mut into) = (self.from(me), self.into(me));
        let run = comm.run(&self.request(me), from.as_deref(), &mut into);
        run.map_err(|error| error.to_string())?;
        if let Some(from) = from
            && from != self.from(me).unwrap_or_default()
        {
            return Err("the contribution was changed".into());
        }
        self.compare(me, &into)
    }

    /// Compares a result with what must come out on that rank.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn compare(&self, me: u32, into: &[u8]) -> Result<(), String> {
        let Some((place, want)) = self.want(me) else { return Ok(()) };
        let size = self.data_type.size() as u64;
        let place = (place.start * size) as usize..(place.end * size) as usize;
        reference::compare(&into[place], &want, self.data_type)
            .map_err(|difference| format!("rank {me} of {self:?}: {difference}"))
    }

    /// What the rank asks for.
    pub fn request(&self, me: u32) -> Request {
        let list = |counts: &[u64]| counts.iter().map(|&count| count as usize).collect();
        let counts = match &self.sizes {
            Sizes::Even(_) => Counts::Even,
            Sizes::Listed(counts) => Counts::Listed(list(counts)),
            Sizes::Pairs(pairs) => {
                let from: Vec<u64> = pairs.iter().map(|row| row[me as usize]).collect();
                Counts::Pairs { to: list(&pairs[me as usize]), from: list(&from) }
            }
        };
        Request::new(self.collective, self.data_type).by(self.reduction).with_counts(counts)
    }

    /// The contribution of a rank, unless it is in place.
    pub fn from(&self, me: u32) -> Option<Vec<u8>> {
        (!self.in_place).then(|| self.contribution(me))
    }

    /// The buffer for the result before the call.
    pub fn into(&self, me: u32) -> Vec<u8> {
        let mut into = vec![0xa5; self.result_len(me) * self.data_type.size()];
        if self.in_place {
            let data = self.contribution(me);
            let start = match self.collective {
                Collective::AllGather => self.block(me).start,
                Collective::Gather { root } if root.0 == me => self.block(me).start,
                _ => 0,
            } as usize
                * self.data_type.size();
            into[start..start + data.len()].copy_from_slice(&data);
        }
        into
    }

    fn contribution(&self, me: u32) -> Vec<u8> {
        match self.collective {
            Collective::AllReduce | Collective::Reduce { .. } | Collective::ReduceScatter => {
                self.values(0..self.total(), |index| self.value(me, index))
            }
            Collective::Broadcast { .. } => self.values(0..self.total(), |i| self.value(me, i)),
            Collective::AllGather | Collective::Gather { .. } => {
                self.values(self.block(me), |index| self.value(me, index))
            }
            Collective::Scatter { root } if root.0 == me => {
                self.values(0..self.total(), |index| self.value(me, index))
            }
            Collective::Scatter { .. } => Vec::new(),
            Collective::AllToAll | Collective::AllToAllV => {
                (0..self.ranks).flat_map(|to| self.pair(me, to)).collect()
            }
            Collective::Barrier => Vec::new(),
        }
    }

    /// How many elements the buffer for the result has.
    fn result_len(&self, me: u32) -> usize {
        let all = match self.collective {
            Collective::Gather { root } if root.0 != me && self.in_place => {
                return self.block_len(me);
            }
            Collective::Gather { root } | Collective::Reduce { root } if root.0 != me => {
                if self.in_place { self.total() } else { 0 }
            }
            Collective::ReduceScatter if !self.in_place => return self.block_len(me),
            Collective::Scatter { root } if root.0 != me || !self.in_place => {
                return self.block_len(me);
            }
            Collective::AllToAll | Collective::AllToAllV => {
                (0..self.ranks).map(|from| self.pair_len(from, me)).sum()
            }
            Collective::Barrier => 1,
            _ => self.total(),
        };
        all as usize
    }

    /// The elements of the buffer that are a result on that rank, and what they must be.
    fn want(&self, me: u32) -> Option<(Range<u64>, Vec<u8>)> {
        let all = || 0..self.total();
        let folded = |index| reference::reduced(index, self.ranks, self.data_type, self.reduction);
        match self.collective {
            Collective::Barrier => None,
            Collective::AllReduce => Some((all(), self.values(all(), folded))),
            Collective::Reduce { root } if root.0 == me => {
                Some((all(), self.values(all(), folded)))
            }
            Collective::Broadcast { root } => {
                Some((all(), self.values(all(), |index| self.value(root.0, index))))
            }
            Collective::AllGather => Some((all(), self.gathered())),
            Collective::Gather { root } if root.0 == me => Some((all(), self.gathered())),
            Collective::Reduce { .. } | Collective::Gather { .. } => None,
            Collective::ReduceScatter => {
                let (own, place) = (self.block(me), self.own_place(me));
                Some((place, self.values(own, folded)))
            }
            Collective::Scatter { root } => {
                let own = self.block(me);
                let place = if root.0 == me { self.own_place(me) } else { 0..own.end - own.start };
                Some((place, self.values(own, |index| self.value(root.0, index))))
            }
            Collective::AllToAll | Collective::AllToAllV => {
                let data: Vec<u8> = (0..self.ranks).flat_map(|from| self.pair(from, me)).collect();
                Some((0..(data.len() / self.data_type.size()) as u64, data))
            }
        }
    }

    fn gathered(&self) -> Vec<u8> {
        let block = |rank| self.values(self.block(rank), |index| self.value(rank, index));
        (0..self.ranks).flat_map(block).collect()
    }

    /// Where a rank's own block is in its result buffer, when that may be the whole data.
    fn own_place(&self, me: u32) -> Range<u64> {
        let own = self.block(me);
        if self.in_place { own } else { 0..own.end - own.start }
    }

    fn total(&self) -> u64 {
        match &self.sizes {
            Sizes::Even(size) if self.collective.has_blocks() => size * u64::from(self.ranks),
            Sizes::Even(size) => *size,
            Sizes::Listed(sizes) => sizes.iter().sum(),
            Sizes::Pairs(_) => unreachable!("an all-to-all has no total"),
        }
    }

    fn block_len(&self, rank: u32) -> usize {
        let block = self.block(rank);
        (block.end - block.start) as usize
    }

    fn block(&self, rank: u32) -> Range<u64> {
        let size = |rank| match &self.sizes {
            Sizes::Even(size) => *size,
            Sizes::Listed(sizes) => sizes[rank as usize],
            Sizes::Pairs(_) => unreachable!("an all-to-all has blocks for pairs only"),
        };
        let start = (0..rank).map(size).sum();
        start..start + size(rank)
    }

    fn pair_len(&self, from: u32, to: u32) -> u64 {
        match &self.sizes {
            Sizes::Even(size) => *size,
            Sizes::Pairs(pairs) => pairs[from as usize][to as usize],
            Sizes::Listed(_) => unreachable!("an all-to-all has blocks for pairs only"),
        }
    }

    /// What one rank has for another.
    fn pair(&self, from: u32, to: u32) -> Vec<u8> {
        let first = u64::from(to) << 32;
        self.values(first..first + self.pair_len(from, to), |index| self.value(from, index))
    }

    fn value(&self, rank: u32, index: u64) -> i64 {
        reference::value(rank, index, self.ranks, self.data_type, self.reduction)
    }

    fn values(&self, indices: Range<u64>, value: impl Fn(u64) -> i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        indices.for_each(|index| reference::encode(value(index), self.data_type, &mut bytes));
        bytes
    }
}

/// Every collective in every form, with blocks of `size` elements and of sizes around that.
pub fn every_deal(ranks: u32, root: u32, size: u64) -> Vec<Deal> {
    let uneven = |n: u64| (n * 7 + 3) % 5 * size / 3;
    let listed = Sizes::Listed((0..ranks).map(|rank| uneven(rank.into())).collect());
    let pair = |from: u32, to: u32| uneven(u64::from(from * 3 + to));
    let pairs = |symmetric: bool| {
        let pair = move |from: u32, to| {
            if symmetric { pair(from.min(to), from.max(to)) } else { pair(from, to) }
        };
        Sizes::Pairs((0..ranks).map(|from| (0..ranks).map(|to| pair(from, to)).collect()).collect())
    };
    let mut deals = Vec::new();
    for kind in Collective::KINDS.map(|kind| kind.with_root(Rank(root))) {
        for in_place in [false, true] {
            let sizes = match kind {
                Collective::AllToAllV => vec![pairs(in_place)],
                Collective::AllToAll => vec![Sizes::Even(size)],
                _ if kind.has_blocks() => vec![Sizes::Even(size), listed.clone()],
                _ => vec![Sizes::Even(size)],
            };
            deals.extend(sizes.into_iter().map(|sizes| Deal {
                collective: kind,
                ranks,
                data_type: DataType::F32,
                reduction: Reduction::Sum,
                sizes,
                in_place,
            }));
        }
    }
    deals
}
