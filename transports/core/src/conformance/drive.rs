use std::time::Duration;

use crate::{Peer, Transport};

pub(super) type Member = Box<dyn Transport>;

/// How many rounds in a row may move nothing, in each of which every member parks for `MOMENT`.
const IDLE_ROUNDS: usize = 20_000;
pub(super) const MOMENT: Duration = Duration::from_millis(1);

/// How often a `send` or `peek` may come to nothing, a moment apart, before it counts as full or
/// empty.
const SETTLED_ROUNDS: usize = 20;

/// More than any link holds.
const ENDLESS: u64 = 1 << 30;

/// What a round of polling came to.
pub(super) enum Round {
    Moved,
    Idle,
    Done,
}

impl Round {
    pub(super) fn of(moved: bool, done: bool) -> Round {
        match (done, moved) {
            (true, _) => Round::Done,
            (false, true) => Round::Moved,
            (false, false) => Round::Idle,
        }
    }
}

/// Repeats `round` until it is done; all members park for a moment whenever nothing moves.
pub(super) fn drive(members: &mut [Member], mut round: impl FnMut(&mut [Member]) -> Round) {
    let mut idle = 0;
    loop {
        match round(members) {
            Round::Done => return,
            Round::Moved => idle = 0,
            Round::Idle => idle += 1,
        }
        assert!(idle < IDLE_ROUNDS, "nothing moved in {idle} rounds");
        if idle > 0 {
            rest(members);
        }
    }
}

pub(super) fn rest(members: &mut [Member]) {
    for member in members {
        member.park(&[], MOMENT).expect("park");
    }
}

/// Makes the connections between all members: a byte each way.
pub(super) fn greet(members: &mut [Member]) {
    let n = members.len();
    let pairs = (0..n * n).map(|i| (i / n, i % n)).filter(|(from, to)| from != to);
    let mut flows: Vec<_> = pairs.map(|(from, to)| Flow::new(from, to, 1)).collect();
    drive_flows(members, &mut flows);
}

/// Moves all flows at once to their ends.
pub(super) fn drive_flows(members: &mut [Member], flows: &mut [Flow]) {
    drive(members, |members| {
        let mut moved = false;
        for flow in flows.iter_mut() {
            moved |= flow.send(&mut members[flow.from]);
            moved |= flow.take_all(&mut members[flow.to]);
        }
        Round::of(moved, flows.iter().all(Flow::is_done))
    });
}

/// A stream of patterned bytes from one member to another.
pub(super) struct Flow {
    pub from: usize,
    pub to: usize,
    pub len: u64,
    pub sent: u64,
    pub got: u64,
    /// The bytes, over and over.
    block: Vec<u8>,
}

impl Flow {
    pub(super) fn new(from: usize, to: usize, len: u64) -> Flow {
        // Prime, so that no power of two lines up with it.
        let block = pattern((from * 31 + to) as u64, len.min(4_000_037) as usize);
        Flow { from, to, len, sent: 0, got: 0, block }
    }

    /// A stream longer than any link holds.
    pub(super) fn endless(from: usize, to: usize) -> Flow {
        Flow { len: ENDLESS, block: pattern(from as u64, 1_000_003), ..Flow::new(from, to, 0) }
    }

    pub(super) fn is_done(&self) -> bool {
        self.got == self.len
    }

    /// Offers what is next, as much as the pattern has in one piece; whether any was taken.
    pub(super) fn send(&mut self, from: &mut Member) -> bool {
        let offer = piece(&self.block, self.sent, self.len);
        let taken = from.send(Peer(self.to as u32), offer).expect("send");
        assert!(taken <= offer.len(), "{taken} of {} bytes taken", offer.len());
        self.sent += taken as u64;
        taken > 0
    }

    /// As `send`, with up to `head` bytes apart from those behind them.
    pub(super) fn send_joined(&mut self, from: &mut Member, head: usize) -> bool {
        let offer = piece(&self.block, self.sent, self.len);
        let (head, rest) = offer.split_at(head.min(offer.len()));
        let taken = from.send_joined(Peer(self.to as u32), head, rest).expect("send");
        assert!(taken <= offer.len(), "{taken} of {} bytes taken", offer.len());
        self.sent += taken as u64;
        taken > 0
    }

    /// Checks and consumes all that has arrived; whether any had.
    pub(super) fn take_all(&mut self, to: &mut Member) -> bool {
        let from = Peer(self.from as u32);
        let arrived = to.peek(from).expect("peek");
        let len = arrived.len();
        self.check(arrived);
        if len > 0 {
            to.consume(from, len);
        }
        len > 0
    }

    /// Checks the next bytes that have arrived, and counts them.
    pub(super) fn check(&mut self, arrived: &[u8]) {
        let mut rest = arrived;
        while !rest.is_empty() {
            let expected = piece(&self.block, self.got, self.sent);
            let len = expected.len().min(rest.len());
            assert!(len > 0, "{} bytes more than were sent", rest.len());
            let (at, to) = (self.got, self.to);
            assert!(rest[..len] == expected[..len], "other bytes at {at} on the way to {to}");
            self.got += len as u64;
            rest = &rest[len..];
        }
    }

    /// Sends until the link is full; the receiver looks and consumes nothing.
    pub(super) fn fill(&mut self, members: &mut [Member]) {
        let mut refused = 0;
        while refused < SETTLED_ROUNDS {
            refused = if self.send(&mut members[self.from]) { 0 } else { refused + 1 };
            members[self.to].peek(Peer(self.from as u32)).expect("peek");
            assert!(self.sent < self.len, "the link took {ENDLESS} bytes that nobody consumed");
            if refused > 0 {
                rest(members);
            }
        }
    }
}

/// The pattern from position `at` on, up to the end of the block or of the stream.
fn piece(block: &[u8], at: u64, end: u64) -> &[u8] {
    if at == end {
        return &[];
    }
    let start = (at % block.len() as u64) as usize;
    let len = (end - at).min((block.len() - start) as u64) as usize;
    &block[start..start + len]
}

/// Bytes that repeat nowhere near: the SplitMix64 sequence.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let word = |i: u64| {
        let z =
            (seed + 1).wrapping_mul(1 << 40).wrapping_add(i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let words = (0..len.div_ceil(8) as u64).flat_map(|i| word(i).to_le_bytes());
    words.take(len).collect()
}
