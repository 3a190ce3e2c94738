//! One communicator as the hub sees it: who is in it, what they report, and the one verdict.
//!
//! Pure state: messages and the time come in, messages go out ([`Session::take_out`]).

use std::time::{Duration, Instant};

use super::barriers::Barriers;
use super::wire::{FromHub, Record, Report, ToHub, Trouble};
use crate::call::Fingerprint;
use crate::error::{Cause, Member};

/// How long the hub waits for answers, and for ranks that have not come as far as the others,
/// before it judges without them.
const ANSWER_TIME: Duration = Duration::from_millis(300);
/// How long a rank may be reported as gone before the hub itself has seen it end.
const GONE_TIME: Duration = Duration::from_millis(300);
/// How soon a rank that was behind is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// The least time between two queries, so that slow operations do not flood the line.
const QUERY_PAUSE: Duration = Duration::from_millis(50);

/// The state of one communicator.
pub(super) struct Session {
    pub(super) id: u64,
    members: Vec<Option<Seat>>,
    verdict: Option<Cause>,
    exchange: Exchange,
    barriers: Barriers,
    inquiry: Option<Inquiry>,
    last_query: Option<Instant>,
    /// A stall was reported while no query could be sent.
    query_wanted: bool,
    /// Verdicts to be given at a time unless a better one comes first.
    pending: Vec<(Instant, Cause)>,
    out: Vec<(u32, FromHub)>,
}

/// The control exchange that is due: every member's call and blob, as they come.
struct Exchange {
    round: u64,
    parts: Vec<Option<(String, Vec<u8>)>>,
}

struct Seat {
    world_rank: u32,
    report: Report,
    record: Record,
    /// What another rank has read from this one's stream, if it differed.
    seen: Option<Fingerprint>,
    answered: bool,
    /// It has closed the communicator, or is gone.
    left: bool,
}

impl Seat {
    /// The collective that the rank has entered last, unless it has entered a send or receive since.
    fn collective(&self) -> Option<Fingerprint> {
        self.record.print().filter(|print| print.message().is_none())
    }

    /// The rank that this one waits for in a send or receive.
    fn waits_for(&self) -> Option<u32> {
        let message = self.record.print().filter(|_| self.record.inside)?.message()?;
        message.end.peer().map(|rank| rank.0)
    }
}

/// A query to all members under way.
struct Inquiry {
    since: Instant,
    /// When ranks that were behind are asked again.
    again: Option<Instant>,
    /// The deadline that made it; its verdict if nothing worse is found.
    deadline: Option<(u32, Duration, Option<u32>)>,
}

impl Session {
    pub(super) fn new(id: u64, size: u32) -> Self {
        Session {
            id,
            members: (0..size).map(|_| None).collect(),
            verdict: None,
            exchange: Exchange { round: 0, parts: vec![None; size as usize] },
            barriers: Barriers::default(),
            inquiry: None,
            last_query: None,
            query_wanted: false,
            pending: Vec::new(),
            out: Vec::new(),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// What is to be sent, and to which rank.
    pub(super) fn take_out(&mut self) -> Vec<(u32, FromHub)> {
        std::mem::take(&mut self.out)
    }

    /// The report of `rank`, if it has joined.
    pub(super) fn report(&self, rank: u32) -> Option<&Report> {
        self.members.get(rank as usize)?.as_ref().map(|seat| &seat.report)
    }

    pub(super) fn missing(&self) -> Vec<u32> {
        (0..self.size()).filter(|&rank| self.members[rank as usize].is_none()).collect()
    }

    /// Adds a member and tells it whom the session waits for; when it is the last, all are told the
    /// reports of all.
    pub(super) fn join(&mut self, rank: u32, report: Report) {
        self.seat_member(rank, rank, report);
        let missing = self.missing();
        if missing.is_empty() {
            let reports = self.members.iter().flatten().map(|seat| seat.report.clone()).collect();
            self.tell_all(FromHub::Welcome { session: self.id, reports });
        } else {
            self.out.push((rank, FromHub::Waiting { missing }));
        }
    }

    /// Adds a member; `world_rank` is its rank among all of the job.
    pub(super) fn seat_member(&mut self, rank: u32, world_rank: u32, report: Report) {
        let record = Record::default();
        let seat = Seat { world_rank, report, record, seen: None, answered: false, left: false };
        self.members[rank as usize] = Some(seat);
    }

    /// Whether every member has left or is gone.
    pub(super) fn is_over(&self) -> bool {
        self.members.iter().flatten().all(|seat| seat.left)
    }

    /// Tells everybody who has joined.
    pub(super) fn tell_all(&mut self, message: FromHub) {
        let joined = (0..self.size()).filter(|&rank| self.members[rank as usize].is_some());
        self.out.extend(joined.map(|rank| (rank, message.clone())));
    }

    pub(super) fn tell(&mut self, rank: u32, message: FromHub) {
        self.out.push((rank, message));
    }

    pub(super) fn hear(&mut self, rank: u32, message: ToHub, now: Instant) {
        match message {
            ToHub::Join { .. } | ToHub::Open { .. } => {}
            ToHub::Record(record) => self.answer(rank, record, now),
            ToHub::Stall(record) => {
                self.seat(rank).record = record;
                self.query_wanted = true;
                self.tick(now);
            }
            ToHub::Trouble { record, trouble } => {
                self.seat(rank).record = record;
                self.trouble(rank, trouble, now);
            }
            ToHub::Exchange { round, call, blob } => self.exchange(rank, round, call, blob),
            ToHub::Barrier { round, limit } => {
                let size = self.size();
                self.out.extend(self.barriers.come(round, (rank, size), limit, now));
            }
            ToHub::Leave => {
                self.seat(rank).left = true;
                self.check_exchange();
            }
        }
    }

    /// The line of `rank` is gone. Whether a session without members can be forgotten is the
    /// hub's affair.
    pub(super) fn gone(&mut self, rank: u32) {
        if !self.seat(rank).left {
            self.seat(rank).left = true;
            let member = self.member(rank);
            self.judge(Cause::Died { member });
        }
    }

    /// When [`Session::tick`] has something to do next.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        if self.verdict.is_some() {
            return None;
        }
        let inquiry = self.inquiry.as_ref();
        let inquiry = inquiry.map(|inquiry| inquiry.again.unwrap_or(inquiry.since + ANSWER_TIME));
        let query =
            self.query_wanted.then(|| self.last_query.map(|last| last + QUERY_PAUSE)).flatten();
        let pending = self.pending.iter().map(|(at, _)| *at);
        pending.chain(inquiry).chain(query).chain(self.barriers.next_tick()).min()
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.out.extend(self.barriers.tick(now));
        if let Some(due) = self.pending.iter().position(|(at, _)| *at <= now) {
            let (_, cause) = self.pending.swap_remove(due);
            self.judge(cause);
        }
        if self.inquiry.as_ref().is_some_and(|inquiry| inquiry.since + ANSWER_TIME <= now) {
            self.conclude();
        }
        self.ask_again(now);
        let rested = self.last_query.is_none_or(|last| last + QUERY_PAUSE <= now);
        if self.query_wanted && rested && self.inquiry.is_none() {
            self.query(None, now);
        }
    }

    fn trouble(&mut self, rank: u32, trouble: Trouble, now: Instant) {
        match trouble {
            Trouble::Abort => {
                let member = self.member(rank);
                self.judge(Cause::Aborted { member });
            }
            Trouble::Transport { what } => {
                let member = self.member(rank);
                self.pending.push((now + GONE_TIME, Cause::Transport { member, what }));
            }
            Trouble::Closed { peer } if peer < self.size() => {
                let member = self.member(peer);
                let left = self.seat(peer).left;
                let at = if left { now } else { now + GONE_TIME };
                self.pending.push((at, Cause::Left { member }));
                self.tick(now);
            }
            Trouble::Mismatch { peer, theirs } if peer < self.size() => {
                let theirs = theirs.map(Fingerprint::from_words);
                if let Some(cause) = self.pair_mismatch(rank, peer, theirs) {
                    return self.judge(cause);
                }
                self.seat(peer).seen = theirs;
                self.query(None, now);
            }
            Trouble::Deadline { after, waits_for } => {
                self.query(Some((rank, after, waits_for.filter(|&r| r < self.size()))), now);
            }
            Trouble::Closed { .. } | Trouble::Mismatch { .. } => {}
        }
    }

    /// Asks everybody what they are in.
    fn query(&mut self, deadline: Option<(u32, Duration, Option<u32>)>, now: Instant) {
        if self.verdict.is_some() {
            return;
        }
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.deadline = inquiry.deadline.or(deadline);
            return;
        }
        self.query_wanted = false;
        self.last_query = Some(now);
        self.inquiry = Some(Inquiry { since: now, again: None, deadline });
        self.members.iter_mut().flatten().for_each(|seat| seat.answered = seat.left);
        self.tell_all(FromHub::Query);
    }

    fn answer(&mut self, rank: u32, record: Record, now: Instant) {
        let seat = self.seat(rank);
        seat.record = record;
        seat.answered = true;
        let Some(inquiry) = &mut self.inquiry else { return };
        if !self.members.iter().flatten().all(|seat| seat.answered) {
            return;
        }
        inquiry.again = Some(now + ASK_AGAIN);
        if self.mismatch().is_none_or(|(sequence, _)| self.behind(sequence).is_empty()) {
            self.conclude();
        }
        self.tick(now);
    }

    /// A mismatch in which a message takes part, or a count of two ranks only, is theirs: nobody else
    /// is asked.
    fn pair_mismatch(&self, rank: u32, peer: u32, theirs: Option<Fingerprint>) -> Option<Cause> {
        let ours = self.members[rank as usize].as_ref()?.record.print()?;
        let of_pair = |theirs: &Fingerprint| {
            ours.message().or(theirs.message()).is_some() || ours.differs_in_pair(theirs)
        };
        let theirs = theirs.filter(of_pair)?;
        Some(Cause::Mismatch {
            odd: self.member(peer),
            odd_call: theirs.to_string(),
            other: self.member(rank),
            other_call: ours.to_string(),
        })
    }

    /// The ranks that have not come to `sequence` yet: who is the odd one is seen when all have.
    fn behind(&self, sequence: u64) -> Vec<u32> {
        let behind =
            |seat: &Seat| seat.collective().is_none_or(|print| print.sequence() < sequence);
        let members = (0..self.size()).zip(self.members.iter().flatten());
        members.filter(|(_, seat)| !seat.left && behind(seat)).map(|(rank, _)| rank).collect()
    }

    fn ask_again(&mut self, now: Instant) {
        let Some(inquiry) = self.inquiry.as_mut().filter(|i| i.again.is_some_and(|at| at <= now))
        else {
            return;
        };
        inquiry.again = None;
        let Some((sequence, _)) = self.mismatch() else { return };
        for rank in self.behind(sequence) {
            self.seat(rank).answered = false;
            self.out.push((rank, FromHub::Query));
        }
    }

    /// Judges by what the members have answered.
    fn conclude(&mut self) {
        let Some(inquiry) = self.inquiry.take() else { return };
        if let Some((_, cause)) = self.mismatch() {
            self.judge(cause);
        } else if let Some(rank) = self.left_early() {
            let member = self.member(rank);
            self.judge(Cause::Left { member });
        } else if let Some((rank, after, waits_for)) = inquiry.deadline {
            let lines = (0..self.size()).map(|rank| self.describe(rank));
            let others = lines.chain(self.circle(rank)).collect();
            let (operation, waits_for) = match self.exchanges(rank) {
                Some(call) => (call.into(), self.exchange.parts.iter().position(Option::is_none)),
                None => {
                    let print = self.seat(rank).record.print();
                    let waits_for = waits_for.map(|rank| rank as usize);
                    (print.map_or("no operation".into(), |print| print.to_string()), waits_for)
                }
            };
            let waits_for = waits_for.map(|rank| rank as u32);
            let (member, waits_for) = (self.member(rank), waits_for.map(|rank| self.member(rank)));
            self.judge(Cause::Deadline { member, operation, after, waits_for, others });
        }
    }

    /// Two ranks with different fingerprints at one place in the order, which is returned: the rank
    /// that differs from the most, and one of the most. The higher rank is the odd one of two.
    fn mismatch(&self) -> Option<(u64, Cause)> {
        let evidence: Vec<(u32, Fingerprint)> = (0..self.size())
            .flat_map(|rank| {
                let seat = self.members[rank as usize].as_ref();
                let prints =
                    seat.map(|seat| [seat.collective(), seat.seen]).into_iter().flatten().flatten();
                prints.map(move |print| (rank, print)).collect::<Vec<_>>()
            })
            .collect();
        let with =
            |print: Fingerprint| evidence.iter().filter(move |(_, other)| *other == print).count();
        let conflict = |a: &Fingerprint, b: &Fingerprint| a.sequence() == b.sequence() && a != b;
        let odd = evidence
            .iter()
            .filter(|(_, print)| evidence.iter().any(|(_, other)| conflict(print, other)))
            .min_by_key(|(rank, print)| (with(*print), std::cmp::Reverse(*rank)))?;
        let other = evidence
            .iter()
            .filter(|(_, other)| conflict(&odd.1, other))
            .max_by_key(|(rank, print)| (with(*print), std::cmp::Reverse(*rank)))?;
        let cause = Cause::Mismatch {
            odd: self.member(odd.0),
            odd_call: odd.1.to_string(),
            other: self.member(other.0),
            other_call: other.1.to_string(),
        };
        Some((odd.1.sequence(), cause))
    }

    /// A rank that has closed the communicator before a collective that another is in: it never comes.
    fn left_early(&self) -> Option<u32> {
        let seats = || (0..self.size()).zip(self.members.iter().flatten());
        let waiting = seats().filter(|(_, seat)| !seat.left && seat.record.inside);
        let latest = waiting
            .filter_map(|(_, seat)| seat.collective())
            .map(|print| print.sequence())
            .max()?;
        let came = |seat: &Seat| match seat.record.print() {
            // After a message nothing is known of the collectives before it.
            Some(print) => print.message().is_some() || print.sequence() >= latest,
            None => false,
        };
        seats().find(|(_, seat)| seat.left && !came(seat)).map(|(rank, _)| rank)
    }

    /// The call by which a rank is in the control exchange that is due.
    fn exchanges(&self, rank: u32) -> Option<&str> {
        self.exchange.parts[rank as usize].as_ref().map(|(call, _)| &**call)
    }

    /// What a rank is doing, in a line.
    fn describe(&self, rank: u32) -> String {
        let Some(seat) = &self.members[rank as usize] else {
            return format!("rank {rank}: has not joined");
        };
        let state = match (seat.left, seat.answered, seat.record) {
            (true, ..) => "has closed the communicator".into(),
            (_, false, _) => "does not answer: its process is stopped, or its host cut off".into(),
            _ if self.exchanges(rank).is_some() => {
                format!("is alive, in {}", self.exchanges(rank).expect("just seen"))
            }
            (_, _, Record { print: None, .. }) => {
                "is alive, has not called any operation yet".into()
            }
            (_, _, record @ Record { inside, .. }) => {
                let print = record.print().expect("matched above");
                format!(
                    "is alive, {} {print}",
                    if inside { "in" } else { "not in an operation, the last was" }
                )
            }
        };
        format!("{} {state}", self.member(rank))
    }

    /// Ranks from `rank` on that wait for each other in sends and receives, if they do, in a line.
    fn circle(&self, rank: u32) -> Option<String> {
        let mut ranks = vec![rank];
        loop {
            let last = ranks[ranks.len() - 1];
            let next = self.members.get(last as usize)?.as_ref()?.waits_for()?;
            let first = ranks.iter().position(|&rank| rank == next);
            ranks.push(next);
            if let Some(first) = first {
                let others = ranks[first + 1..].iter().map(|rank| format!("rank {rank}"));
                return Some(format!(
                    "rank {next} waits for {}: none of them can go on; put sends and receives that need each other in one batch",
                    others.collect::<Vec<_>>().join(", which waits for ")
                ));
            }
        }
    }

    /// Gives the verdict, once.
    fn judge(&mut self, cause: Cause) {
        if self.verdict.is_none() {
            self.verdict = Some(cause.clone());
            self.tell_all(FromHub::Verdict(cause));
        }
    }

    fn exchange(&mut self, rank: u32, round: u64, call: String, blob: Vec<u8>) {
        if round != self.exchange.round {
            let member = self.member(rank);
            let what =
                format!("it is in control exchange {round}, the others in {}", self.exchange.round);
            return self.judge(Cause::Transport { member, what });
        }
        self.exchange.parts[rank as usize] = Some((call, blob));
        self.check_exchange();
    }

    /// Ends the exchange when all have come, or when it is clear that they will not.
    fn check_exchange(&mut self) {
        let parts = &self.exchange.parts;
        let mut come = (0..).zip(parts).filter_map(|(rank, part)| Some((rank, &part.as_ref()?.0)));
        let Some((first, call)) = come.next() else { return };
        if let Some((odd, odd_call)) = come.find(|(_, other)| *other != call) {
            let (odd, other) = (self.member(odd), self.member(first));
            let (odd_call, other_call) = (odd_call.clone(), call.clone());
            return self.judge(Cause::Mismatch { odd, odd_call, other, other_call });
        }
        let missing = (0..self.size()).filter(|&rank| parts[rank as usize].is_none());
        let left = |rank: &u32| self.members[*rank as usize].as_ref().is_some_and(|s| s.left);
        let mut missing = missing.peekable();
        if missing.peek().is_none() {
            let round = self.exchange.round;
            let parts = self.exchange.parts.iter_mut().filter_map(Option::take);
            let blobs = parts.map(|(_, blob)| blob).collect();
            self.exchange.round += 1;
            self.tell_all(FromHub::Exchanged { round, blobs });
        } else if let Some(gone) = missing.find(left) {
            let member = self.member(gone);
            self.judge(Cause::Left { member });
        }
    }

    fn seat(&mut self, rank: u32) -> &mut Seat {
        self.members[rank as usize].as_mut().expect("only members speak")
    }

    fn member(&self, rank: u32) -> Member {
        let seat = self.members[rank as usize].as_ref();
        seat.map_or(Member { rank, world_rank: rank, host: "unknown".into(), pid: 0 }, |seat| {
            Member {
                rank,
                world_rank: seat.world_rank,
                host: seat.report.host.clone(),
                pid: seat.report.pid,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{End, Message};
    use crate::{Call, DataType, Reduction};
    use tutti_topo::Rank;
    use tutti_topo::schedule::Collective;

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

    fn session(size: u32) -> Session {
        let mut session = Session::new(7, size);
        (0..size).for_each(|rank| session.join(rank, report(rank)));
        let welcome = |(_, m): &&(u32, FromHub)| matches!(m, FromHub::Welcome { session: 7, .. });
        assert_eq!(session.take_out().iter().filter(welcome).count(), size as usize);
        session
    }

    fn record(collective: Collective, sequence: u64) -> Record {
        let call = Call {
            collective,
            data_type: DataType::F32,
            reduction: Reduction::Sum,
            count: 8,
            counts: 0,
        };
        Record { print: Some(Fingerprint::new(&call, sequence, 1).words()), inside: true }
    }

    fn verdicts(session: &mut Session) -> Vec<(u32, Cause)> {
        let out = session.take_out().into_iter();
        out.filter_map(|(rank, message)| match message {
            FromHub::Verdict(cause) => Some((rank, cause)),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn who_joins_early_is_told_whom_the_session_waits_for() {
        let mut session = Session::new(7, 3);
        session.join(1, report(1));
        let told = session.take_out();
        assert!(matches!(&told[..], [(1, FromHub::Waiting { missing })] if *missing == [0, 2]));
    }

    #[test]
    fn a_death_is_told_to_all_and_only_the_first_cause_counts() {
        let mut session = session(3);
        session.gone(1);
        session.gone(2);
        let told = verdicts(&mut session);
        assert_eq!(told.len(), 3);
        assert!(
            told.iter()
                .all(|(_, cause)| matches!(cause, Cause::Died { member } if member.rank == 1))
        );
    }

    #[test]
    fn the_rank_that_differs_is_the_odd_one() {
        let now = Instant::now();
        let mut session = session(4);
        session.hear(0, ToHub::Stall(record(Collective::AllReduce, 5)), now);
        for rank in 0..4 {
            let broadcast = Collective::Broadcast { root: Rank(0) };
            let collective = if rank == 2 { broadcast } else { Collective::AllReduce };
            session.hear(rank, ToHub::Record(record(collective, 5)), now);
        }
        let told = verdicts(&mut session);
        assert_eq!(told.len(), 4);
        let Cause::Mismatch { odd, odd_call, other_call, .. } = &told[0].1 else {
            panic!("{told:?}")
        };
        assert_eq!(odd.rank, 2);
        assert!(odd_call.contains("broadcast") && other_call.contains("all_reduce"));
    }

    #[test]
    fn who_has_left_before_a_collective_is_named_and_who_has_left_after_it_is_not() {
        let now = Instant::now();
        for (came_to, named) in [(4, true), (5, false)] {
            let mut session = session(2);
            session.hear(1, ToHub::Record(record(Collective::AllReduce, came_to)), now);
            session.hear(1, ToHub::Leave, now);
            session.hear(0, ToHub::Stall(record(Collective::AllReduce, 5)), now);
            session.hear(0, ToHub::Record(record(Collective::AllReduce, 5)), now);
            let told = verdicts(&mut session);
            let left = |cause: &Cause| matches!(cause, Cause::Left { member } if member.rank == 1);
            assert_eq!(told.first().is_some_and(|(_, cause)| left(cause)), named, "{told:?}");
        }
    }

    #[test]
    fn the_verdict_waits_for_ranks_that_are_not_there_yet() {
        let now = Instant::now();
        let mut session = session(4);
        let odd = record(Collective::Broadcast { root: Rank(0) }, 5);
        let late = record(Collective::Barrier, 4);
        session.hear(3, ToHub::Stall(record(Collective::AllReduce, 5)), now);
        for (rank, record) in
            [(0, late), (1, late), (2, odd), (3, record(Collective::AllReduce, 5))]
        {
            session.hear(rank, ToHub::Record(record), now);
        }
        assert_eq!(verdicts(&mut session), []);
        session.tick(now + ASK_AGAIN);
        let asked: Vec<u32> = session.take_out().into_iter().map(|(rank, _)| rank).collect();
        assert_eq!(asked, [0, 1]);
        for rank in asked {
            session.hear(rank, ToHub::Record(record(Collective::AllReduce, 5)), now + ASK_AGAIN);
        }
        let told = verdicts(&mut session);
        assert!(matches!(&told[0].1, Cause::Mismatch { odd, .. } if odd.rank == 2), "{told:?}");
    }

    #[test]
    fn ranks_at_different_places_are_no_mismatch() {
        let now = Instant::now();
        let mut session = session(2);
        session.hear(0, ToHub::Stall(record(Collective::AllReduce, 6)), now);
        session.hear(0, ToHub::Record(record(Collective::AllReduce, 6)), now);
        session.hear(1, ToHub::Record(record(Collective::Barrier, 5)), now);
        assert_eq!(verdicts(&mut session), []);
    }

    #[test]
    fn a_stream_that_shows_another_call_is_evidence_after_the_rank_moved_on() {
        let now = Instant::now();
        let mut session = session(2);
        let theirs = record(Collective::Broadcast { root: Rank(1) }, 5).print;
        let trouble = Trouble::Mismatch { peer: 1, theirs };
        session.hear(0, ToHub::Trouble { record: record(Collective::AllReduce, 5), trouble }, now);
        session.hear(0, ToHub::Record(record(Collective::AllReduce, 5)), now);
        session.hear(1, ToHub::Record(record(Collective::Barrier, 9)), now);
        let told = verdicts(&mut session);
        assert!(matches!(&told[0].1, Cause::Mismatch { odd, .. } if odd.rank == 1), "{told:?}");
    }

    #[test]
    fn a_deadline_names_who_does_not_answer() {
        let now = Instant::now();
        let mut session = session(3);
        let trouble = Trouble::Deadline { after: Duration::from_secs(3), waits_for: Some(2) };
        session.hear(0, ToHub::Trouble { record: record(Collective::AllReduce, 5), trouble }, now);
        session.hear(0, ToHub::Record(record(Collective::AllReduce, 5)), now);
        session.hear(1, ToHub::Record(record(Collective::AllReduce, 5)), now);
        assert_eq!(verdicts(&mut session), []);
        session.tick(now + ANSWER_TIME);
        let told = verdicts(&mut session);
        let Cause::Deadline { member, waits_for, others, .. } = &told[0].1 else {
            panic!("{told:?}")
        };
        assert_eq!((member.rank, waits_for.as_ref().map(|m| m.rank)), (0, Some(2)));
        assert!(
            others[2].contains("does not answer") && others[1].contains("is alive"),
            "{others:?}"
        );
    }

    fn message(end: End) -> Record {
        let message = Message { end, tag: 0, data_type: DataType::F32, count: 8 };
        Record { print: Some(Fingerprint::of_message(&message, 5).words()), inside: true }
    }

    #[test]
    fn ranks_in_a_message_are_not_compared_with_those_in_a_collective() {
        let now = Instant::now();
        let mut session = session(3);
        session.hear(0, ToHub::Stall(message(End::To(Rank(1)))), now);
        session.hear(0, ToHub::Record(message(End::To(Rank(1)))), now);
        session.hear(1, ToHub::Record(message(End::From(Rank(2)))), now);
        session.hear(2, ToHub::Record(record(Collective::AllReduce, 5)), now);
        assert_eq!(verdicts(&mut session), []);
    }

    #[test]
    fn a_mismatch_of_a_message_names_its_two_ends_at_once() {
        let now = Instant::now();
        for ours in [message(End::From(Rank(2))), record(Collective::AllReduce, 5)] {
            let mut session = session(3);
            let theirs = message(End::To(Rank(1))).print;
            let trouble = Trouble::Mismatch { peer: 2, theirs };
            session.hear(1, ToHub::Trouble { record: ours, trouble }, now);
            let told = verdicts(&mut session);
            let Cause::Mismatch { odd, odd_call, other, other_call } = &told[0].1 else {
                panic!("{told:?}")
            };
            assert_eq!((odd.rank, other.rank), (2, 1));
            assert!(odd_call.starts_with("send of 8 fp32 to rank 1"), "{odd_call}");
            assert_eq!(*other_call, ours.print().unwrap().to_string());
        }
    }

    #[test]
    fn a_deadline_says_who_waits_for_whom_in_a_circle() {
        let now = Instant::now();
        let mut session = session(4);
        let records = [1, 2, 1].map(|to| message(End::To(Rank(to))));
        let trouble = Trouble::Deadline { after: Duration::from_secs(3), waits_for: Some(1) };
        session.hear(0, ToHub::Trouble { record: records[0], trouble }, now);
        for (record, rank) in records.into_iter().zip(0..) {
            session.hear(rank, ToHub::Record(record), now);
        }
        session.hear(3, ToHub::Record(record(Collective::Barrier, 5)), now);
        let told = verdicts(&mut session);
        let Cause::Deadline { others, .. } = &told[0].1 else { panic!("{told:?}") };
        assert_eq!(others.len(), 5);
        assert!(
            others[4].starts_with("rank 1 waits for rank 2, which waits for rank 1: "),
            "{others:?}"
        );
    }

    #[test]
    fn a_closed_stream_waits_for_the_death_that_explains_it() {
        let now = Instant::now();
        let mut session = session(3);
        let trouble = Trouble::Closed { peer: 1 };
        session.hear(0, ToHub::Trouble { record: record(Collective::AllReduce, 5), trouble }, now);
        assert_eq!(verdicts(&mut session), []);
        session.gone(2);
        let told = verdicts(&mut session);
        assert!(matches!(&told[0].1, Cause::Died { member } if member.rank == 2), "{told:?}");
    }

    #[test]
    fn leaving_is_no_death_but_a_cause_for_those_who_still_wait() {
        let now = Instant::now();
        let mut session = session(2);
        session.hear(1, ToHub::Leave, now);
        session.gone(1);
        assert_eq!(verdicts(&mut session), []);
        let trouble = Trouble::Closed { peer: 1 };
        session.hear(0, ToHub::Trouble { record: record(Collective::AllReduce, 5), trouble }, now);
        assert!(matches!(&verdicts(&mut session)[0].1, Cause::Left { member } if member.rank == 1));
    }

    fn exchange(call: &str, byte: u8) -> ToHub {
        ToHub::Exchange { round: 0, call: call.into(), blob: vec![byte] }
    }

    #[test]
    fn an_exchange_by_another_call_is_a_mismatch() {
        let now = Instant::now();
        let mut session = session(3);
        session.hear(2, exchange("group", 1), now);
        session.hear(0, exchange("split", 1), now);
        let told = verdicts(&mut session);
        assert_eq!(told.len(), 3);
        let Cause::Mismatch { odd, odd_call, other_call, .. } = &told[0].1 else {
            panic!("{told:?}")
        };
        assert_eq!((odd.rank, &**odd_call, &**other_call), (2, "group", "split"));
    }

    #[test]
    fn an_exchange_does_not_wait_for_who_has_left() {
        let now = Instant::now();
        for left_first in [false, true] {
            let mut session = session(2);
            let mut said = [(1, ToHub::Leave), (0, exchange("split", 1))];
            if !left_first {
                said.reverse();
            }
            said.into_iter().for_each(|(rank, message)| session.hear(rank, message, now));
            let told = verdicts(&mut session);
            assert!(matches!(&told[0].1, Cause::Left { member } if member.rank == 1), "{told:?}");
        }
    }

    #[test]
    fn an_exchange_gives_every_rank_all_blobs() {
        let now = Instant::now();
        let mut session = session(2);
        session.hear(1, exchange("split", 1), now);
        assert!(session.take_out().is_empty());
        session.hear(0, exchange("split", 0), now);
        let out = session.take_out();
        assert_eq!(out.len(), 2);
        assert!(out.iter().all(
            |(_, m)| matches!(m, FromHub::Exchanged { round: 0, blobs } if *blobs == [[0], [1]])
        ));
    }
}
