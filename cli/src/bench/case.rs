//! What one row of the table measures.

use anyhow::Result;
use tutti::{Communicator, DataType, Reduction, Request};
use tutti_topo::schedule::Collective;

/// One collective at one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) collective: Collective,
    pub(super) data_type: DataType,
    /// Of no meaning but for an all-reduce.
    pub(super) reduction: Reduction,
    /// Elements per rank.
    pub(super) count: u64,
}

impl Case {
    /// Carries the collective out once. `data` is [`bytes`](Case::bytes) long.
    pub(super) fn run(&self, comm: &Communicator, data: &mut [u8]) -> Result<()> {
        match self.collective {
            Collective::Barrier => comm.barrier()?,
            collective => {
                let request = Request::new(collective, self.data_type).by(self.reduction);
                comm.run(&request, None, data)?;
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.count * self.data_type.size() as u64
    }

    /// The bytes that pass each rank's link at best, by the bytes of the data.
    pub(super) fn bus_factor(&self, ranks: u32) -> f64 {
        match self.collective {
            Collective::AllReduce => 2.0 * f64::from(ranks - 1) / f64::from(ranks),
            Collective::Broadcast { .. } => 1.0,
            _ => 0.0,
        }
    }

    /// The type's name, if the collective has elements.
    pub(super) fn type_name(&self) -> Option<&'static str> {
        (self.collective != Collective::Barrier).then(|| self.data_type.name())
    }

    /// The reduction's name, if the collective has one.
    pub(super) fn reduction_name(&self) -> Option<&'static str> {
        (self.collective == Collective::AllReduce).then(|| self.reduction.name())
    }
}
