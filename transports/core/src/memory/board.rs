use std::cell::OnceCell;
use std::sync::{Arc, Mutex};

use super::bell::Bell;
use super::lock;
use crate::{Board, Error, Peer};

/// One member's view of the group's board.
pub(super) struct MemoryBoard {
    me: usize,
    limit: usize,
    rounds: Arc<Mutex<Rounds>>,
    bells: Arc<[Bell]>,
    /// The messages of this member's round that it has looked at.
    seen: Vec<OnceCell<Arc<Message>>>,
}

/// What all members have posted.
pub(super) struct Rounds {
    /// How many rounds each member has started.
    started: Vec<u64>,
    /// Each member's messages of its last two rounds: even rounds first.
    slots: Vec<[Arc<Message>; 2]>,
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
        let seen = vec![OnceCell::new(); bells.len()];
        MemoryBoard { me, limit, rounds, bells, seen }
    }
}

impl Board for MemoryBoard {
    fn limit(&self) -> usize {
        self.limit
    }

    fn post(&mut self, tag: u64, bytes: &[u8]) -> Result<bool, Error> {
        let (len, limit) = (bytes.len(), self.limit);
        assert!(len <= limit, "a message of {len} bytes on a board for {limit}");
        let mut rounds = lock(&self.rounds);
        let round = rounds.started[self.me];
        // Who has not started our last round may still read our message of the one before.
        if rounds.started.iter().any(|&started| started < round) {
            return Ok(false);
        }
        rounds.started[self.me] += 1;
        rounds.slots[self.me][slot(round + 1)] = Arc::new(Message { tag, bytes: bytes.to_vec() });
        drop(rounds);
        self.seen.fill(OnceCell::new());
        self.bells.iter().for_each(Bell::ring);
        Ok(true)
    }

    fn read(&self, peer: Peer) -> Option<(u64, &[u8])> {
        let seen = &self.seen[peer.index()];
        if seen.get().is_none() {
            let rounds = lock(&self.rounds);
            let round = rounds.started[self.me];
            if round == 0 || rounds.started[peer.index()] < round {
                return None;
            }
            let _ = seen.set(rounds.slots[peer.index()][slot(round)].clone());
        }
        seen.get().map(|message| (message.tag, &message.bytes[..]))
    }
}

fn slot(round: u64) -> usize {
    (round % 2) as usize
}
