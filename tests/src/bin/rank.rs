//! One rank of a many-process test: does what its first argument says and prints one line.
//!
//! `rank reduce-forever MIB`: all_reduces of that size until one fails.
//! `rank receive-forever`: rank 2 sends a message to each other rank, then all wait for another.
//! `rank mismatch KIND`: one all_reduce, except that rank 2 does what KIND says.
//! `rank grid LOST`: of six ranks, two rows of three, all reduce in their row and column until those
//! with rank LOST in them fail; the others go on.
//! `rank descriptors`: how many file descriptors are open with one group of all, and with sixteen.
//! `rank outlive`: all meet in a barrier; rank 0 ends, the others exchange messages after a line on
//! their input.
//! `rank once`: one checked all_reduce of 1,000 elements.
//! `rank tell`: who it is, and what comes of an all_gather and an all_reduce.
//! `rank sockets`: as `once`, but says how many files and sockets are open before and after, and
//! to how many peers the plan sends or listens.
//! `rank measure MIB ITERATIONS`: the algorithm of an all_reduce of that size and the bytes that this
//! rank sends to each other in it; after a line on its input, the seconds that the fastest of so many took.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Instant;

use anyhow::Context;
use tutti::{Collective, Communicator, Config, DataType, Point, Rank, Reduction, Request};
use tutti_tests::reference;
use tutti_topo::schedule::Step;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let comm = Communicator::from_env(Config::from_env()?)?;
    let outcome = match args.first().map(String::as_str) {
        Some("reduce-forever") => forever(&comm, args[1].parse()?),
        Some("receive-forever") => receive(&comm),
        Some("mismatch") => mismatch(&comm, &args[1]),
        Some("grid") => return grid(&comm, args[1].parse()?),
        Some("descriptors") => return descriptors(&comm),
        Some("outlive") => outlive(&comm),
        Some("once") => once(&comm),
        Some("tell") => tell(&comm),
        Some("sockets") => sockets(&comm),
        Some("measure") => measure(&comm, args[1].parse()?, args[2].parse()?),
        _ => anyhow::bail!(
            "what is to be done? reduce-forever MIB, receive-forever, mismatch KIND, grid LOST, \
             descriptors, sockets, outlive, once, tell, measure MIB ITERATIONS"
        ),
    };
    match outcome {
        Ok(()) => println!("ok"),
        Err(error) => {
            println!("failed: {error:#}");
            std::io::stdout().flush()?;
            std::process::exit(3);
        }
    }
    Ok(())
}

fn forever(comm: &Communicator, mib: usize) -> anyhow::Result<()> {
    let mut data = vec![1.0_f32; mib << 18];
    comm.barrier()?;
    println!("ready {}", std::process::id());
    std::io::stdout().flush()?;
    loop {
        comm.all_reduce(&mut data, Reduction::Max)?;
    }
}

fn outlive(comm: &Communicator) -> anyhow::Result<()> {
    comm.barrier()?;
    let (me, others) = (comm.rank().0, comm.size() - 1);
    if me == 0 {
        return Ok(());
    }
    std::io::stdin().read_line(&mut String::new())?;
    let neighbour = |distance: u32| Rank(1 + (me - 1 + distance) % others);
    let (mine, mut theirs) = (vec![me as i32; 100_000], vec![0; 100_000]);
    comm.batch(&mut [
        Point::send(&mine, neighbour(1)),
        Point::recv(&mut theirs, neighbour(others - 1)),
    ])?;
    anyhow::ensure!(theirs[0] == neighbour(others - 1).0 as i32, "got {}", theirs[0]);
    Ok(())
}

fn receive(comm: &Communicator) -> anyhow::Result<()> {
    let sender = Rank(2);
    let mut data = vec![0.0_f32; 1000];
    let from = if comm.rank() == sender {
        for other in (0..comm.size()).map(Rank).filter(|&other| other != sender) {
            comm.send(&data, other)?;
        }
        Rank(0)
    } else {
        comm.recv(&mut data, sender)?;
        sender
    };
    println!("ready {}", std::process::id());
    std::io::stdout().flush()?;
    Ok(comm.recv(&mut data, from)?)
}

fn mismatch(comm: &Communicator, kind: &str) -> anyhow::Result<()> {
    let odd = comm.rank() == Rank(2);
    let mut data = vec![0_u8; 4000];
    comm.barrier()?;
    match kind {
        "broadcast" if odd => {
            let broadcast = Collective::Broadcast { root: Rank(0) };
            comm.run(&Request::new(broadcast, DataType::F32), None, &mut data)?
        }
        "count" if odd => comm.run(&sum(DataType::F32), None, &mut data[..3996])?,
        "type" if odd => comm.run(&sum(DataType::I32), None, &mut data)?,
        "reduction" if odd => comm.run(&sum(DataType::F32).by(Reduction::Max), None, &mut data)?,
        _ => comm.run(&sum(DataType::F32), None, &mut data)?,
    }
    Ok(())
}

fn sum(data_type: DataType) -> Request {
    Request::new(Collective::AllReduce, data_type)
}

fn grid(comm: &Communicator, lost: u32) -> anyhow::Result<()> {
    let (rank, row, column) = (comm.rank().0, comm.rank().0 / 3, comm.rank().0 % 3);
    let across = comm.split(Some(row), column)?.context("a row for all")?;
    let down = comm.split(Some(column), row)?.context("a column for all")?;
    comm.barrier()?;
    println!("ready");
    std::io::stdout().flush()?;
    let until_it_fails = |group: &Communicator| -> String {
        let mut data = vec![1.0_f32; 100_000];
        loop {
            if let Err(error) = group.all_reduce(&mut data, Reduction::Max) {
                return format!("failed: {error}");
            }
        }
    };
    let ten_times = |group: &Communicator| -> String {
        let tries = (0..10).try_for_each(|_| once(group));
        tries.map_or_else(|error| format!("failed: {error:#}"), |()| "ok".into())
    };
    let (row_is_lost, column_is_lost) = (row == lost / 3, column == lost % 3);
    let (of_row, of_column) = std::thread::scope(|scope| {
        // A group that contains the lost rank is used first: the others come when that has failed.
        let of_row = row_is_lost.then(|| scope.spawn(|| until_it_fails(&across)));
        let of_column = column_is_lost.then(|| scope.spawn(|| until_it_fails(&down)));
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, String>| thread.join().expect("no panic");
        (of_row.map(join), of_column.map(join))
    });
    let of_row = of_row.unwrap_or_else(|| ten_times(&across));
    let of_column = of_column.unwrap_or_else(|| ten_times(&down));
    assert_ne!(rank, lost, "to be killed");
    println!("row: {of_row}, column: {of_column}");
    Ok(())
}

fn descriptors(comm: &Communicator) -> anyhow::Result<()> {
    let mut groups = Vec::new();
    for many in [1, 16] {
        while groups.len() < many {
            let group = comm.split(Some(0), groups.len() as u32)?.context("a colour for all")?;
            once(&group)?;
            groups.push(group);
        }
        println!("{}", std::fs::read_dir("/proc/self/fd")?.count());
    }
    comm.barrier()?;
    Ok(())
}

fn once(comm: &Communicator) -> anyhow::Result<()> {
    let (rank, ranks, count) = (comm.rank().0, comm.size(), 1000);
    let mut data = reference::input(rank, count, ranks, DataType::F32, Reduction::Sum);
    comm.run(&sum(DataType::F32), None, &mut data)?;
    let want = reference::output(count, ranks, DataType::F32, Reduction::Sum);
    reference::compare(&data, &want, DataType::F32).map_err(anyhow::Error::msg)
}

fn tell(comm: &Communicator) -> anyhow::Result<()> {
    let (me, size) = (comm.rank().0, comm.size());
    let mut ranks = vec![0; size as usize];
    ranks[me as usize] = me as i32;
    comm.all_gather(&mut ranks)?;
    let mut squares = [(me * me) as i32];
    comm.all_reduce(&mut squares, Reduction::Sum)?;
    println!(
        "rank {me} of {size}: the ranks are {ranks:?}, the sum of their squares is {}",
        squares[0]
    );
    Ok(())
}

fn sockets(comm: &Communicator) -> anyhow::Result<()> {
    // What the listing opens for itself is there both times.
    let open = || anyhow::Ok(std::fs::read_dir("/proc/self/fd")?.count());
    let before = open()?;
    once(comm)?;
    let after = open()?;
    let plan = comm.plan(Collective::AllReduce, 4 * 1000)?;
    let schedule = plan.schedule(Collective::AllReduce, comm.rank());
    let steps = schedule.into_iter().flat_map(|schedule| schedule.steps);
    let peer = |step| match step {
        Step::Send { to: peer, .. }
        | Step::Recv { from: peer, .. }
        | Step::RecvReduce { from: peer, .. } => Some(peer),
        Step::Reduce { .. } | Step::Copy { .. } => None,
    };
    let peers = steps.filter_map(peer).collect::<BTreeSet<Rank>>().len();
    println!("{before} {after} {peers}");
    Ok(())
}

fn measure(comm: &Communicator, mib: usize, iterations: u32) -> anyhow::Result<()> {
    let mut data = vec![1.0_f32; mib << 18];
    comm.all_reduce(&mut data, Reduction::Max)?;
    let plan = comm.plan(Collective::AllReduce, (mib as u64) << 20)?;
    let schedule = plan.schedule(Collective::AllReduce, comm.rank()).context("it has steps")?;
    let mut sent = BTreeMap::<Rank, u64>::new();
    for step in schedule.steps {
        if let Step::Send { to, part } = step {
            *sent.entry(to).or_default() += u64::from(part.len);
        }
    }
    let chunks = u64::from(schedule.chunks);
    let sent =
        sent.iter().map(|(to, parts)| format!(" {to}:{}", (parts * (mib << 20) as u64) / chunks));
    println!("{}{}", plan.algorithm.name(), sent.collect::<String>());
    std::io::stdin().read_line(&mut String::new())?;
    let mut fastest = f64::INFINITY;
    for _ in 0..iterations {
        comm.barrier()?;
        let start = Instant::now();
        comm.all_reduce(&mut data, Reduction::Max)?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    comm.barrier()?;
    println!("{fastest}");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}
