//! One operation under way, whichever way it is carried.

use std::ops::Range;
use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use tutti_transport::Transport;

use crate::call::Fingerprint;
use crate::executor::{Fault, Group, Operation};
use crate::fold::Kernel;
use crate::fused::FusedOperation;
use crate::layout::{Layout, block};
use crate::program::Program;
use crate::request::Job;
use crate::stage::{Buffers, Stage};
use crate::wait::Idle;

/// One operation under way.
pub(crate) struct Running {
    pub(crate) print: Fingerprint,
    pub(crate) idle: Idle,
    kernel: Kernel,
    stage: Stage,
    /// The bytes of the data that hold a fold at the end.
    folded: Range<usize>,
    way: Way,
}

enum Way {
    Steps(Operation),
    Fused(FusedOperation),
}

impl Running {
    /// Starts an operation of rank `me` of `size`: by the steps of `program`, or fused if there is
    /// none. The data is made ready for folding.
    pub(crate) fn start(
        job: &Job,
        print: Fingerprint,
        program: Option<Arc<Program>>,
        kernel: Kernel,
        (me, size): (Rank, u32),
        buffers: &mut Buffers,
    ) -> Running {
        let Job { call, blocks, .. } = job;
        let mut stage = Stage::new(call, blocks, me, size, buffers);
        let (way, folded) = match program {
            Some(program) => {
                let element = call.data_type.size() as u64;
                let folded = match call.collective {
                    Collective::ReduceScatter => block(call, blocks, me, size),
                    Collective::Reduce { root } if root != me => 0..0,
                    collective if collective.reduces() => 0..call.count,
                    _ => 0..0,
                };
                if call.collective.reduces() && kernel.needs_prepare() {
                    kernel.prepare(stage.lend(buffers).data);
                }
                let layout = Layout::new(call, blocks, &program, me, size);
                let steps = Operation::new(program, &layout, blocks, element, print, kernel);
                (Way::Steps(steps), folded.start * element..folded.end * element)
            }
            None => {
                if kernel.needs_scale() {
                    kernel.prepare(stage.lend(buffers).data);
                }
                (Way::Fused(FusedOperation::new(call, print, kernel)), 0..0)
            }
        };
        let folded = folded.start as usize..folded.end as usize;
        Running { print, idle: Idle::default(), kernel, stage, folded, way }
    }

    /// Moves what can be moved now; says whether anything did.
    pub(crate) fn progress(
        &mut self,
        buffers: &mut Buffers,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let mut memory = self.stage.lend(buffers);
        match &mut self.way {
            Way::Steps(operation) => operation.progress(&mut memory, group, transport),
            Way::Fused(operation) => operation.progress(memory.data, group, transport),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match &self.way {
            Way::Steps(operation) => operation.is_done(),
            Way::Fused(operation) => operation.is_done(),
        }
    }

    /// Makes the folded data the result, and hands it over.
    pub(crate) fn finish(&mut self, buffers: &mut Buffers) {
        if !self.folded.is_empty() && self.kernel.needs_finish() {
            self.kernel.finish(&mut self.stage.lend(buffers).data[self.folded.clone()]);
        }
        self.stage.finish(buffers);
    }

    /// What this rank is in, as the rank that the fault is about should know it.
    pub(crate) fn print_between(&self, fault: &Fault) -> Fingerprint {
        match (&self.way, fault) {
            (Way::Steps(operation), Fault::Mismatch { rank, .. }) => {
                operation.fingerprint_from(*rank).unwrap_or(self.print)
            }
            _ => self.print,
        }
    }

    pub(crate) fn waits_for(&self) -> Option<Rank> {
        match &self.way {
            Way::Steps(operation) => operation.waits_for(),
            Way::Fused(operation) => operation.waits_for(),
        }
    }
}
