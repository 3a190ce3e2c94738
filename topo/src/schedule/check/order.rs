use std::collections::HashMap;

use crate::schedule::{Part, Schedule, Step, Vector};

/// For each step of a rank the earlier steps that must be done before it takes effect.
///
/// Of the steps that touch the same chunk only the nearest are listed: to a reader the last
/// writer, to a writer that writer and the readers since. All others come before these.
pub(super) fn predecessors(schedule: &Schedule) -> Vec<Vec<u32>> {
    let mut touched: HashMap<(Vector, u32), Users> = HashMap::new();
    let mut before_each = Vec::with_capacity(schedule.steps.len());
    for (index, step) in (0..).zip(&schedule.steps) {
        let mut before = Vec::new();
        for (access, part) in step.accesses() {
            for chunk in part.first..part.first + part.len {
                let users = touched.entry((part.vector, chunk)).or_default();
                users.add(index, access, &mut before);
            }
        }
        before.sort_unstable();
        before.dedup();
        before_each.push(before);
    }
    before_each
}

/// How a step uses a part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Reads,
    Writes,
}

impl Step {
    /// The parts a step touches. A fold counts as a write of what it folds into.
    pub(super) fn accesses(&self) -> impl Iterator<Item = (Access, Part)> + use<> {
        let (first, second) = match *self {
            Step::Send { part, .. } => ((Access::Reads, part), None),
            Step::Recv { part, .. } | Step::RecvReduce { part, .. } => {
                ((Access::Writes, part), None)
            }
            Step::Reduce { from, into } | Step::Copy { from, into } => {
                ((Access::Reads, from), Some((Access::Writes, into)))
            }
        };
        std::iter::once(first).chain(second)
    }
}

/// Who last used a chunk.
#[derive(Default)]
struct Users {
    writer: Option<u32>,
    /// Those after the writer.
    readers: Vec<u32>,
}

impl Users {
    fn add(&mut self, step: u32, access: Access, before: &mut Vec<u32>) {
        before.extend(self.writer);
        match access {
            Access::Reads => self.readers.push(step),
            Access::Writes => {
                before.append(&mut self.readers);
                self.writer = Some(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    fn order(steps: &[Step]) -> Vec<Vec<u32>> {
        predecessors(&Schedule { chunks: 4, steps: steps.to_vec() })
    }

    fn send(first: u32, len: u32) -> Step {
        Step::Send { to: Rank(1), part: Part::data(first, len) }
    }

    fn recv(first: u32, len: u32) -> Step {
        Step::Recv { from: Rank(1), part: Part::data(first, len) }
    }

    #[test]
    fn a_reader_waits_for_the_last_writer() {
        assert_eq!(order(&[recv(0, 2), recv(1, 1), send(1, 1)]), [vec![], vec![0], vec![1]]);
    }

    #[test]
    fn readers_do_not_wait_for_each_other() {
        assert_eq!(order(&[send(0, 2), send(0, 2)]), [vec![], vec![]]);
    }

    #[test]
    fn a_writer_waits_for_all_readers_of_any_of_its_chunks() {
        let steps = [send(0, 1), send(1, 2), send(3, 1), recv(0, 3)];
        assert_eq!(order(&steps)[3], [0, 1]);
    }

    #[test]
    fn a_local_step_reads_one_vector_and_writes_the_other() {
        let copy = Step::Copy { from: Part::scratch(0, 1), into: Part::data(0, 1) };
        let into_scratch = Step::RecvReduce { from: Rank(1), part: Part::scratch(0, 1) };
        let steps = [send(0, 1), into_scratch, copy, into_scratch, send(0, 1)];
        assert_eq!(order(&steps), [vec![], vec![], vec![0, 1], vec![1, 2], vec![2]]);
    }
}
