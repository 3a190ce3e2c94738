//! Monitored barriers as the hub sees them: who has come to which, and who had not in time.
//!
//! Pure state, as the session's: arrivals and the time come in, what is to be said goes out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::wire::FromHub;

/// The barriers that not all ranks have come to, by the number that each rank counts for itself.
#[derive(Default)]
pub(super) struct Barriers(BTreeMap<u64, Barrier>);

struct Barrier {
    came: Vec<bool>,
    /// When the first of those who came gives up, and after how long.
    due: Option<(Instant, Duration)>,
    /// It is over: which ranks were missing, and after how long. Who comes later is told the same.
    over: Option<(Vec<u32>, Duration)>,
}

/// What is to be said, and to which rank.
type Out = Vec<(u32, FromHub)>;

impl Barriers {
    /// `rank` of `size` has come to a barrier and waits there for `limit`.
    pub(super) fn come(
        &mut self,
        round: u64,
        (rank, size): (u32, u32),
        limit: Duration,
        now: Instant,
    ) -> Out {
        let none = || Barrier { came: vec![false; size as usize], due: None, over: None };
        let barrier = self.0.entry(round).or_insert_with(none);
        barrier.came[rank as usize] = true;
        let due = now.checked_add(limit).map(|at| (at, limit));
        barrier.due = [barrier.due, due].into_iter().flatten().min();
        let complete = !barrier.came.contains(&false);
        let out = match &barrier.over {
            Some((missing, after)) => vec![(rank, told(round, missing, *after))],
            None if complete => barrier.tell(round, &[], limit),
            None => Vec::new(),
        };
        if complete {
            self.0.remove(&round);
        }
        out
    }

    pub(super) fn tick(&mut self, now: Instant) -> Out {
        let waiting = self.0.iter_mut().filter(|(_, barrier)| barrier.over.is_none());
        let late = waiting.filter_map(|(round, barrier)| {
            let (_, after) = barrier.due.filter(|(at, _)| *at <= now)?;
            let missing = (0..).zip(&barrier.came).filter(|(_, came)| !**came);
            let missing: Vec<u32> = missing.map(|(rank, _)| rank).collect();
            let out = barrier.tell(*round, &missing, after);
            barrier.over = Some((missing, after));
            Some(out)
        });
        late.flatten().collect()
    }

    /// When [`Barriers::tick`] has something to do next.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let waiting = self.0.values().filter(|barrier| barrier.over.is_none());
        waiting.filter_map(|barrier| barrier.due.map(|(at, _)| at)).min()
    }
}

impl Barrier {
    /// The same to all who have come.
    fn tell(&self, round: u64, missing: &[u32], after: Duration) -> Out {
        let came = (0..).zip(&self.came).filter(|(_, came)| **came);
        came.map(|(rank, _)| (rank, told(round, missing, after))).collect()
    }
}

fn told(round: u64, missing: &[u32], after: Duration) -> FromHub {
    FromHub::Barrier { round, missing: missing.to_vec(), after }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    /// Who is told that which ranks are missing.
    fn said(out: Out) -> Vec<(u32, Vec<u32>)> {
        let missing = |(rank, message)| match message {
            FromHub::Barrier { missing, .. } => (rank, missing),
            other => panic!("{other:?}"),
        };
        out.into_iter().map(missing).collect()
    }

    #[test]
    fn all_are_let_go_when_the_last_has_come() {
        let (mut barriers, now) = (Barriers::default(), Instant::now());
        assert_eq!(said(barriers.come(0, (1, 2), LIMIT, now)), []);
        assert_eq!(said(barriers.come(0, (0, 2), LIMIT, now)), [(0, vec![]), (1, vec![])]);
        assert_eq!(said(barriers.tick(now + LIMIT)), []);
        assert_eq!(barriers.next_tick(), None);
    }

    #[test]
    fn who_is_missing_is_told_when_the_first_gives_up_and_again_to_who_comes_later() {
        let (mut barriers, now) = (Barriers::default(), Instant::now());
        barriers.come(0, (0, 4), 2 * LIMIT, now);
        barriers.come(0, (2, 4), LIMIT, now);
        assert_eq!(barriers.next_tick(), Some(now + LIMIT));
        let missing = vec![1, 3];
        let told = [(0, missing.clone()), (2, missing.clone())];
        assert_eq!(said(barriers.tick(now + LIMIT)), told);
        assert_eq!(said(barriers.tick(now + 2 * LIMIT)), []);
        assert_eq!(said(barriers.come(0, (3, 4), LIMIT, now + LIMIT)), [(3, missing.clone())]);
        assert_eq!(said(barriers.come(1, (0, 4), LIMIT, now + LIMIT)), []);
        assert_eq!(said(barriers.come(0, (1, 4), LIMIT, now + LIMIT)), [(1, missing)]);
        assert_eq!(barriers.0.len(), 1, "what all have come to is forgotten");
    }

    #[test]
    fn a_limit_beyond_the_clock_never_ends() {
        let mut barriers = Barriers::default();
        barriers.come(0, (0, 2), Duration::MAX, Instant::now());
        assert_eq!(barriers.next_tick(), None);
    }
}
