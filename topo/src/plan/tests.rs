//! What the planner promises, on small fabrics.

use proptest::prelude::*;

use super::*;
use crate::schedule::Step;

const HEAD: &str = "schema = \"fabric/1\"\n[units]\nbandwidth = \"GB/s\"\nlatency = \"ns\"\n";

/// One supernode of hosts with equally many ranks and cores to spare.
fn hosts_of(hosts: usize, ranks: usize) -> Fabric {
    hosts_with_cores(hosts, ranks, 512.0)
}

fn hosts_with_cores(hosts: usize, ranks: usize, cores: f64) -> Fabric {
    let places: Vec<usize> = (0..hosts * ranks).map(|rank| rank / ranks).collect();
    Fabric::sample(&places, &vec![0; hosts], cores)
}

fn all_reduce(bytes: u64) -> Request {
    Request { collective: Collective::AllReduce, bytes, shared_board: None }
}

fn choice(request: Request, fabric: &Fabric) -> Algorithm {
    plan(&request, fabric, &Overrides::default()).unwrap().algorithm
}

fn forced(list: &str, request: Request, fabric: &Fabric) -> Result<Plan, PlanError> {
    plan(&request, fabric, &Overrides::parse(list).unwrap())
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[test]
fn small_data_takes_the_fewest_rounds() {
    assert_eq!(choice(all_reduce(64), &hosts_of(1, 16)), Algorithm::RecursiveDoubling);
    assert_eq!(choice(all_reduce(64), &hosts_of(1, 2)), Algorithm::Flat);
    let board = Request { shared_board: Some(64 * KIB), ..all_reduce(64) };
    assert_eq!(choice(board, &hosts_of(1, 8)), Algorithm::Fused);
    let root = Rank(3);
    let broadcast = Request { collective: Collective::Broadcast { root }, ..all_reduce(64) };
    assert_eq!(choice(broadcast, &hosts_of(1, 16)), Algorithm::Binomial);
}

#[test]
fn large_data_takes_the_fewest_bytes() {
    for ranks in [4, 7, 16] {
        let best = choice(all_reduce(256 * MIB), &hosts_of(1, ranks));
        assert!(matches!(best, Algorithm::Ring | Algorithm::HalvingDoubling), "{best:?}");
    }
    let root = Rank(3);
    let broadcast = Request { collective: Collective::Broadcast { root }, ..all_reduce(256 * MIB) };
    assert_eq!(choice(broadcast, &hosts_of(1, 16)), Algorithm::Chain);
    let plan = plan(&broadcast, &hosts_of(1, 16), &Overrides::default()).unwrap();
    assert!(plan.shape.depth > 8, "depth {}", plan.shape.depth);
}

#[test]
fn hierarchical_wins_across_slow_hosts() {
    for (hosts, ranks) in [(2, 8), (4, 8), (3, 5)] {
        let best = choice(all_reduce(64 * MIB), &hosts_of(hosts, ranks));
        assert_eq!(best, Algorithm::Hierarchical, "{hosts} hosts of {ranks}");
    }
}

#[test]
fn other_collectives_go_by_groups_across_slow_hosts() {
    let root = Rank(5);
    for (collective, bytes) in [
        (Collective::Broadcast { root }, 64 * MIB),
        (Collective::AllGather, 64 * MIB),
        (Collective::ReduceScatter, 64 * MIB),
        // Beyond these, others cross with as few bytes and do less inside the hosts.
        (Collective::Reduce { root }, MIB),
        (Collective::Scatter { root }, MIB),
        (Collective::AllToAll, 64 * KIB),
    ] {
        let request = Request { collective, ..all_reduce(bytes) };
        assert_eq!(choice(request, &hosts_of(4, 8)), Algorithm::Hierarchical, "{collective:?}");
    }
}

#[test]
fn each_collective_crosses_slow_hosts_once() {
    let root = Rank(5);
    for collective in [
        Collective::Broadcast { root },
        Collective::Reduce { root },
        Collective::AllGather,
        Collective::ReduceScatter,
    ] {
        let request = Request { collective, ..all_reduce(64 * MIB) };
        let plan = plan(&request, &hosts_of(4, 8), &Overrides::default()).unwrap();
        let crosses = |rank: Rank, to: Rank| rank.0 / 8 != to.0 / 8;
        let mut across = 0.0;
        for rank in (0..32).map(Rank) {
            let schedule = plan.schedule(collective, rank).unwrap();
            for step in &schedule.steps {
                if let Step::Send { to, part } = *step
                    && crosses(rank, to)
                {
                    across += f64::from(part.len) / f64::from(schedule.chunks);
                }
            }
        }
        assert!(across <= 3.0 + 1e-9, "{}: {across} times the data", plan.why);
    }
}

#[test]
fn groups_make_no_difference_within_one_host() {
    for kind in Collective::KINDS {
        for bytes in [64, 64 * KIB, 64 * MIB] {
            let request = Request { collective: kind, ..all_reduce(bytes) };
            assert_ne!(choice(request, &hosts_of(1, 8)), Algorithm::Hierarchical, "{kind:?}");
        }
    }
}

#[test]
fn hierarchical_groups_by_host_or_by_supernode() {
    let groups = |fabric: &Fabric| {
        forced("all_reduce:hierarchical", all_reduce(MIB), fabric).unwrap().shape.groups.len()
    };
    assert_eq!(groups(&Fabric::sample(&[0, 1, 2, 0, 1, 2], &[0, 0, 1], 8.0)), 3);
    assert_eq!(groups(&Fabric::sample(&[0, 1, 2, 3], &[0, 0, 1, 1], 8.0)), 2);
    assert_eq!(groups(&hosts_of(1, 6)), 1);
}

#[test]
fn more_ranks_than_cores_make_rounds_dear() {
    let bytes = 4 * KIB;
    let (roomy, crowded) = (hosts_with_cores(1, 8, 8.0), hosts_with_cores(1, 8, 2.0));
    let seconds = |fabric| forced("all_reduce:ring", all_reduce(bytes), fabric).unwrap().predicted;
    let rounds = 14.0;
    assert!(seconds(&crowded) - seconds(&roomy) >= rounds * 4.0 * 3e-6);
    assert_eq!(choice(all_reduce(bytes), &crowded), Algorithm::Flat);
    assert_ne!(choice(all_reduce(bytes), &roomy), Algorithm::Flat);
}

#[test]
fn ranks_of_a_host_share_its_port() {
    let seconds = |ranks| {
        let request = all_reduce(64 * MIB);
        let plan = forced("all_reduce:recursive_doubling", request, &hosts_of(2, ranks)).unwrap();
        plan.predicted
    };
    // The exchange between the hosts is of all ranks at once; all others are faster.
    assert!(seconds(8) > 7.0 * seconds(1));
}

#[test]
fn a_ring_has_a_channel_for_each_rail_of_its_narrowest_place() {
    let rails = |inside: u32, hosts: u32| {
        let link = |between: &str, rails: u32| {
            format!("[[link]]\nbetween = \"{between}\"\nbw = 10\nlat = 900\nrails = {rails}\n")
        };
        let host = |name| format!("[[host]]\nname = \"{name}\"\ncores = 8\nranks = 2\n");
        let (hosts, links) = (link("hosts", hosts), link("inside-host", inside));
        let fabric = Fabric::from_toml(&[HEAD, &host("a"), &host("b"), &hosts, &links].concat());
        let channels = |bytes| {
            let plan = forced("all_reduce:ring", all_reduce(bytes), fabric.as_ref().unwrap());
            plan.unwrap().shape.channels
        };
        assert_eq!(channels(KIB), 1, "pieces are not cut too small");
        channels(64 * MIB)
    };
    assert_eq!(rails(4, 2), 2);
    assert_eq!(rails(4, 4), 4);
    assert_eq!(rails(1, 4), 1);
    assert_eq!(rails(100, 64), 8);
}

#[test]
fn a_rank_alone_has_nothing_to_do() {
    let fabric = hosts_with_cores(1, 1, 0.5);
    for collective in
        [Collective::AllReduce, Collective::Barrier, Collective::Broadcast { root: Rank(0) }]
    {
        let request = Request { collective, bytes: MIB, shared_board: Some(MIB) };
        let plan = plan(&request, &fabric, &Overrides::default()).unwrap();
        assert_eq!(plan.predicted, 0.0);
        assert!(plan.why.contains("alone: nothing to move"), "{}", plan.why);
        assert!(plan.schedule(collective, Rank(0)).unwrap().steps.is_empty());
    }
}

#[test]
fn a_wanted_algorithm_is_taken_and_the_reason_says_so() {
    let fabric = hosts_of(1, 16);
    for &algorithm in Algorithm::all_for(Collective::AllReduce) {
        let request = Request { shared_board: Some(MIB), ..all_reduce(64 * KIB) };
        let plan = forced(&format!("all_reduce:{}", algorithm.name()), request, &fabric).unwrap();
        assert_eq!(plan.algorithm, algorithm);
        assert!(plan.why.starts_with(&format!("{} (forced)", algorithm.name())), "{}", plan.why);
    }
    let large = hosts_of(2, 300);
    assert_eq!(
        forced("all_reduce:flat", all_reduce(1), &large).unwrap().algorithm,
        Algorithm::Flat
    );
}

#[test]
fn a_wanted_algorithm_that_cannot_do_it_is_refused_with_those_that_can() {
    let fused = |board: Option<u64>, fabric: &Fabric| {
        let request = Request { shared_board: board, ..all_reduce(MIB) };
        forced("all_reduce:fused", request, fabric).unwrap_err().to_string()
    };
    assert_eq!(
        fused(Some(60), &hosts_of(1, 4)),
        "all_reduce cannot use fused: the board's limit of 60 B is too low for 4 ranks (possible: \
         flat, ring, recursive_doubling, halving_doubling, double_binary_tree)",
    );
    assert!(fused(None, &hosts_of(1, 4)).contains("the ranks share no memory"));
    assert!(fused(Some(MIB), &hosts_of(2, 4)).contains("the ranks are on 2 hosts"));
}

#[test]
fn what_is_no_group_is_refused() {
    let broadcast = |root| Request { collective: Collective::Broadcast { root }, ..all_reduce(1) };
    let none = Fabric::discovered(&[]);
    let overrides = Overrides::default();
    assert_eq!(plan(&all_reduce(1), &none, &overrides), Err(PlanError::NoRanks));
    let error = plan(&broadcast(Rank(4)), &hosts_of(2, 2), &overrides).unwrap_err();
    assert_eq!(error.to_string(), "the root 4 is outside a group of 4");
}

#[test]
fn the_reason_names_the_runner_up_and_the_trust_in_the_figures() {
    let plan = plan(&all_reduce(256 * KIB), &hosts_of(1, 16), &Overrides::default()).unwrap();
    let runner_up = &plan.considered[1];
    let time = |seconds: f64| words::time(seconds);
    assert_eq!(
        plan.why,
        format!(
            "halving_doubling: 16 ranks on 1 host, 256.0 KiB: {} predicted; \
             next best {} {}; link figures are assumed",
            time(plan.predicted),
            runner_up.algorithm.name(),
            time(*runner_up.predicted.as_ref().unwrap()),
        ),
    );
    let lines: Vec<String> = plan.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 1 + Algorithm::all_for(Collective::AllReduce).len());
    assert!(lines.iter().any(|line| line.ends_with("out: the ranks share no memory")));
}

#[test]
fn a_measured_link_is_not_called_assumed() {
    let fabric = |provenance: &str| {
        let host = "[[host]]\nname = \"a\"\ncores = 8\nranks = 4\n";
        let link = "[[link]]\nbetween = \"inside-host\"\nbw = 9\nlat = 300\n";
        let provenance = format!("provenance = \"{provenance}\"\n");
        Fabric::from_toml(&[HEAD, host, link, &provenance].concat()).unwrap()
    };
    for (provenance, words) in [
        ("assumed", "link figures are assumed"),
        ("spec", "link figures are from data sheets"),
        ("measured", "link figures are measured"),
    ] {
        let plan = plan(&all_reduce(64), &fabric(provenance), &Overrides::default()).unwrap();
        assert!(plan.why.ends_with(words), "{}", plan.why);
    }
}

#[test]
fn the_digest_tells_plans_apart_that_do_not_work_together() {
    let fabric = hosts_of(1, 6);
    let base = forced("all_reduce:ring", all_reduce(MIB), &fabric).unwrap();
    let mut plans = vec![base.clone()];
    let mut differ = |change: &dyn Fn(&mut Plan)| {
        let mut plan = base.clone();
        change(&mut plan);
        plans.push(plan);
    };
    differ(&|plan| plan.algorithm = Algorithm::HalvingDoubling);
    differ(&|plan| plan.shape.depth = 2);
    differ(&|plan| plan.shape.channels = 2);
    differ(&|plan| plan.shape.order.swap(1, 2));
    differ(&|plan| plan.shape.groups[0].swap(1, 2));
    differ(&|plan| plan.shape.groups = vec![vec![Rank(0)], (1..6).map(Rank).collect()]);
    let mut digests: Vec<u32> = plans.iter().map(Plan::digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), plans.len());
    assert_eq!(Plan { why: String::new(), predicted: 9.0, ..base.clone() }.digest(), base.digest());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_group_and_size_has_a_plan_with_steps_for_every_rank(
        hosts in prop::collection::vec(0_usize..6, 1..=64),
        supernodes in prop::collection::vec(0_usize..3, 6),
        cores in 0.1..100.0,
        bytes in prop_oneof![Just(0), 0_u64..4096, 0..=1_u64 << 30, Just(u64::MAX)],
        shared_board in prop::option::of(0..=MIB),
        kind in prop::sample::select(&Collective::KINDS[..]),
        root in any::<prop::sample::Index>(),
    ) {
        let fabric = Fabric::sample(&hosts, &supernodes, cores);
        let collective = kind.with_root(Rank(root.index(hosts.len()) as u32));
        let request = Request { collective, bytes, shared_board };
        for overrides in all_choices(collective) {
            let Ok(made) = plan(&request, &fabric, &overrides) else {
                prop_assert_eq!(overrides.algorithm(collective).map(Algorithm::is_fused), Some(true));
                continue;
            };
            let again = plan(&request, &fabric, &overrides);
            prop_assert_eq!(again.as_ref(), Ok(&made));
            prop_assert!(made.predicted.is_finite() && made.predicted >= 0.0, "{}", made);
            made.shape.check();
            let schedules = (0..fabric.ranks()).map(|rank| made.schedule(collective, Rank(rank)));
            let missing = schedules.filter(Option::is_none).count();
            prop_assert!(missing == 0 || made.algorithm.is_fused(), "{}", made);
        }
    }

    #[test]
    fn no_list_of_overrides_panics(text in "\\PC*") {
        let _ = Overrides::parse(&text);
    }
}

/// No override, and each one that there is for the collective.
fn all_choices(collective: Collective) -> impl Iterator<Item = Overrides> {
    let name = collective.name();
    let wanted = Algorithm::all_for(collective).iter();
    let wanted = wanted.map(move |algorithm| format!("{name}:{}", algorithm.name()));
    let parsed = wanted.map(|list| Overrides::parse(&list).unwrap());
    std::iter::once(Overrides::default()).chain(parsed)
}
