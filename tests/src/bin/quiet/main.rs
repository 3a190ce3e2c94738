//! One rank that counts what its small operations ask of the allocator and of the system.
//!
//! `quiet WHAT CALLS`: WHAT is the bytes of an all_reduce, or `barrier`, or `noise`, which allocates, frees
//! and asks for the parent's process id. After a warm-up, prints of CALLS calls: how often they
//! allocated or freed, how many of them gave their core up while they waited, and which other
//! system calls they made.
//!
//! System calls are counted by the kernel's syscall user dispatch: while the selector says so, every
//! system call of this thread raises a signal instead.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use anyhow::Context;
use tutti::{Communicator, Config, Reduction};

mod calls;

/// The system's allocator, with a count of what each thread asks of it.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ASKED.set(ASKED.get() + 1);
}

// SAFETY: every method does what that of the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(old, layout, new_size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Operation = dyn FnMut(&Communicator) -> Result<(), tutti::Error>;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (what, calls) = (args.next().context("WHAT?")?, args.next().context("CALLS?")?.parse()?);
    let comm = Communicator::from_env(Config::from_env()?)?;
    let operation: Box<Operation> = match &what[..] {
        "barrier" => Box::new(|comm| comm.barrier()),
        "noise" => Box::new(|_| {
            drop(std::hint::black_box(Box::new(1)));
            std::hint::black_box(std::os::unix::process::parent_id());
            Ok(())
        }),
        bytes => {
            let mut data = vec![1_i32; bytes.parse::<usize>()? / 4];
            Box::new(move |comm| comm.all_reduce(&mut data, Reduction::Max))
        }
    };
    measure(&comm, operation, calls)
}

fn measure(comm: &Communicator, mut operation: Box<Operation>, calls: u32) -> anyhow::Result<()> {
    for _ in 0..100 {
        operation(comm)?;
    }
    if let Err(error) = calls::prepare() {
        println!("cannot count: the kernel has no syscall user dispatch ({error})");
        return Ok(());
    }
    let (mut asked, mut waited, mut made) = (0, 0, Vec::with_capacity(calls as usize));
    for _ in 0..calls {
        let before = ASKED.get();
        calls::watch();
        let outcome = operation(comm);
        let call = calls::unwatch();
        asked += ASKED.get() - before;
        outcome?;
        match call {
            None => {}
            Some(calls::YIELD) => waited += 1,
            Some(other) => made.push(other),
        }
    }
    made.sort_unstable();
    made.dedup();
    println!("allocator {asked}, waits {waited}, system calls {made:?}");
    Ok(())
}
