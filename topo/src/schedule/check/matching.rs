use super::Fault;
use super::form::well_formed;
use crate::Rank;
use crate::schedule::{Part, Schedule, Step};

/// Which send meets which receive.
///
/// Steps start in list order and messages of a pair of ranks stay in order, so the `n`-th send of a
/// rank to another meets the `n`-th receive there, whatever the timing.
pub(super) struct Matching {
    /// For each step of each rank the step at the other end of its message (0 for local steps).
    partner: Vec<Vec<u32>>,
}

impl Matching {
    /// Meets all messages, after a look at the form of each step by itself.
    ///
    /// # Errors
    ///
    /// The first step that is out of bounds, or has no partner or one with other chunks.
    pub(super) fn of(schedules: &[Schedule]) -> Result<Matching, Fault> {
        well_formed(schedules)?;
        let partner = schedules.iter().map(|schedule| vec![0; schedule.steps.len()]).collect();
        let mut matching = Matching { partner };
        let receives = receives_by_sender(schedules);
        for (from, schedule) in ranks(schedules) {
            let mut of_pair = vec![0; schedules.len()];
            for (sent, step) in steps(schedule) {
                let Step::Send { to, part } = *step else {
                    continue;
                };
                let received = receives[to.index()][from.index()].get(of_pair[to.index()]);
                of_pair[to.index()] += 1;
                let &(step, into) =
                    received.ok_or(Fault::Unreceived { rank: from, step: sent, to })?;
                if (part.first, part.len) != (into.first, into.len) {
                    return Err(Fault::Mismatch { rank: to, step, from, sent });
                }
                matching.partner[from.index()][sent as usize] = step;
                matching.partner[to.index()][step as usize] = sent;
            }
            unsent(&receives, from, &of_pair)?;
        }
        Ok(matching)
    }

    /// The step at the other end of the message of this step.
    pub(super) fn partner(&self, rank: Rank, step: u32) -> u32 {
        self.partner[rank.index()][step as usize]
    }
}

/// For each receiver and sender the receives in order.
type Receives = Vec<Vec<Vec<(u32, Part)>>>;

fn receives_by_sender(schedules: &[Schedule]) -> Receives {
    let mut receives = vec![vec![Vec::new(); schedules.len()]; schedules.len()];
    for (rank, schedule) in ranks(schedules) {
        for (index, step) in steps(schedule) {
            if let Step::Recv { from, part } | Step::RecvReduce { from, part } = *step {
                receives[rank.index()][from.index()].push((index, part));
            }
        }
    }
    receives
}

/// Finds a receive from `from` beyond the `sent` messages to each rank.
fn unsent(receives: &Receives, from: Rank, sent: &[usize]) -> Result<(), Fault> {
    for (to, &sent) in sent.iter().enumerate() {
        if let Some(&(step, _)) = receives[to][from.index()].get(sent) {
            return Err(Fault::Unsent { rank: Rank(to as u32), step, from });
        }
    }
    Ok(())
}

pub(super) fn ranks(schedules: &[Schedule]) -> impl Iterator<Item = (Rank, &Schedule)> {
    (0..).map(Rank).zip(schedules)
}

pub(super) fn steps(schedule: &Schedule) -> impl Iterator<Item = (u32, &Step)> {
    (0..).zip(&schedule.steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: Rank = Rank(1);
    const ONE: Part = Part { vector: crate::schedule::Vector::Data, first: 1, len: 1 };

    /// The fault of two ranks with two chunks and these steps.
    fn fault(zero: &[Step], one: &[Step]) -> Fault {
        let schedules = [zero, one].map(|steps| Schedule { chunks: 2, steps: steps.to_vec() });
        Matching::of(&schedules).err().expect("a fault")
    }

    #[test]
    fn messages_meet_in_order() {
        let send = |first| Step::Send { to: OTHER, part: Part::data(first, 1) };
        let recv = |first| Step::Recv { from: Rank(0), part: Part::data(first, 1) };
        let zero = Schedule { chunks: 2, steps: vec![send(0), send(1)] };
        let one = Schedule { chunks: 2, steps: vec![recv(0), recv(1)] };
        let matching = Matching::of(&[zero, one]).unwrap();
        assert_eq!(matching.partner(Rank(0), 1), 1);
        assert_eq!(
            fault(&[send(0), send(1)], &[recv(1), recv(0)]),
            Fault::Mismatch { rank: OTHER, step: 0, from: Rank(0), sent: 0 }
        );
    }

    #[test]
    fn a_message_without_a_receive_is_named() {
        let fault = fault(&[Step::Send { to: OTHER, part: ONE }], &[]);
        assert_eq!(fault, Fault::Unreceived { rank: Rank(0), step: 0, to: OTHER });
        assert_eq!(fault.to_string(), "rank 0 step 0: rank 1 does not receive what is sent to it");
    }

    #[test]
    fn a_receive_without_a_message_is_named() {
        let fault = fault(&[Step::RecvReduce { from: OTHER, part: ONE }], &[]);
        assert_eq!(fault, Fault::Unsent { rank: Rank(0), step: 0, from: OTHER });
    }
}
