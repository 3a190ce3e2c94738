//! What a communicator does under its lock: plans calls, runs them in order, and turns what goes
//! wrong into the one cause that all ranks name.

mod monitored;
mod points;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use tutti_topo::Rank;
use tutti_topo::fabric::Fabric;
use tutti_topo::plan::{self, Plan, Request};
use tutti_topo::schedule::{Algorithm, Collective};
use tutti_transport::Transport;

use crate::bootstrap::Monitor;
use crate::bootstrap::wire::Trouble;
use crate::call::{Call, Fingerprint};
use crate::config::Config;
use crate::error::{Cause, Error, ErrorKind, Member};
use crate::executor::{Fault, Group, Operation};
use crate::fold::Kernel;
use crate::fused::{self, Cut};
use crate::point_operation::Streams;
use crate::program::Program;
use crate::request::Job;
use crate::running::{Carrier, Running};
use crate::stage::Buffers;
use crate::start::Acquaintance;
use crate::wait::{self, Interrupt, Patience};
use crate::work::Lent;
use points::PointRun;

/// What an engine is made of. The monitor is dropped first: it says good-bye before the
/// transport closes.
pub(crate) struct Parts {
    pub(crate) monitor: Option<Monitor>,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) group: Group,
    pub(crate) members: Vec<Member>,
    pub(crate) fabric: Fabric,
    pub(crate) patience: Patience,
    /// What its members told when they met; none where they have not.
    pub(crate) acquaintance: Option<Acquaintance>,
}

/// The state of a communicator, under its lock.
pub(crate) struct Engine {
    parts: Parts,
    config: Config,
    plans: FxHashMap<(Collective, u64), Planned>,
    programs: FxHashMap<(Collective, u32), Arc<Program>>,
    /// What the last operation that went by steps has left for the next one.
    spare: Option<Operation>,
    /// How many operations have been started.
    sequence: u64,
    streams: Streams,
    /// Operations not yet done, in order; only the first is under way.
    queue: VecDeque<Entry>,
    next_id: u64,
    finished: HashMap<u64, Result<Box<dyn Lent>, Error>>,
    /// Works that were dropped before they were done.
    forgotten: HashSet<u64>,
    failed: Option<Arc<Cause>>,
}

#[derive(Clone)]
struct Planned {
    digest: u32,
    carrier: Carrier,
}

/// What moves at one time.
enum Entry {
    Collective(Box<Queued>),
    /// Sends and receives started one after another.
    Points(PointRun),
}

struct Queued {
    id: u64,
    job: Job,
    running: Option<Running>,
    buffer: Box<dyn Lent>,
}

/// Plans are cached per size; a program that uses very many sizes starts over now and then.
const MAX_PLANS: usize = 4096;

/// The blocks of an all-to-all with uneven ones are planned as if they had so many bytes each, since
/// no rank knows them all.
const ASSUMED_BLOCK: u64 = 1 << 20;

impl Engine {
    pub(crate) fn new(parts: Parts, config: Config) -> Self {
        Engine {
            streams: Streams::new(parts.group.size()),
            parts,
            config,
            plans: FxHashMap::default(),
            programs: FxHashMap::default(),
            spare: None,
            sequence: 0,
            queue: VecDeque::new(),
            next_id: 0,
            finished: HashMap::new(),
            forgotten: HashSet::new(),
            failed: None,
        }
    }

    /// Runs one operation to its end, after those that were started before.
    pub(crate) fn run(&mut self, job: &Job, mut buffers: Buffers) -> Result<(), Error> {
        self.check_usable(&job.call)?;
        let planned = self.planned(&job.call)?;
        if !self.queue.is_empty() {
            while !self.queue.is_empty() {
                self.step(None);
            }
            self.check_usable(&job.call)?;
        }
        let mut running = self.begin(job, planned, &mut buffers);
        let ended = self.drive(&mut running, &mut buffers, None);
        self.leave();
        match ended {
            Ok(_) => self.keep_spare(running),
            Err(cause) => return Err(self.fail(&running.print, cause)),
        }
        Ok(())
    }

    /// Puts an operation behind those that were started before.
    pub(crate) fn enqueue(&mut self, job: Job, buffer: Box<dyn Lent>) -> Result<u64, Error> {
        self.check_usable(&job.call)?;
        self.planned(&job.call)?;
        let id = self.next_id;
        self.next_id += 1;
        let queued = Queued { id, job, running: None, buffer };
        self.queue.push_back(Entry::Collective(Box::new(queued)));
        Ok(id)
    }

    /// Moves the queue until operation `id` is over or `until` has passed (at least one attempt
    /// is made); says whether it is over.
    pub(crate) fn turn(&mut self, id: u64, until: Option<Instant>) -> bool {
        while !self.finished.contains_key(&id) {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    /// The buffer of an operation that is over.
    pub(crate) fn take(&mut self, id: u64) -> Result<Box<dyn Lent>, Error> {
        self.finished.remove(&id).expect("a work takes its buffer once, when it is over")
    }

    /// Nobody will ask for the result of `id`.
    pub(crate) fn forget(&mut self, id: u64) {
        let holds = |entry: &Entry| match entry {
            Entry::Collective(queued) => queued.id == id,
            Entry::Points(run) => run.holds(id),
        };
        if self.finished.remove(&id).is_none() && self.queue.iter().any(holds) {
            self.forgotten.insert(id);
        }
    }

    /// Runs the first of the queue until it is over or `until` has passed; says whether it is over.
    /// Of a run of points, the first that is over counts.
    fn step(&mut self, until: Option<Instant>) -> bool {
        let mut first = match self.queue.pop_front() {
            None => return false,
            Some(Entry::Points(run)) => return self.step_points(run, until),
            Some(Entry::Collective(first)) => first,
        };
        let ended = self.advance(&mut first, until);
        let result = match ended {
            Ok(false) => {
                self.queue.push_front(Entry::Collective(first));
                return false;
            }
            Ok(true) => Ok(first.buffer),
            Err(error) => Err(error),
        };
        self.keep(first.id, result);
        true
    }

    /// Keeps the result of an operation for the work that will ask for it.
    fn keep(&mut self, id: u64, result: Result<Box<dyn Lent>, Error>) {
        if !self.forgotten.remove(&id) {
            self.finished.insert(id, result);
        }
    }

    fn advance(&mut self, queued: &mut Queued, until: Option<Instant>) -> Result<bool, Error> {
        let mut buffers = queued.buffer.lend();
        let mut running = match queued.running.take() {
            Some(running) => running,
            None => {
                self.check_usable(&queued.job.call)?;
                let planned = self.planned(&queued.job.call)?;
                self.begin(&queued.job, planned, &mut buffers)
            }
        };
        match self.drive(&mut running, &mut buffers, until) {
            Ok(false) => {
                queued.running = Some(running);
                Ok(false)
            }
            Ok(true) => {
                self.leave();
                self.keep_spare(running);
                Ok(true)
            }
            Err(cause) => {
                self.leave();
                Err(self.fail(&running.print, cause))
            }
        }
    }

    fn begin(&mut self, job: &Job, planned: Planned, buffers: &mut Buffers) -> Running {
        let (call, group) = (&job.call, &self.parts.group);
        let print = Fingerprint::new(call, self.sequence, planned.digest);
        self.sequence += 1;
        if let Some(monitor) = &self.parts.monitor {
            monitor.record().enter(&print);
        }
        let (me, size) = (group.me, group.size());
        let kernel = Kernel::new(call.data_type, call.reduction, size, self.config.simd);
        let kernel = job.scale.map_or(kernel, |scale| kernel.scaled(scale));
        Running::start(&mut self.spare, job, print, &planned.carrier, kernel, (me, size), buffers)
    }

    fn keep_spare(&mut self, ended: Running) {
        self.spare = ended.into_spare().or(self.spare.take());
    }

    fn leave(&self) {
        if let Some(monitor) = &self.parts.monitor {
            monitor.record().leave();
        }
    }

    /// Polls and rests until the operation is done (true) or `until` has passed (false).
    fn drive(
        &mut self,
        running: &mut Running,
        buffers: &mut Buffers,
        until: Option<Instant>,
    ) -> Result<bool, Arc<Cause>> {
        loop {
            let Parts { transport, group, monitor, patience, .. } = &mut self.parts;
            let moved = match running.progress(buffers, group, &mut **transport, patience.polls) {
                Err(fault) => return Err(self.judge(&running.print_between(&fault), fault)),
                Ok(_) if running.is_done() => {
                    running.finish(buffers);
                    return Ok(true);
                }
                Ok(moved) => moved,
            };
            let idle = &mut running.idle;
            match idle.pause(moved, until, patience, monitor.as_ref(), &mut **transport) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(interrupt) => {
                    return Err(self.interrupted(&running.print, running.waits_for(), interrupt));
                }
            }
        }
    }

    /// The cause of a fault: the hub's, where there is one.
    fn judge(&self, print: &Fingerprint, fault: Fault) -> Arc<Cause> {
        if let Some(monitor) = &self.parts.monitor {
            monitor.record().enter(print);
        }
        let me = self.member(self.parts.group.me.0);
        let (trouble, fallback) = match fault {
            Fault::Mismatch { rank, theirs } => (
                Trouble::Mismatch { peer: rank.0, theirs: theirs.map(|print| print.words()) },
                Cause::Mismatch {
                    odd: self.member(rank.0),
                    odd_call: theirs.map_or("another operation".into(), |print| print.to_string()),
                    other: me,
                    other_call: print.to_string(),
                },
            ),
            Fault::Transport {
                rank: Some(rank),
                source: tutti_transport::Error::Closed { .. },
            } => (Trouble::Closed { peer: rank.0 }, Cause::Left { member: self.member(rank.0) }),
            Fault::Transport { rank, source } => {
                let peer =
                    rank.map_or(String::new(), |rank| format!("to {}: ", self.member(rank.0)));
                let what = format!("{peer}{}", with_sources(&source));
                (Trouble::Transport { what: what.clone() }, Cause::Transport { member: me, what })
            }
        };
        self.report(trouble, fallback)
    }

    fn interrupted(
        &self,
        print: &Fingerprint,
        waits_for: Option<Rank>,
        interrupt: Interrupt,
    ) -> Arc<Cause> {
        let me = self.member(self.parts.group.me.0);
        match interrupt {
            Interrupt::Verdict(cause) => cause,
            Interrupt::System(source) => {
                let what = with_sources(&source);
                self.report(
                    Trouble::Transport { what: what.clone() },
                    Cause::Transport { member: me, what },
                )
            }
            Interrupt::Deadline => {
                let after = self.parts.patience.deadline;
                let cause = Cause::Deadline {
                    member: me,
                    operation: print.to_string(),
                    after,
                    waits_for: waits_for.map(|rank| self.member(rank.0)),
                    others: Vec::new(),
                };
                self.report(
                    Trouble::Deadline { after, waits_for: waits_for.map(|rank| rank.0) },
                    cause,
                )
            }
        }
    }

    fn report(&self, trouble: Trouble, fallback: Cause) -> Arc<Cause> {
        match &self.parts.monitor {
            Some(monitor) => monitor.report(trouble, fallback),
            None => Arc::new(fallback),
        }
    }

    fn member(&self, rank: u32) -> Member {
        self.parts.members[rank as usize].clone()
    }

    fn fail(&mut self, print: &Fingerprint, cause: Arc<Cause>) -> Error {
        self.failed.get_or_insert_with(|| cause.clone());
        self.error(print.to_string(), ErrorKind::Failed(cause))
    }

    fn error(&self, operation: String, kind: ErrorKind) -> Error {
        Error { operation: Some(operation), rank: Some(self.parts.group.me), kind }
    }

    /// A communicator that has failed does nothing more.
    fn check_usable(&mut self, call: &impl std::fmt::Display) -> Result<(), Error> {
        if self.failed.is_none() {
            self.failed = wait::ended(self.parts.monitor.as_ref());
        }
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(self.error(call.to_string(), ErrorKind::Failed(cause.clone()))),
        }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// A control exchange, on behalf of `name`.
    pub(crate) fn exchange(&mut self, name: &str, blob: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let after = self.config.deadline;
        let me = self.parts.group.me;
        let Some(monitor) = &mut self.parts.monitor else {
            let alone = self.parts.group.size() == 1;
            let what = format!(
                "{name} needs a control line, which a communicator over a given transport has not"
            );
            return if alone {
                Ok(vec![blob.to_vec()])
            } else {
                Err(Error::new(Some(me), ErrorKind::Argument(what)))
            };
        };
        monitor.exchange(name, blob, after).map_err(|cause| {
            let cause = cause.unwrap_or_else(|| {
                let fallback = Cause::Deadline {
                    member: self.member(me.0),
                    operation: name.into(),
                    after,
                    waits_for: None,
                    others: Vec::new(),
                };
                self.report(Trouble::Deadline { after, waits_for: None }, fallback)
            });
            self.failed.get_or_insert_with(|| cause.clone());
            self.error(name.into(), ErrorKind::Failed(cause))
        })
    }

    pub(crate) fn plan(&mut self, collective: Collective, bytes: u64) -> Result<Plan, Error> {
        let group = &self.parts.group;
        let board = self.parts.transport.board().map(|board| board.limit() as u64);
        let request = Request {
            collective,
            bytes,
            shared_board: board.filter(|_| group.peers.len() <= fused::MAX_RANKS),
        };
        plan::plan(&request, &self.parts.fabric, &self.config.algo)
            .map_err(|error| self.error(collective.name().into(), error.into()))
    }

    fn planned(&mut self, call: &Call) -> Result<Planned, Error> {
        let bytes = match call.collective {
            Collective::AllToAllV => ASSUMED_BLOCK * u64::from(self.parts.group.size()),
            _ => call.len_bytes(),
        };
        let key = (call.collective, bytes);
        if let Some(planned) = self.plans.get(&key) {
            return Ok(planned.clone());
        }
        let plan = self.plan(key.0, key.1)?;
        let digest = plan.digest();
        let me = self.parts.group.me;
        if self.plans.len() >= MAX_PLANS {
            self.plans.clear();
            self.programs.clear();
        }
        let carrier = match self.programs.get(&(key.0, digest)) {
            Some(program) => Carrier::Steps(Arc::clone(program)),
            None => match plan.schedule(call.collective, me) {
                Some(schedule) => {
                    let program = Arc::new(Program::new(schedule));
                    self.programs.insert((key.0, digest), Arc::clone(&program));
                    Carrier::Steps(program)
                }
                None => self.over_board(&plan),
            },
        };
        let planned = Planned { digest, carrier };
        self.plans.insert(key, planned.clone());
        Ok(planned)
    }

    /// The way of a plan without steps.
    fn over_board(&mut self, plan: &Plan) -> Carrier {
        let board = self.parts.transport.board();
        let limit = board.expect("the plan is fused only where there is a board").limit();
        let shares = plan.algorithm == Algorithm::FusedShares;
        Carrier::Board { cut: Cut { shares, depth: plan.shape.depth }, limit }
    }
}

/// An error with what caused it, in one line.
fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
