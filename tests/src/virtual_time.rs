//! The real executor on a virtual clock: hundreds of ranks in one thread.

use tutti::{Communicator, Config, Element, Error, Rank, Work};
use tutti_sim::{Options, Route, World, world};
use tutti_topo::fabric::Fabric;
use tutti_transport::Peer;

/// Communicators of all ranks of `fabric` on one virtual clock.
pub struct Cluster {
    /// The clock.
    pub world: World,
    /// One per rank.
    pub comms: Vec<Communicator>,
}

/// How fast the simulated links are: every host has one port each way, shared by its ranks;
/// inside a host every rank has its own.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Between hosts: GB/s per port and nanoseconds.
    pub across: (f64, u64),
    /// Inside a host: GB/s per rank and nanoseconds.
    pub inside: (f64, u64),
}

impl Cluster {
    /// A cluster whose rank `r` is on host `host_of[r]`.
    pub fn new(
        fabric: &Fabric,
        host_of: &[u32],
        links: Links,
        seed: u64,
        jitter: f64,
        config: &Config,
    ) -> Cluster {
        let size = host_of.len() as u32;
        let hosts = host_of.iter().max().map_or(0, |host| *host as usize + 1);
        // Resources: out of host, into host, out of rank, into rank.
        let across = vec![links.across.0; 2 * hosts];
        let inside = vec![links.inside.0; 2 * size as usize];
        let options = Options { seed, jitter, ..Options::new([across, inside].concat()) };
        let route = |from: Peer, to: Peer| {
            let (a, b) = (host_of[from.index()] as usize, host_of[to.index()] as usize);
            if a == b {
                let rank = |r: usize| 2 * hosts + r;
                let resources = vec![rank(from.index()), rank(size as usize + to.index())];
                Route { resources, latency_ns: links.inside.1 }
            } else {
                Route { resources: vec![a, hosts + b], latency_ns: links.across.1 }
            }
        };
        let (world, ends) = world(size, options, route);
        let comms = ends.into_iter().zip(0..).map(|(end, rank)| {
            Communicator::over(Box::new(end), Rank(rank), size, fabric.clone(), config.clone())
        });
        Cluster { comms: comms.collect(), world }
    }

    /// Starts an operation on every rank and runs the clock until all are done: their results, and
    /// the nanoseconds it took.
    ///
    /// # Panics
    ///
    /// If nothing moves and nothing is under way while ranks still wait: a deadlock.
    pub fn run<T: Element>(
        &self,
        start: impl Fn(&Communicator) -> Result<Work<T>, Error>,
    ) -> (Vec<Result<Vec<T>, Error>>, u64) {
        let began = self.world.now_ns();
        let mut works: Vec<_> =
            self.comms.iter().map(|comm| start(comm).expect("it starts")).collect();
        let all: Vec<Peer> = (0..works.len() as u32).map(Peer).collect();
        self.poll(&mut works, &all);
        loop {
            let stirred: Vec<Peer> = self.world.take_stirred().collect();
            if self.poll(&mut works, &stirred) || self.world.advance() {
                continue;
            }
            // Nothing is under way: all are done, or only a step inside a rank is left.
            let moved = self.poll(&mut works, &all);
            let done = works.iter_mut().map(Work::test).filter(|done| *done).count();
            if done == works.len() {
                break;
            }
            assert!(moved, "deadlock: {done} of {} ranks are done", works.len());
        }
        let results = works.into_iter().map(Work::wait).collect();
        (results, self.world.now_ns() - began)
    }
    /// Polls each of these ranks until it stands still; whether any sent or consumed something.
    fn poll<T: Element>(&self, works: &mut [Work<T>], ranks: &[Peer]) -> bool {
        let before = self.world.changes();
        for rank in ranks {
            let mut seen = None;
            while seen != Some(self.world.changes()) {
                seen = Some(self.world.changes());
                works[rank.index()].test();
            }
        }
        self.world.changes() != before
    }
}
