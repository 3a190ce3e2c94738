//! One operation under way, whichever way it is carried.

use std::ops::Range;
use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use tutti_transport::Transport;

use crate::call::Fingerprint;
use crate::executor::{Fault, Group, Operation};
use crate::fold::Kernel;
use crate::fused::{Cut, FusedOperation};
use crate::layout::{Layout, block};
use crate::program::Program;
use crate::request::Job;
use crate::stage::{Buffers, Stage};
use crate::wait::Idle;

/// One operation under way.
pub(crate) struct Running {
    pub(crate) print: Fingerprint,
    pub(crate) idle: Idle,
    way: Way,
}

/// How a plan has an operation carried.
#[derive(Clone)]
pub(crate) enum Carrier {
    Steps(Arc<Program>),
    /// Over the board, whose longest message is `limit`.
    Board {
        cut: Cut,
        limit: usize,
    },
}

enum Way {
    Steps(Stepped),
    Fused(FusedOperation),
}

/// An operation in steps, and what is done with the data before and after.
struct Stepped {
    operation: Operation,
    kernel: Kernel,
    stage: Stage,
    /// The bytes of the data that hold a fold at the end.
    folded: Range<usize>,
}

impl Running {
    /// Starts an operation of rank `me` of `size`. What is in `spare` is used if it fits.
    pub(crate) fn start(
        spare: &mut Option<Operation>,
        job: &Job,
        print: Fingerprint,
        carrier: &Carrier,
        kernel: Kernel,
        (me, size): (Rank, u32),
        buffers: &mut Buffers,
    ) -> Running {
        let way = match carrier {
            Carrier::Steps(program) => {
                let program = Arc::clone(program);
                let spare = spare.take();
                Way::Steps(Stepped::start(spare, job, print, program, kernel, (me, size), buffers))
            }
            Carrier::Board { cut, limit } => Way::Fused(FusedOperation::new(
                job,
                *cut,
                (me, size),
                print,
                kernel,
                *limit,
                buffers,
            )),
        };
        Running { print, idle: Idle::default(), way }
    }

    /// Moves what can be moved now; says whether anything did. A fused operation looks so often at
    /// the message that it lacks.
    pub(crate) fn progress(
        &mut self,
        buffers: &mut Buffers,
        group: &Group,
        transport: &mut dyn Transport,
        polls: u32,
    ) -> Result<bool, Fault> {
        match &mut self.way {
            Way::Steps(stepped) => {
                let mut memory = stepped.stage.lend(buffers);
                stepped.operation.progress(&mut memory, group, transport)
            }
            Way::Fused(operation) => operation.progress(buffers, group, transport, polls),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match &self.way {
            Way::Steps(stepped) => stepped.operation.is_done(),
            Way::Fused(operation) => operation.is_done(),
        }
    }

    /// Makes the folded data the result, and hands it over.
    pub(crate) fn finish(&mut self, buffers: &mut Buffers) {
        if let Way::Steps(stepped) = &mut self.way {
            stepped.finish(buffers);
        }
    }

    /// What a next operation may use of this one when it is done.
    pub(crate) fn into_spare(self) -> Option<Operation> {
        match self.way {
            Way::Steps(stepped) => stepped.operation.into_spare(),
            Way::Fused(_) => None,
        }
    }

    /// What this rank is in, as the rank that the fault is about should know it.
    pub(crate) fn print_between(&self, fault: &Fault) -> Fingerprint {
        match (&self.way, fault) {
            (Way::Steps(stepped), Fault::Mismatch { rank, .. }) => {
                stepped.operation.fingerprint_from(*rank).unwrap_or(self.print)
            }
            _ => self.print,
        }
    }

    pub(crate) fn waits_for(&self) -> Option<Rank> {
        match &self.way {
            Way::Steps(stepped) => stepped.operation.waits_for(),
            Way::Fused(operation) => operation.waits_for(),
        }
    }
}

impl Stepped {
    /// Makes the data ready for folding.
    fn start(
        spare: Option<Operation>,
        job: &Job,
        print: Fingerprint,
        program: Arc<Program>,
        kernel: Kernel,
        (me, size): (Rank, u32),
        buffers: &mut Buffers,
    ) -> Stepped {
        let Job { call, blocks, .. } = job;
        let mut stage = Stage::new(call, blocks, me, size, buffers);
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
        let operation = Operation::new(spare, program, layout, blocks, element, print, kernel);
        let folded = (folded.start * element) as usize..(folded.end * element) as usize;
        Stepped { operation, kernel, stage, folded }
    }

    fn finish(&mut self, buffers: &mut Buffers) {
        if !self.folded.is_empty() && self.kernel.needs_finish() {
            self.kernel.finish(&mut self.stage.lend(buffers).data[self.folded.clone()]);
        }
        self.stage.finish(buffers);
    }
}
