//! The ranks that joined together, and all the communicators among them, as the hub sees them.
//!
//! Pure state, as [`Session`]. What happens to a rank's process is told to every communicator that
//! contains it; all else concerns one communicator alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::session::Session;
use super::wire::{FromHub, GroupId, Report, ToHub, WHOLE};

/// A job: the communicator of all ranks, and those of some of them.
pub(super) struct Job {
    pub(super) whole: Session,
    groups: BTreeMap<GroupId, Group>,
    /// Ranks whose lines are gone.
    gone: BTreeSet<u32>,
}

/// A communicator of some of the ranks.
struct Group {
    session: Session,
    /// By rank in it, the rank in the whole.
    ranks: Vec<u32>,
    /// By rank in it, what is to be told to a member that has not opened it yet; none once it has.
    held: Vec<Option<Vec<FromHub>>>,
}

impl Job {
    pub(super) fn new(id: u64, size: u32) -> Job {
        Job { whole: Session::new(id, size), groups: BTreeMap::new(), gone: BTreeSet::new() }
    }

    pub(super) fn id(&self) -> u64 {
        self.whole.id
    }

    pub(super) fn report(&self, rank: u32) -> Option<&Report> {
        self.whole.report(rank)
    }

    /// Hears what `rank` says about a communicator. What it cannot say, it has not said.
    pub(super) fn hear(&mut self, rank: u32, group: GroupId, message: ToHub, now: Instant) {
        match message {
            message if group == WHOLE => self.whole.hear(rank, message, now),
            ToHub::Open { ranks } => self.open(rank, group, ranks),
            message => {
                let Some(group) = self.groups.get_mut(&group) else { return };
                if let Some(seat) = group.seat(rank) {
                    group.session.hear(seat, message, now);
                }
            }
        }
        self.groups.retain(|_, group| !group.session.is_over());
    }

    fn open(&mut self, rank: u32, id: GroupId, ranks: Vec<u32>) {
        if !self.groups.contains_key(&id) {
            let Some(group) = self.form(id, ranks.clone()) else {
                return tracing::warn!(rank, ?ranks, "opens no communicator that can be");
            };
            self.groups.insert(id, group);
        }
        let group = self.groups.get_mut(&id).expect("it was found or made above");
        match group.seat(rank) {
            Some(seat) if group.ranks == ranks => {
                let held = group.held[seat as usize].take().unwrap_or_default();
                held.into_iter().for_each(|message| group.session.tell(seat, message));
            }
            _ => tracing::warn!(rank, ?ranks, "opens a communicator that others have opened"),
        }
    }

    /// A communicator of these ranks, if they are different ones of this job.
    fn form(&self, id: GroupId, ranks: Vec<u32>) -> Option<Group> {
        if ranks.is_empty() || ranks.iter().collect::<BTreeSet<_>>().len() != ranks.len() {
            return None;
        }
        let mut session = Session::new(id, ranks.len() as u32);
        for (seat, &rank) in (0..).zip(&ranks) {
            session.seat_member(seat, rank, self.report(rank)?.clone());
        }
        for (seat, _) in (0..).zip(&ranks).filter(|(_, rank)| self.gone.contains(rank)) {
            session.gone(seat);
        }
        let held = ranks.iter().map(|_| Some(Vec::new())).collect();
        Some(Group { session, ranks, held })
    }

    /// The line of `rank` is gone.
    pub(super) fn gone(&mut self, rank: u32) {
        self.gone.insert(rank);
        self.whole.gone(rank);
        for group in self.groups.values_mut() {
            if let Some(seat) = group.seat(rank) {
                group.session.gone(seat);
            }
        }
    }

    pub(super) fn next_tick(&self) -> Option<Instant> {
        let groups = self.groups.values().map(|group| &group.session);
        groups.chain([&self.whole]).filter_map(Session::next_tick).min()
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.whole.tick(now);
        self.groups.values_mut().for_each(|group| group.session.tick(now));
    }

    /// What is to be sent: to which rank, about which communicator.
    pub(super) fn take_out(&mut self) -> Vec<(u32, GroupId, FromHub)> {
        let whole = self.whole.take_out().into_iter();
        let mut out: Vec<_> = whole.map(|(rank, message)| (rank, WHOLE, message)).collect();
        for (&id, group) in &mut self.groups {
            for (seat, message) in group.session.take_out() {
                match &mut group.held[seat as usize] {
                    Some(held) => held.push(message),
                    None => out.push((group.ranks[seat as usize], id, message)),
                }
            }
        }
        out
    }
}

impl Group {
    /// The rank in this communicator of a rank of the whole.
    fn seat(&self, rank: u32) -> Option<u32> {
        self.ranks.iter().position(|member| *member == rank).map(|seat| seat as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Record, Trouble};
    use super::*;
    use crate::error::Cause;

    fn report(rank: u32) -> Report {
        Report {
            host: "a".into(),
            host_key: "a".into(),
            network: "a".into(),
            pid: 100 + rank,
            numa_node: 0,
            cores: crate::cores::Cores { affinity: vec![0, 1], quota: None },
            address: ([127, 0, 0, 1], 1).into(),
            settings: Vec::new(),
        }
    }

    /// Four ranks, of which 3 and 1 are group 7 and 0 and 2 group 8.
    fn job() -> Job {
        let mut job = Job::new(5, 4);
        (0..4).for_each(|rank| job.whole.join(rank, report(rank)));
        for (id, ranks) in [(7, vec![3, 1]), (8, vec![0, 2])] {
            ranks.iter().for_each(|&rank| open(&mut job, rank, id, &ranks));
        }
        job.take_out();
        job
    }

    fn open(job: &mut Job, rank: u32, id: GroupId, ranks: &[u32]) {
        job.hear(rank, id, ToHub::Open { ranks: ranks.into() }, Instant::now());
    }

    fn verdicts(job: &mut Job) -> Vec<(u32, GroupId, Cause)> {
        let out = job.take_out().into_iter();
        out.filter_map(|(rank, group, message)| match message {
            FromHub::Verdict(cause) => Some((rank, group, cause)),
            _ => None,
        })
        .collect()
    }

    fn abort() -> ToHub {
        ToHub::Trouble { record: Record::default(), trouble: Trouble::Abort }
    }

    #[test]
    fn a_death_ends_the_groups_that_contain_the_rank_and_names_both_its_ranks() {
        let mut job = job();
        job.gone(1);
        let told = verdicts(&mut job);
        let whom: Vec<_> = told.iter().map(|(rank, group, _)| (*rank, *group)).collect();
        assert_eq!(whom, [(0, WHOLE), (1, WHOLE), (2, WHOLE), (3, WHOLE), (3, 7), (1, 7)]);
        let Cause::Died { member } = &told[4].2 else { panic!("{told:?}") };
        assert_eq!((member.rank, member.world_rank, member.pid), (1, 1, 101));
    }

    #[test]
    fn an_abort_ends_its_group_alone() {
        let mut job = job();
        job.hear(1, 7, abort(), Instant::now());
        let told = verdicts(&mut job);
        assert!(told.iter().all(|(rank, group, _)| [1, 3].contains(rank) && *group == 7));
        let Cause::Aborted { member } = &told[0].2 else { panic!("{told:?}") };
        assert_eq!((member.rank, member.world_rank), (1, 1));
        job.hear(0, 7, abort(), Instant::now());
        assert_eq!(verdicts(&mut job), [], "rank 0 is not in it");
    }

    #[test]
    fn leaving_a_group_is_leaving_that_group() {
        let mut job = job();
        job.hear(1, 7, ToHub::Leave, Instant::now());
        job.hear(1, WHOLE, ToHub::Leave, Instant::now());
        job.gone(1);
        assert_eq!(verdicts(&mut job), [], "it was in no other");
    }

    #[test]
    fn a_group_that_all_have_left_is_forgotten() {
        let mut job = job();
        job.hear(3, 7, ToHub::Leave, Instant::now());
        job.hear(1, 7, ToHub::Leave, Instant::now());
        assert_eq!(job.groups.len(), 1);
    }

    #[test]
    fn who_opens_late_is_told_what_happened_before() {
        let mut job = job();
        open(&mut job, 0, 9, &[0, 3]);
        job.hear(0, 9, abort(), Instant::now());
        let told = verdicts(&mut job);
        assert!(matches!(&told[..], [(0, 9, Cause::Aborted { .. })]), "{told:?}");
        open(&mut job, 3, 9, &[0, 3]);
        let told = verdicts(&mut job);
        assert!(matches!(&told[..], [(3, 9, Cause::Aborted { .. })]), "{told:?}");
    }

    #[test]
    fn a_group_with_a_rank_that_is_gone_fails_at_once() {
        let mut job = job();
        job.gone(2);
        job.take_out();
        open(&mut job, 0, 9, &[2, 0]);
        let told = verdicts(&mut job);
        let [(0, 9, Cause::Died { member })] = &told[..] else { panic!("{told:?}") };
        assert_eq!((member.rank, member.world_rank), (0, 2));
    }

    #[test]
    fn nonsense_opens_nothing() {
        let mut job = job();
        for ranks in [&[0, 4][..], &[0, 0], &[]] {
            open(&mut job, 0, 9, ranks);
        }
        open(&mut job, 0, 7, &[0, 1]);
        assert_eq!(job.groups.len(), 2);
        assert!(job.take_out().is_empty());
    }
}
