//! A small operation inside a host costs the machine nothing but memory accesses.

use std::sync::{Mutex, PoisonError};

use tutti_tests::processes::Processes;

const CALLS: u32 = 20_000;

static ALONE: Mutex<()> = Mutex::new(());

/// What a rank tells of its calls.
struct Counts {
    /// Of the allocator.
    asked: u64,
    /// Calls that gave their core up while they waited.
    waits: u32,
    /// The numbers of other system calls.
    calls: String,
}

/// The counts of two ranks; none, and it says so, on a machine on which this cannot be counted.
fn counts(what: &str) -> Vec<Counts> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        eprintln!("SKIPPED: two ranks that poll need two cores, and there is {cores}");
        return Vec::new();
    }
    // The others of these tests would take the cores.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let program = env!("CARGO_BIN_EXE_quiet");
    let mut ranks = Processes::start(program, 2, &[what, &CALLS.to_string()], |_| {
        // A rank that waits long would sleep. With this it goes on to poll.
        vec![("TUTTI_SPIN_US", "100000000".into()), ("TUTTI_TRANSPORT", "shm".into())]
    });
    let lines: Vec<String> =
        (0..2).map(|rank| ranks.lines(rank).next().expect("it counts").expect("text")).collect();
    match lines.iter().find(|line| line.starts_with("cannot count")) {
        Some(line) => eprintln!("SKIPPED: {line}"),
        None => return lines.iter().map(|line| parse(line)).collect(),
    }
    Vec::new()
}

fn parse(line: &str) -> Counts {
    let words = line.strip_prefix("allocator ").and_then(|line| line.split_once(", waits "));
    let (asked, rest) = words.unwrap_or_else(|| panic!("a rank says {line:?}"));
    let (waits, calls) = rest.split_once(", system calls ").expect("the third count");
    let (asked, waits) = (asked.parse().expect("a number"), waits.parse().expect("a number"));
    Counts { asked, waits, calls: calls.into() }
}

/// The communicator's own lock is one compare-and-swap where no other thread uses it: a lock that had
/// to wait would be seen here as a system call. A rank that waits for another longer than a few
/// microseconds offers its core to others by a system call; calls that do so are told apart, and
/// where other programs have the cores so that every call does, this tries again.
fn is_quiet(what: &str) {
    for _ in 0..10 {
        let counts = counts(what);
        for (rank, Counts { asked, calls, .. }) in counts.iter().enumerate() {
            assert_eq!(*asked, 0, "rank {rank} allocates or frees in {CALLS} calls");
            assert_eq!(calls, "[]", "rank {rank} makes system calls of these numbers");
        }
        if counts.iter().all(|rank| rank.waits < CALLS) {
            return;
        }
    }
    panic!("a rank waited in each of {CALLS} calls, ten times: other programs have the cores");
}

#[test]
fn what_allocates_or_calls_the_system_is_counted() {
    for Counts { asked, waits, calls } in counts("noise") {
        assert_eq!((asked, waits), (2 * u64::from(CALLS), 0));
        assert_eq!(calls, format!("[{}]", libc::SYS_getppid));
    }
}

#[test]
fn an_all_reduce_of_eight_bytes_neither_allocates_nor_calls_the_system() {
    is_quiet("8");
}

#[test]
fn an_all_reduce_of_four_kibibytes_neither_allocates_nor_calls_the_system() {
    is_quiet("4096");
}

#[test]
fn a_barrier_neither_allocates_nor_calls_the_system() {
    is_quiet("barrier");
}

#[test]
fn steps_neither_allocate_nor_call_the_system() {
    is_quiet("65536");
}
