use std::cell::OnceCell;
use std::sync::{Arc, Mutex};

use super::bell::Bell;
use super::lock;
use crate::{Board, Error, Peer, Posted, Round};

/// One member's view of the group's board.
pub(super) struct MemoryBoard {
    me: usize,
    limit: usize,
    rounds: Arc<Mutex<Rounds>>,
    bells: Arc<[Bell]>,
    /// The messages of this member's last two rounds that it has looked at: even rounds first.
    seen: [Vec<OnceCell<Arc<Message>>>; 2],
}

/// What all members have posted.
pub(super) struct Rounds {
    /// How many rounds each member has started.
    started: Vec<u64>,
    /// Each member's messages of its last four rounds, by the round's number modulo 4.
    slots: Vec<[Arc<Message>; 4]>,
}

#[derive(Default)]
struct Message {
    tag: u64,
    bytes: Vec<u8>,
}

impl Rounds {
    pub(super) fn new(n: usize) -> Rounds {
        Rounds { started: vec![0; n], slots: (0..n).map(|_| Default::default()).collect() }
    }
}

impl MemoryBoard {
    pub(super) fn new(
        me: usize,
        limit: usize,
        rounds: Arc<Mutex<Rounds>>,
        bells: Arc<[Bell]>,
    ) -> MemoryBoard {
        let seen = || vec![OnceCell::new(); bells.len()];
        let seen = [seen(), seen()];
        MemoryBoard { me, limit, rounds, bells, seen }
    }
}

impl Board for MemoryBoard {
    fn limit(&self) -> usize {
        self.limit
    }

    fn post(&mut self, tag: u64, parts: &[&[u8]]) -> Result<Posted, Error> {
        let bytes = parts.concat();
        let (len, limit) = (bytes.len(), self.limit);
        assert!(len <= limit, "a message of {len} bytes on a board for {limit}");
        let mut rounds = lock(&self.rounds);
        let next = rounds.started[self.me] + 1;
        let before = next.saturating_sub(2);
        if let Some(late) = rounds.started.iter().position(|&started| started < before) {
            return Ok(Posted::NotYet(Peer(late as u32)));
        }
        let tag_of = |slots: &[Arc<Message>; 4]| slots[slot(before)].tag;
        let mine = tag_of(&rounds.slots[self.me]);
        if let Some(odd) = rounds.slots.iter().position(|slots| tag_of(slots) != mine) {
            return Ok(Posted::Differs(Peer(odd as u32)));
        }
        rounds.started[self.me] = next;
        rounds.slots[self.me][slot(next)] = Arc::new(Message { tag, bytes });
        drop(rounds);
        self.seen[slot(next) % 2].fill(OnceCell::new());
        self.bells.iter().for_each(Bell::ring);
        Ok(Posted::Yes)
    }

    fn read(&self, peer: Peer, round: Round) -> Option<(u64, &[u8])> {
        let rounds = lock(&self.rounds);
        let current = rounds.started[self.me];
        let round = match round {
            Round::Current => current,
            Round::Last => current.saturating_sub(1),
        };
        if round == 0 || rounds.started[peer.index()] < round {
            return None;
        }
        let seen = &self.seen[slot(round) % 2][peer.index()];
        let message = seen.get_or_init(|| rounds.slots[peer.index()][slot(round)].clone());
        Some((message.tag, &message.bytes[..]))
    }
}

fn slot(round: u64) -> usize {
    (round % 4) as usize
}
