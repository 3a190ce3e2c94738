//! Runs sends and receives: those of one call, and those that were started one after another.

use std::sync::Arc;
use std::time::Instant;

use super::{Engine, Entry, Parts};
use crate::error::{Cause, Error, ErrorKind};
use crate::message::End;
use crate::point_operation::{Bytes, Moving, Transfer};
use crate::wait::Idle;
use crate::work::Lent;

/// Sends and receives that were started one after another; they move together.
#[derive(Default)]
pub(super) struct PointRun {
    idle: Idle,
    points: Vec<QueuedPoint>,
}

struct QueuedPoint {
    id: u64,
    transfer: Transfer,
    buffer: Box<dyn Lent>,
}

impl PointRun {
    pub(super) fn holds(&self, id: u64) -> bool {
        self.points.iter().any(|point| point.id == id)
    }

    /// Its messages, and the standstill of all of them.
    fn parts(&mut self) -> (Vec<Moving<'_>>, &mut Idle) {
        let moving = self.points.iter_mut().map(|QueuedPoint { transfer, buffer, .. }| {
            let bytes = match transfer.end() {
                End::To(_) => Bytes::Out(buffer.lend().into),
                End::From(_) | End::FromAny => Bytes::In(buffer.lend().into),
            };
            Moving { transfer, bytes }
        });
        (moving.collect(), &mut self.idle)
    }
}

impl Engine {
    /// Runs sends and receives to their end, together with those that were started just before.
    pub(crate) fn run_points(&mut self, own: &mut [Moving<'_>]) -> Result<(), Error> {
        let Some(first) = own.first() else { return Ok(()) };
        let print = first.transfer.print();
        self.check_usable(&print)?;
        while self.queue.len() > 1 || matches!(self.queue.front(), Some(Entry::Collective(_))) {
            self.step(None);
        }
        self.check_usable(&print)?;
        self.check_own_messages(own)?;
        let mut run = match self.queue.pop_front() {
            Some(Entry::Points(run)) => run,
            _ => PointRun::default(),
        };
        let mut moving = run.parts().0;
        let started = moving.len();
        moving.extend(own.iter_mut().map(|Moving { transfer, bytes }| {
            let bytes = bytes.reborrow();
            Moving { transfer, bytes }
        }));
        let over = |all: &[Moving<'_>]| all[started..].iter().all(|own| own.transfer.is_done());
        let ended = self.drive_points(&mut moving, over, &mut Idle::default(), None);
        self.settle(run, ended.as_ref().err());
        ended.map(drop).map_err(|cause| {
            let open = own.iter().find(|own| !own.transfer.is_done());
            self.fail(&open.map_or(print, |own| own.transfer.print()), cause)
        })
    }

    /// Puts a message behind what was started before; it moves together with its neighbours.
    pub(crate) fn enqueue_point(
        &mut self,
        transfer: Transfer,
        buffer: Box<dyn Lent>,
    ) -> Result<u64, Error> {
        self.check_usable(&transfer.print())?;
        let id = self.next_id;
        self.next_id += 1;
        let point = QueuedPoint { id, transfer, buffer };
        match self.queue.back_mut() {
            Some(Entry::Points(run)) => run.points.push(point),
            _ => {
                let run = PointRun { points: vec![point], ..PointRun::default() };
                self.queue.push_back(Entry::Points(run));
            }
        }
        Ok(id)
    }

    /// Moves a run from the front of the queue until one of it is over or `until` has passed; says
    /// whether one is over. The rest goes back.
    pub(super) fn step_points(&mut self, mut run: PointRun, until: Option<Instant>) -> bool {
        let ended = match self.failed.clone() {
            Some(cause) => Err(cause),
            None => {
                let over = |all: &[Moving<'_>]| all.iter().any(|point| point.transfer.is_done());
                let (mut moving, idle) = run.parts();
                self.drive_points(&mut moving, over, idle, until)
            }
        };
        self.settle(run, ended.as_ref().err());
        ended.unwrap_or(true)
    }

    /// Polls and rests until it is `over` (true) or `until` has passed (false).
    fn drive_points(
        &mut self,
        moving: &mut [Moving<'_>],
        over: impl Fn(&[Moving<'_>]) -> bool,
        idle: &mut Idle,
        until: Option<Instant>,
    ) -> Result<bool, Arc<Cause>> {
        let mut recorded = None;
        let ended = loop {
            let Parts { transport, group, monitor, patience, .. } = &mut self.parts;
            let polled = self.streams.progress(moving, group, &mut **transport);
            let open = moving.iter().position(|point| !point.transfer.is_done());
            let shown = polled.as_ref().map_or_else(|(index, _)| Some(*index), |_| open);
            let shown = &*moving[shown.unwrap_or(0)].transfer;
            let print = shown.print();
            if let Some(monitor) = monitor
                && recorded != Some(print)
            {
                monitor.record().enter(&print);
                recorded = Some(print);
            }
            let moved = match polled {
                Err((_, fault)) => break Err(self.judge(&print, fault)),
                Ok(_) if over(moving) => break Ok(true),
                Ok(moved) => moved,
            };
            match idle.pause(moved, until, patience, monitor.as_ref(), &mut **transport) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(interrupt) => {
                    break Err(self.interrupted(&print, shown.end().peer(), interrupt));
                }
            }
        };
        self.leave();
        ended
    }

    /// Hands out what is over of a run and puts the rest back, or fails it with `cause`.
    fn settle(&mut self, run: PointRun, cause: Option<&Arc<Cause>>) {
        let PointRun { idle, points } = run;
        let mut rest = Vec::new();
        for point in points {
            match cause {
                _ if point.transfer.is_done() => self.keep(point.id, Ok(point.buffer)),
                Some(cause) => {
                    let error = self.fail(&point.transfer.print(), Arc::clone(cause));
                    self.keep(point.id, Err(error));
                }
                None => rest.push(point),
            }
        }
        if !rest.is_empty() {
            self.queue.push_front(Entry::Points(PointRun { idle, points: rest }));
        }
    }

    /// Refuses messages of this rank to itself that would wait for ever: their other end must be in
    /// the same call, or started just before it.
    fn check_own_messages(&self, own: &[Moving<'_>]) -> Result<(), Error> {
        let (me, alone) = (self.parts.group.me, self.parts.group.size() == 1);
        let before = match self.queue.front() {
            Some(Entry::Points(run)) => run.points.as_slice(),
            _ => &[],
        };
        let ends = || own.iter().map(|point| point.transfer.end());
        let count = |wanted: &dyn Fn(End) -> bool| {
            let started = before.iter().map(|point| point.transfer.end());
            started.chain(ends()).filter(|end| wanted(*end)).count()
        };
        let takes_from_me = |end| end == End::From(me) || (alone && end == End::FromAny);
        let sends = count(&|end| end == End::To(me));
        let receives = count(&takes_from_me);
        let any = if alone { 0 } else { count(&|end| end == End::FromAny) };
        let (missing, its) = if sends > receives + any && ends().any(|end| end == End::To(me)) {
            ("receive", "send to itself")
        } else if receives > sends && ends().any(takes_from_me) {
            ("send", "receive from itself")
        } else {
            return Ok(());
        };
        let what = format!(
            "a {its} would wait for ever: put it in one batch with its {missing}, or start that before"
        );
        Err(Error::new(Some(me), ErrorKind::Argument(what)))
    }
}
