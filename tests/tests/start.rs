//! How a job comes together, and who is kept out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tutti::{Communicator, Config, Error, ErrorKind, Rank, Reduction, Rendezvous, TransportChoice};
use tutti_tests::ranks;
use tutti_topo::plan::Overrides;

fn reason<T>(result: Result<T, Error>) -> String {
    let error = result.map(drop).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Start(_) | ErrorKind::Setting { .. }), "{error}");
    error.to_string()
}

/// The ranks with these numbers and sizes try to start together.
fn start(claims: &[(u32, u32)], config: impl Fn(usize) -> Config + Sync) -> Vec<Result<(), Error>> {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let id = rendezvous.id();
    std::thread::scope(|scope| {
        let start = |(index, &(rank, size)): (usize, &(u32, u32))| {
            let (id, config) = (&id, &config);
            scope
                .spawn(move || Communicator::connect(id, Rank(rank), size, config(index)).map(drop))
        };
        let threads: Vec<_> = claims.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn patient(_: usize) -> Config {
    Config { start_deadline: Duration::from_secs(3600), ..Config::default() }
}

#[test]
fn a_rank_claimed_twice_is_named_on_all() {
    // Two of four: the session cannot complete, so nobody gets in before the clash is seen.
    for result in start(&[(1, 4), (1, 4)], patient) {
        assert!(reason(result).contains("rank 1 was claimed twice"));
    }
}

#[test]
fn sizes_that_differ_are_named() {
    let reasons: Vec<_> = start(&[(0, 4), (1, 5)], patient).into_iter().map(reason).collect();
    for reason in reasons {
        assert!(reason.contains("rank 0 (host") && reason.contains("rank 1 (host"), "{reason}");
        assert!(reason.contains("there are 4") && reason.contains("there are 5"), "{reason}");
    }
}

#[test]
fn a_rank_outside_the_group_is_refused_at_once() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let error = Communicator::connect(&rendezvous.id(), Rank(4), 4, Config::default())
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("rank 4 is outside a group of 4"));
}

#[test]
fn missing_ranks_are_named_when_the_start_deadline_passes() {
    let short = |_| Config { start_deadline: Duration::from_millis(3500), ..Config::default() };
    for result in start(&[(0, 4), (2, 4)], short) {
        let reason = reason(result);
        // The first to give up takes the session with it: the other hears of that.
        let late = reason.contains("never seen: 1, 3");
        assert!(late || reason.contains("ended before all ranks had joined"), "{reason}");
    }
}

#[test]
fn settings_that_differ_are_named_with_both_values() {
    let algo = |index: usize| Config {
        algo: Overrides::parse(if index == 1 { "all_reduce:ring" } else { "" }).unwrap(),
        ..patient(index)
    };
    for result in start(&[(0, 2), (1, 2)], algo) {
        let reason = reason(result);
        assert!(reason.contains("TUTTI_ALGO differs") && reason.contains("ring"), "{reason}");
    }
}

#[test]
fn shared_memory_across_hosts_is_refused() {
    let apart = |index: usize| Config {
        transport: TransportChoice::Shm,
        host_id: Some(format!("host {index}")),
        ..patient(index)
    };
    for result in start(&[(0, 2), (1, 2)], apart) {
        assert!(reason(result).contains("share no memory; use auto or tcp"));
    }
}

#[test]
fn a_wrong_secret_is_turned_away() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let other = Rendezvous::bind(ranks::loopback()).unwrap();
    let (id, other) = (rendezvous.id().to_string(), other.id().to_string());
    let address = id.rsplit_once(':').unwrap().0;
    let secret = other.rsplit_once(':').unwrap().1;
    let forged = format!("{address}:{secret}").parse().unwrap();
    let reason = reason(Communicator::connect(&forged, Rank(0), 2, patient(0)));
    assert!(reason.contains("secret"), "{reason}");
}

#[test]
fn strangers_at_the_rendezvous_disturb_nobody() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let id = rendezvous.id();
    let text = id.to_string();
    let address = text.strip_prefix("tutti:").unwrap().rsplit_once(':').unwrap().0.to_string();
    std::thread::scope(|scope| {
        let knock = || TcpStream::connect(&address).unwrap();
        let first =
            scope.spawn(|| Communicator::connect(&id, Rank(0), 2, patient(0)).unwrap().barrier());
        // Closes at once; speaks HTTP; sends three bytes and stays.
        drop(knock());
        let mut http = knock();
        http.write_all(
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n0123456789012345678901234567890123456789",
        )
        .unwrap();
        assert_eq!(http.read(&mut [0; 256]).unwrap_or(0), 0, "a stranger is told nothing");
        let mut silent: Vec<_> = (0..300).map(|_| knock()).collect();
        silent.iter_mut().for_each(|stream| _ = stream.write_all(b"abc"));
        let second =
            scope.spawn(|| Communicator::connect(&id, Rank(1), 2, patient(1)).unwrap().barrier());
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
}

#[test]
fn nobody_at_the_rendezvous_is_said_with_address_and_attempts() {
    let id = Rendezvous::bind(ranks::loopback()).unwrap().id();
    let short = Config { start_deadline: Duration::from_millis(200), ..Config::default() };
    let reason = reason(Communicator::connect(&id, Rank(0), 2, short));
    assert!(
        reason.contains("no rendezvous at 127.0.0.1:") && reason.contains("attempts"),
        "{reason}"
    );
}

#[test]
fn launcher_variables_that_make_no_sense_are_named() {
    let read = |vars: &[(&str, &str)]| {
        let vars = vars.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        reason(Communicator::from_env(Config::from_vars(vars).unwrap()))
    };
    assert!(read(&[("RANK", "0")]).contains("WORLD_SIZE"));
    assert!(read(&[("WORLD_SIZE", "2")]).contains("RANK"));
    assert!(read(&[("RANK", "x"), ("WORLD_SIZE", "2")]).contains("RANK=x"));
    assert!(read(&[("RANK", "2"), ("WORLD_SIZE", "2")]).contains("WORLD_SIZE=2"));
    assert!(read(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("MASTER_ADDR"));
    let port = [
        ("RANK", "0"),
        ("WORLD_SIZE", "2"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "70000"),
    ];
    assert!(read(&port).contains("MASTER_PORT=70000"));
}

#[test]
fn ranks_meet_at_master_addr_and_port() {
    // A port that was free a moment ago; nobody else listens on this address of the loopback net.
    let address = "127.91.7.3";
    let port =
        std::net::TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port().to_string();
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let port = &port;
            scope.spawn(move || {
                let vars = [
                    ("RANK", rank.to_string()),
                    ("WORLD_SIZE", "3".into()),
                    ("MASTER_ADDR", address.into()),
                    ("MASTER_PORT", port.clone()),
                    ("TUTTI_JOB_SECRET", "of this test".into()),
                ];
                let config = Config::from_vars(vars.map(|(name, value)| (name.to_string(), value)));
                let comm = Communicator::from_env(config.unwrap()).unwrap();
                let mut data = [1];
                comm.all_reduce(&mut data, Reduction::Sum).unwrap();
                assert_eq!(data, [3]);
            });
        }
    });
}

#[test]
fn a_taken_master_port_is_said_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.91.7.4:0").unwrap();
    let vars = [
        ("RANK", "0".into()),
        ("WORLD_SIZE", "2".into()),
        ("MASTER_ADDR", "127.91.7.4".into()),
        ("MASTER_PORT", taken.local_addr().unwrap().port().to_string()),
    ];
    let config =
        Config::from_vars(vars.map(|(name, value): (&str, String)| (name.to_string(), value)))
            .unwrap();
    let reason = reason(Communicator::from_env(config));
    assert!(
        reason.contains("in use") && reason.contains("set MASTER_PORT to a free one"),
        "{reason}"
    );
}
