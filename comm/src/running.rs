//! One operation under way, whichever way it is carried.

use std::sync::Arc;

use tutti_topo::Rank;
use tutti_topo::schedule::Collective;
use tutti_transport::Transport;

use crate::call::{Call, Fingerprint};
use crate::executor::{Fault, Group, Operation};
use crate::fold::Kernel;
use crate::fused::FusedOperation;
use crate::program::Program;
use crate::wait::Idle;

/// One operation under way.
pub(crate) struct Running {
    pub(crate) print: Fingerprint,
    pub(crate) idle: Idle,
    kernel: Kernel,
    way: Way,
}

enum Way {
    Steps(Operation),
    Fused(FusedOperation),
}

impl Running {
    /// Starts an operation: by the steps of `program`, or fused if there is none. `data` is made
    /// ready for folding.
    pub(crate) fn start(
        call: &Call,
        print: Fingerprint,
        program: Option<Arc<Program>>,
        kernel: Kernel,
        data: &mut [u8],
    ) -> Running {
        let way = match program {
            Some(program) => {
                if call.collective == Collective::AllReduce && kernel.needs_prepare() {
                    kernel.prepare(data);
                }
                Way::Steps(Operation::new(program, call, print, kernel))
            }
            None => Way::Fused(FusedOperation::new(call, print, kernel)),
        };
        Running { print, idle: Idle::default(), kernel, way }
    }

    /// Moves what can be moved now; says whether anything did.
    pub(crate) fn progress(
        &mut self,
        data: &mut [u8],
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        match &mut self.way {
            Way::Steps(operation) => operation.progress(data, group, transport),
            Way::Fused(operation) => operation.progress(data, group, transport),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        match &self.way {
            Way::Steps(operation) => operation.is_done(),
            Way::Fused(operation) => operation.is_done(),
        }
    }

    /// What the folded data needs to be the result.
    pub(crate) fn finish(&self, data: &mut [u8]) {
        let by_steps = matches!(self.way, Way::Steps(_));
        let reduces =
            self.print.call().is_some_and(|call| call.collective == Collective::AllReduce);
        if by_steps && reduces && self.kernel.needs_finish() {
            self.kernel.finish(data);
        }
    }

    pub(crate) fn waits_for(&self) -> Option<Rank> {
        match &self.way {
            Way::Steps(operation) => operation.waits_for(),
            Way::Fused(operation) => operation.waits_for(),
        }
    }
}
