//! A transport on a virtual clock: many ranks in one process, links with latency and capacity,
//! the same result for the same seed.
//!
//! Time passes only when the driver says so: it polls those who can move ([`World::take_stirred`])
//! until none does, then calls [`World::advance`]. Absent: wall clock, threads, real concurrency.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tutti_transport::{Error, Peer, Transport};

/// How bytes get from one peer to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The shared resources that the bytes pass, by their index in [`Options::gb_per_s`]: an
    /// outgoing port, an incoming port, a trunk.
    pub resources: Vec<usize>,
    /// The time from the last byte sent to the last byte there, on an idle route.
    pub latency_ns: u64,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The capacity of each shared resource, in GB/s (bytes per nanosecond).
    pub gb_per_s: Vec<f64>,
    /// The longest piece that occupies a resource at a time, in bytes.
    pub piece_bytes: usize,
    /// How many bytes may be under way, or there and not yet consumed, per direction of a pair.
    pub window_bytes: usize,
    /// Each piece is late by a random part of its latency, up to this share (0 for none).
    pub jitter: f64,
    /// What the random delays are made from.
    pub seed: u64,
}

impl Options {
    /// Pieces of 64 KiB in windows of 256 KiB over resources of these capacities, without jitter.
    pub fn new(gb_per_s: Vec<f64>) -> Options {
        Options { gb_per_s, piece_bytes: 64 << 10, window_bytes: 256 << 10, jitter: 0.0, seed: 0 }
    }
}

/// The clock and the links that the ranks share.
#[derive(Clone)]
pub struct World(Arc<Mutex<State>>);

/// One rank's end.
pub struct Sim {
    world: World,
    me: Peer,
    /// Bytes that have arrived, per peer; what `peek` shows.
    arrived: Vec<VecDeque<u8>>,
    routes: Arc<Vec<Vec<Route>>>,
}

struct State {
    now_ns: u64,
    /// Counts every change, so that a driver sees whether a pass did anything.
    changes: u64,
    gb_per_s: Vec<f64>,
    /// When each resource is free again.
    free_ns: Vec<u64>,
    /// Per ordered pair, `from * size + to`.
    ways: Vec<Way>,
    /// When pieces arrive and at whom, earliest first.
    arrivals: BinaryHeap<Reverse<(u64, Peer)>>,
    /// For whom bytes arrived or a window opened, since the driver last asked.
    stirred: BTreeSet<Peer>,
    closed: Vec<bool>,
    piece_bytes: usize,
    window_bytes: usize,
    jitter: f64,
    random: u64,
    payload_bytes: u64,
}

#[derive(Default)]
struct Way {
    pieces: VecDeque<(u64, Vec<u8>)>,
    /// Bytes taken by `send` and not yet consumed.
    used: usize,
    last_ns: u64,
}

/// A world of `size` ranks; `route` gives the way from one to another.
pub fn world(
    size: u32,
    options: Options,
    route: impl Fn(Peer, Peer) -> Route,
) -> (World, Vec<Sim>) {
    let peers = || (0..size).map(Peer);
    let routes: Vec<Vec<Route>> =
        peers().map(|from| peers().map(|to| route(from, to)).collect()).collect();
    let routes = Arc::new(routes);
    let pairs = size as usize * size as usize;
    let world = World(Arc::new(Mutex::new(State {
        now_ns: 0,
        changes: 0,
        free_ns: vec![0; options.gb_per_s.len()],
        gb_per_s: options.gb_per_s,
        ways: (0..pairs).map(|_| Way::default()).collect(),
        arrivals: BinaryHeap::new(),
        stirred: BTreeSet::new(),
        closed: vec![false; size as usize],
        piece_bytes: options.piece_bytes,
        window_bytes: options.window_bytes,
        jitter: options.jitter,
        random: options.seed,
        payload_bytes: 0,
    })));
    let ends = peers().map(|me| Sim {
        world: world.clone(),
        me,
        arrived: vec![VecDeque::new(); size as usize],
        routes: Arc::clone(&routes),
    });
    let ends = ends.collect();
    (world, ends)
}

impl World {
    /// The time, in nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    /// A number that grows with every byte sent or consumed.
    pub fn changes(&self) -> u64 {
        self.lock().changes
    }

    /// All bytes sent so far, over all ranks.
    pub fn sent_bytes(&self) -> u64 {
        self.lock().payload_bytes
    }

    /// Moves the clock to the next arrival; `false` if nothing is under way.
    pub fn advance(&self) -> bool {
        let mut state = self.lock();
        let Some(&Reverse((next, _))) = state.arrivals.peek() else { return false };
        state.now_ns = state.now_ns.max(next);
        while let Some(&Reverse((at, to))) = state.arrivals.peek()
            && at <= state.now_ns
        {
            state.arrivals.pop();
            state.stirred.insert(to);
        }
        true
    }

    /// The ranks for whom bytes arrived or a window opened since the last call. Nobody else can do
    /// anything that it could not do before.
    pub fn take_stirred(&self) -> impl Iterator<Item = Peer> + use<> {
        std::mem::take(&mut self.lock().stirred).into_iter()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn way(&mut self, from: Peer, to: Peer) -> &mut Way {
        let size = self.closed.len();
        &mut self.ways[from.index() * size + to.index()]
    }

    /// Puts one piece on its way.
    fn launch(&mut self, from: Peer, to: Peer, route: &Route, bytes: &[u8]) {
        let free = route.resources.iter().map(|&r| self.free_ns[r]).max().unwrap_or(0);
        let start = self.now_ns.max(free);
        let time = |gb_per_s: f64| (bytes.len() as f64 / gb_per_s).ceil() as u64;
        let mut end = start;
        for &resource in &route.resources {
            self.free_ns[resource] = start + time(self.gb_per_s[resource]);
            end = end.max(self.free_ns[resource]);
        }
        let late = (self.uniform() * self.jitter * route.latency_ns as f64) as u64;
        let way = self.way(from, to);
        let at = (end + route.latency_ns + late).max(way.last_ns);
        way.last_ns = at;
        way.used += bytes.len();
        way.pieces.push_back((at, bytes.to_vec()));
        self.arrivals.push(Reverse((at, to)));
        self.changes += 1;
        self.payload_bytes += bytes.len() as u64;
    }

    /// A random number from 0 to 1 (SplitMix64; Steele, Lea and Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Transport for Sim {
    fn send(&mut self, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        let mut state = self.world.lock();
        if state.closed[peer.index()] {
            return Err(Error::Closed { peer });
        }
        let room = state.window_bytes - state.way(self.me, peer).used;
        let taken = bytes.len().min(room);
        let (piece, route) = (state.piece_bytes, &self.routes[self.me.index()][peer.index()]);
        for piece in bytes[..taken].chunks(piece) {
            state.launch(self.me, peer, route, piece);
        }
        Ok(taken)
    }

    fn peek(&mut self, peer: Peer) -> Result<&[u8], Error> {
        let mut state = self.world.lock();
        let (now, closed) = (state.now_ns, state.closed[peer.index()]);
        let way = state.way(peer, self.me);
        let arrived = &mut self.arrived[peer.index()];
        let there = way.pieces.iter().take_while(|(at, _)| *at <= now).count();
        for (_, bytes) in way.pieces.drain(..there) {
            arrived.extend(bytes);
        }
        if arrived.is_empty() && way.pieces.is_empty() && closed {
            return Err(Error::Closed { peer });
        }
        Ok(arrived.make_contiguous())
    }

    fn consume(&mut self, peer: Peer, len: usize) {
        self.arrived[peer.index()].drain(..len);
        let mut state = self.world.lock();
        state.changes += 1;
        state.way(peer, self.me).used -= len;
        state.stirred.insert(peer);
    }

    /// Does not sleep: time passes by [`World::advance`] alone.
    fn park(&mut self, _also: &[BorrowedFd<'_>], _limit: Duration) -> Result<(), Error> {
        Ok(())
    }

    fn kind(&self, _peer: Peer) -> &'static str {
        "sim"
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.world.lock().closed[self.me.index()] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_link(latency_ns: u64, gb_per_s: f64) -> (World, Vec<Sim>) {
        world(2, Options::new(vec![gb_per_s]), |_, _| Route { resources: vec![0], latency_ns })
    }

    #[test]
    fn bytes_take_latency_and_capacity() {
        let (world, mut ends) = one_link(500, 2.0);
        assert_eq!(ends[0].send(Peer(1), &[7; 1000]).unwrap(), 1000);
        assert_eq!(ends[1].peek(Peer(0)).unwrap(), []);
        assert!(world.advance());
        assert_eq!(world.now_ns(), 1000);
        assert_eq!(ends[1].peek(Peer(0)).unwrap(), [7; 1000]);
        assert!(!world.advance());
    }

    #[test]
    fn two_senders_share_a_resource() {
        let route = |_, _| Route { resources: vec![0], latency_ns: 0 };
        let (world, mut ends) = world(3, Options::new(vec![1.0]), route);
        ends[0].send(Peer(2), &[1; 1000]).unwrap();
        ends[1].send(Peer(2), &[1; 1000]).unwrap();
        while world.advance() {}
        assert_eq!(world.now_ns(), 2000);
    }

    #[test]
    fn a_full_window_takes_nothing_until_consumed() {
        let (world, mut ends) = one_link(1, 100.0);
        let data = vec![3; 300 << 10];
        assert_eq!(ends[0].send(Peer(1), &data).unwrap(), 256 << 10);
        assert_eq!(ends[0].send(Peer(1), &data).unwrap(), 0);
        while world.advance() {}
        let len = ends[1].peek(Peer(0)).unwrap().len();
        ends[1].consume(Peer(0), len);
        assert!(ends[0].send(Peer(1), &data).unwrap() > 0);
    }

    #[test]
    fn one_seed_gives_one_history_and_another_seed_another() {
        let history = |seed| {
            let options = Options { jitter: 0.5, seed, ..Options::new(vec![1.0]) };
            let (world, mut ends) =
                world(2, options, |_, _| Route { resources: vec![0], latency_ns: 1000 });
            ends[0].send(Peer(1), &[0; 200 << 10]).unwrap();
            let mut times = Vec::new();
            while world.advance() {
                times.push(world.now_ns());
            }
            times
        };
        assert_eq!(history(1), history(1));
        assert_ne!(history(1), history(2));
    }

    #[test]
    fn a_dropped_end_is_closed_after_its_bytes() {
        let (world, mut ends) = one_link(1, 1.0);
        ends[0].send(Peer(1), b"last").unwrap();
        drop(ends.remove(0));
        while world.advance() {}
        assert_eq!(ends[0].peek(Peer(0)).unwrap(), b"last");
        ends[0].consume(Peer(0), 4);
        assert!(matches!(ends[0].peek(Peer(0)), Err(Error::Closed { peer: Peer(0) })));
    }
}
