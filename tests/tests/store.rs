//! Ranks that find each other over a key-value store of the caller.

use std::collections::HashMap;
use std::io;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tutti::{Communicator, Config, Error, Rank, Reduction, Store};

/// A store in the memory of this process.
#[derive(Default)]
struct Memory {
    values: Mutex<HashMap<String, Vec<u8>>>,
    changed: Condvar,
}

impl Store for Memory {
    fn set(&self, key: &str, value: &[u8]) -> io::Result<()> {
        self.values.lock().unwrap().insert(key.into(), value.into());
        self.changed.notify_all();
        Ok(())
    }

    fn get(&self, key: &str, limit: Duration) -> io::Result<Vec<u8>> {
        let values = self.values.lock().unwrap();
        let absent = |values: &mut HashMap<String, Vec<u8>>| !values.contains_key(key);
        let (values, _) = self.changed.wait_timeout_while(values, limit, absent).unwrap();
        values.get(key).cloned().ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

/// A store whose server is gone.
struct Gone;

impl Store for Gone {
    fn set(&self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::Error::other("the store's server is gone"))
    }

    fn get(&self, _: &str, _: Duration) -> io::Result<Vec<u8>> {
        Err(io::Error::other("the store's server is gone"))
    }
}

fn config() -> Config {
    Config { start_deadline: Duration::from_millis(300), ..Config::default() }
}

fn refused(store: &dyn Store, rank: u32) -> String {
    let started = Communicator::from_store(store, Rank(rank), 2, config());
    started.err().expect("it cannot start").to_string()
}

#[test]
fn ranks_that_share_only_a_store_find_each_other() {
    let store = Memory::default();
    let sum = |rank: u32| -> Result<i32, Error> {
        let comm = Communicator::from_store(&store, Rank(rank), 4, Config::default())?;
        let mut data = [rank as i32];
        comm.all_reduce(&mut data, Reduction::Sum)?;
        Ok(data[0])
    };
    std::thread::scope(|scope| {
        // The rank that publishes comes last.
        let ranks: Vec<_> = (0..4).rev().map(|rank| scope.spawn(move || sum(rank))).collect();
        for rank in ranks {
            assert_eq!(rank.join().unwrap().unwrap(), 6);
        }
    });
}

#[test]
fn a_rank_alone_needs_no_store() {
    let comm = Communicator::from_store(&Gone, Rank(0), 1, config()).unwrap();
    assert_eq!(comm.size(), 1);
}

#[test]
fn a_store_that_fails_is_named_with_its_key_and_what_it_said() {
    for rank in [0, 1] {
        let said = refused(&Gone, rank);
        assert!(
            said.starts_with(&format!("rank {rank}: cannot start: the store does not ")),
            "{said}"
        );
        assert!(said.contains("tutti/unique_id"), "{said}");
        assert!(said.contains("the store's server is gone; look whether"), "{said}");
    }
}

#[test]
fn a_store_that_nobody_writes_to_gives_up_at_the_start_deadline() {
    let said = refused(&Memory::default(), 1);
    let want = "does not give the key \"tutti/unique_id\" within 300ms: timed out";
    assert!(said.contains(want) && said.contains("whether rank 0 was started"), "{said}");
}

#[test]
fn a_value_of_somebody_else_under_the_key_is_refused() {
    let store = Memory::default();
    store.set("tutti/unique_id", b"\xffsomething else").unwrap();
    let said = refused(&store, 1);
    assert!(said.contains("tutti:ADDRESS:PORT:SECRET"), "{said}");
    assert!(said.contains("give each job a prefix of its own"), "{said}");
}

#[test]
fn a_rank_outside_the_group_never_asks_the_store() {
    let said = Communicator::from_store(&Gone, Rank(2), 2, config()).err().unwrap().to_string();
    assert_eq!(said, "rank 2: rank 2 is outside a group of 2");
}
