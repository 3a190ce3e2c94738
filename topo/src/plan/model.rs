use std::collections::{BTreeMap, BTreeSet};

use crate::Rank;
use crate::fabric::{Fabric, Figure, Host, Link, Provenance};

/// The time that moves take on a fabric: latency, then bytes over capacity, where all that
/// passes a port or an exit at the same time shares it, then folding.
///
/// On a host with more ranks than cores, ranks take turns: copying and folding take as much longer
/// as there are more ranks than cores, each round waits for the ranks of a core to be switched to in
/// turn, and all that a message costs its two ends is work of the same cores.
pub(super) struct Model<'a> {
    fabric: &'a Fabric,
    /// By host, by how much its ranks outnumber its cores; 1 if they do not.
    pub(super) crowding: Vec<f64>,
    /// What a round waits for ranks to get their turn on the most crowded host.
    pub(super) switch_s: f64,
    /// What folding one byte takes on the slowest host.
    pub(super) fold_s_per_byte: f64,
}

/// Bytes from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Send {
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) bytes: f64,
}

/// What sends that happen at the same time take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// The longest latency of any.
    pub(super) latency_s: f64,
    /// What the busiest rank takes to start its sends after its first; or what the cores of a host
    /// with more ranks than cores take to start and to receive all of its messages after the first.
    pub(super) posting_s: f64,
    /// What the busiest link takes for its bytes.
    pub(super) transfer_s: f64,
}

/// A context switch with what it evicts from the caches.
const SWITCH_S: f64 = 3e-6;

/// The most that the start of a send keeps its rank busy: system calls and a copy. A link with a
/// latency above twice that is slow for another reason, such as its length.
const MOST_POSTING_S: f64 = 10e-6;

impl<'a> Model<'a> {
    pub(super) fn new(fabric: &'a Fabric) -> Model<'a> {
        let ranks = fabric.ranks_per_host();
        let per_core = |(host, &ranks): (&Host, &u32)| f64::from(ranks) / host.cores;
        let per_core: Vec<f64> = fabric.hosts().iter().zip(&ranks).map(per_core).collect();
        let turns = per_core.iter().copied().filter(|&per_core| per_core > 1.0).map(f64::ceil);
        let crowding: Vec<f64> = per_core.iter().map(|per_core| per_core.max(1.0)).collect();
        let fold = |(host, crowding): (&Host, &f64)| crowding / bytes_per_s(host.fold_gb_per_s);
        Model {
            fabric,
            switch_s: turns.fold(0.0, f64::max) * SWITCH_S,
            fold_s_per_byte: fabric.hosts().iter().zip(&crowding).map(fold).fold(0.0, f64::max),
            crowding,
        }
    }

    /// What the sends take if all of them start at the same time.
    pub(super) fn load(&self, sends: impl Iterator<Item = Send>) -> Load {
        let mut meter = Meter::new(self.fabric);
        let mut latency_s = 0_f64;
        for send in sends {
            let send_latency_s = self.latency_s(send.from, send.to);
            latency_s = latency_s.max(send_latency_s);
            meter.add(&send, posting_s(send_latency_s));
        }
        Load {
            latency_s,
            posting_s: meter.posting_s(&self.crowding),
            transfer_s: meter.busiest_s(&self.crowding),
        }
    }

    /// The latency of a message between two ranks.
    pub(super) fn latency_s(&self, from: Rank, to: Rank) -> f64 {
        let slowest = |link: &Link| link.latency_ns.value * 1e-9;
        self.links(from, to).map(slowest).fold(0.0, f64::max)
    }

    /// What a byte takes between two ranks when nobody else sends.
    pub(super) fn s_per_byte(&self, from: Rank, to: Rank) -> f64 {
        let host = self.fabric.place(from).host;
        let inside = host == self.fabric.place(to).host;
        let slowdown = if inside { self.crowding[host] } else { 1.0 };
        let slowest = |link: &Link| slowdown / bytes_per_s(link.gb_per_s);
        self.links(from, to).map(slowest).fold(0.0, f64::max)
    }

    /// How many messages can pass side by side where the ranks of the order have the fewest rails
    /// between one and the next.
    pub(super) fn fewest_rails(&self, order: &[Rank]) -> u32 {
        let next = order.iter().cycle().skip(1);
        let links = order.iter().zip(next).flat_map(|(&from, &to)| self.links(from, to));
        links.map(|link| link.rails).min().unwrap_or(1)
    }

    /// All links between two ranks: that of their host, that of the two hosts, or the ports and,
    /// if need be, the exits.
    fn links(&self, from: Rank, to: Rank) -> impl Iterator<Item = &'a Link> {
        let fabric = self.fabric;
        let (from, to) = (fabric.place(from).host, fabric.place(to).host);
        let [source, target] = [from, to].map(|host| &fabric.hosts()[host]);
        let links = if from == to {
            [Some(&source.inside), None, None, None]
        } else if let Some(pair) = fabric.pair(from, to) {
            [Some(pair), None, None, None]
        } else {
            let exit = |host: &Host| {
                let leaves = source.supernode != target.supernode;
                leaves.then(|| &fabric.supernodes()[host.supernode].exit)
            };
            [Some(&source.port), Some(&target.port), exit(source), exit(target)]
        };
        links.into_iter().flatten()
    }

    /// The least and the most trustworthy of the figures that plans for all ranks rest on.
    pub(super) fn provenance(&self) -> (Provenance, Provenance) {
        let (hosts, supernodes) = (self.fabric.hosts(), self.fabric.supernodes());
        let ranks = self.fabric.ranks_per_host();
        let shared = hosts.iter().zip(&ranks).filter(|&(_, &ranks)| ranks > 1);
        let inside = shared.map(|(host, _)| &host.inside);
        let ports = hosts.iter().filter(|_| hosts.len() > 1).map(|host| &host.port);
        let left = hosts.iter().any(|host| host.supernode != hosts[0].supernode);
        let exits = hosts.iter().filter(|_| left).map(|host| &supernodes[host.supernode].exit);
        let pairs = self.fabric.pairs().map(|(_, link)| link);
        let links = inside.chain(ports).chain(exits).chain(pairs);
        let all: BTreeSet<Provenance> = links.map(Link::provenance).collect();
        let [worst, best] = [all.last(), all.first()];
        (*worst.unwrap_or(&Provenance::Assumed), *best.unwrap_or(&Provenance::Assumed))
    }
}

/// What the start of a send keeps its rank busy, taken as half of the latency.
pub(super) fn posting_s(latency_s: f64) -> f64 {
    (latency_s / 2.0).min(MOST_POSTING_S)
}

fn bytes_per_s(figure: Figure) -> f64 {
    figure.value * 1e9
}

/// Adds up what each link and each rank has to do in one round.
struct Meter<'a> {
    fabric: &'a Fabric,
    posting: Vec<Posting>,
    /// By host, what its ranks take to start what they send and to receive what is sent to them.
    work_s: Vec<f64>,
    /// By rank, and by host and supernode what leaves and what enters.
    inside: [Vec<Bundle>; 2],
    ports: [Vec<Bundle>; 2],
    exits: [Vec<Bundle>; 2],
    pairs: BTreeMap<(usize, usize), Bundle>,
}

#[derive(Clone, Copy, Default)]
struct Posting {
    first_s: f64,
    all_s: f64,
}

/// What passes one link in one direction.
#[derive(Clone, Copy, Default)]
struct Bundle {
    bytes: f64,
    sends: u32,
}

impl<'a> Meter<'a> {
    fn new(fabric: &'a Fabric) -> Meter<'a> {
        let both_ways = |count| [vec![Bundle::default(); count], vec![Bundle::default(); count]];
        let ranks = fabric.ranks() as usize;
        Meter {
            fabric,
            posting: vec![Posting::default(); ranks],
            work_s: vec![0.0; fabric.hosts().len()],
            inside: both_ways(ranks),
            ports: both_ways(fabric.hosts().len()),
            exits: both_ways(fabric.supernodes().len()),
            pairs: BTreeMap::new(),
        }
    }

    fn add(&mut self, send: &Send, posting_s: f64) {
        let posting = &mut self.posting[send.from.index()];
        posting.first_s = posting.first_s.max(posting_s);
        posting.all_s += posting_s;

        let ranks = [send.from, send.to];
        let hosts = ranks.map(|rank| self.fabric.place(rank).host);
        hosts.iter().for_each(|&host| self.work_s[host] += posting_s);
        let supernodes = hosts.map(|host| self.fabric.hosts()[host].supernode);
        if hosts[0] == hosts[1] {
            both(&mut self.inside, ranks.map(Rank::index), send.bytes);
        } else if self.fabric.pair(hosts[0], hosts[1]).is_some() {
            self.pairs.entry((hosts[0], hosts[1])).or_default().add(send.bytes);
        } else {
            both(&mut self.ports, hosts, send.bytes);
            if supernodes[0] != supernodes[1] {
                both(&mut self.exits, supernodes, send.bytes);
            }
        }
    }

    fn posting_s(&self, crowding: &[f64]) -> f64 {
        let ranks = self.posting.iter().map(|posting| posting.all_s - posting.first_s);
        let first_s = self.posting.iter().map(|posting| posting.first_s).fold(0.0, f64::max);
        let crowded = self.fabric.hosts().iter().zip(&self.work_s).zip(crowding);
        let crowded = crowded.filter(|(_, crowding)| **crowding > 1.0);
        let crowded = crowded.map(|((host, work_s), _)| work_s / host.cores - first_s);
        ranks.chain(crowded).fold(0.0, f64::max)
    }

    fn busiest_s(&self, crowding: &[f64]) -> f64 {
        let (hosts, supernodes) = (self.fabric.hosts(), self.fabric.supernodes());
        let host = |rank: usize| self.fabric.place(Rank(rank as u32)).host;
        let inside = self.inside.iter().flat_map(|side| side.iter().enumerate());
        let inside = inside.map(|(rank, bundle)| {
            bundle.transfer_s(&hosts[host(rank)].inside) * crowding[host(rank)]
        });
        let ports = self.ports.iter().flat_map(|side| side.iter().zip(hosts));
        let ports = ports.map(|(bundle, host)| bundle.transfer_s(&host.port));
        let exits = self.exits.iter().flat_map(|side| side.iter().zip(supernodes));
        let exits = exits.map(|(bundle, supernode)| bundle.transfer_s(&supernode.exit));
        let pairs = self.pairs.iter().filter_map(|(&(from, to), bundle)| {
            self.fabric.pair(from, to).map(|link| bundle.transfer_s(link))
        });
        inside.chain(ports).chain(exits).chain(pairs).fold(0.0, f64::max)
    }
}

fn both(sides: &mut [Vec<Bundle>; 2], ends: [usize; 2], bytes: f64) {
    for (side, end) in sides.iter_mut().zip(ends) {
        side[end].add(bytes);
    }
}

impl Bundle {
    fn add(&mut self, bytes: f64) {
        self.bytes += bytes;
        self.sends += 1;
    }

    /// A send uses one rail.
    fn transfer_s(&self, link: &Link) -> f64 {
        let rails = f64::from(link.rails.min(self.sends).max(1));
        self.bytes / (bytes_per_s(link.gb_per_s) * rails)
    }
}
