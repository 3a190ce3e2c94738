//! One rank of a many-process test: does what its first argument says and prints one line.
//!
//! `rank reduce-forever MIB`: all_reduces of that size until one fails.
//! `rank mismatch KIND`: one all_reduce, except that rank 2 does what KIND says.
//! `rank once`: one checked all_reduce of 1,000 elements.

use std::io::Write;

use tutti::{Collective, Communicator, Config, DataType, Rank, Reduction, Request};
use tutti_tests::reference;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let comm = Communicator::from_env(Config::from_env()?)?;
    let outcome = match args.first().map(String::as_str) {
        Some("reduce-forever") => forever(&comm, args[1].parse()?),
        Some("mismatch") => mismatch(&comm, &args[1]),
        Some("once") => once(&comm),
        _ => anyhow::bail!("what is to be done? reduce-forever MIB, mismatch KIND, once"),
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

fn once(comm: &Communicator) -> anyhow::Result<()> {
    let (rank, ranks, count) = (comm.rank().0, comm.size(), 1000);
    let mut data = reference::input(rank, count, ranks, DataType::F32, Reduction::Sum);
    comm.run(&sum(DataType::F32), None, &mut data)?;
    let want = reference::output(count, ranks, DataType::F32, Reduction::Sum);
    reference::compare(&data, &want, DataType::F32).map_err(anyhow::Error::msg)
}
