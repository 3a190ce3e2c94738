//! How a job comes together, and who is kept out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use tutti::{
    Communicator, Config, Error, ErrorKind, InterfaceFilter, PortRange, Rank, Reduction,
    Rendezvous, TransportChoice,
};
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
    assert!(read(&[("PMI_RANK", "2"), ("PMI_SIZE", "2")]).contains("PMI_SIZE=2"));
    assert!(read(&[("OMPI_COMM_WORLD_RANK", "0")]).contains("OMPI_COMM_WORLD_SIZE"));
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
fn ranks_go_on_when_the_rank_that_holds_the_rendezvous_has_ended_in_good_order() {
    let address = "127.91.7.9";
    for transport in ["shm", "tcp"] {
        let port = free_port(address).to_string();
        let start = |rank: u32| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_rank"));
            command.arg("outlive").env("RANK", rank.to_string()).env("WORLD_SIZE", "4");
            command.env("MASTER_ADDR", address).env("MASTER_PORT", &port);
            command.env("TUTTI_TRANSPORT", transport);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let mut ranks: Vec<_> = (0..4).map(start).collect();
        assert!(ranks[0].wait().unwrap().success());
        for rank in &mut ranks[1..] {
            rank.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
        for rank in ranks.drain(1..) {
            let output = rank.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{transport}");
        }
    }
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

/// A port of the loopback address, free a moment ago, with room above it.
fn free_port(address: &str) -> u16 {
    let free = || std::net::TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
    std::iter::repeat_with(free).find(|port| *port < 65_500).unwrap()
}

/// Starts two ranks as processes with exactly these variables, and expects both to reduce.
fn starts_with<'a>(vars: impl Fn(u32) -> Vec<(&'a str, String)>) {
    let start = |rank| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rank"));
        command.arg("once").env_clear().envs(vars(rank));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = [0, 1].map(start).into();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == b"ok\n", "{said}");
    }
}

#[test]
fn processes_of_open_mpi_find_each_other() {
    let job = format!("prterun-of-this-test-{}@1", std::process::id());
    starts_with(|rank| {
        vec![
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "2".into()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2".into()),
            ("PMIX_NAMESPACE", job.clone()),
        ]
    });
}

#[test]
fn processes_of_mpich_find_each_other_by_their_launcher() {
    starts_with(|rank| {
        let ranks = [("PMI_RANK", rank.to_string()), ("PMI_SIZE", "2".into())];
        ranks.into_iter().chain([("MPI_LOCALNRANKS", "2".into())]).collect()
    });
}

#[test]
fn processes_of_slurm_find_each_other() {
    starts_with(|rank| {
        vec![
            ("SLURM_PROCID", rank.to_string()),
            ("SLURM_NTASKS", "2".into()),
            ("SLURM_JOB_ID", std::process::id().to_string()),
            ("SLURM_STEP_ID", "0".into()),
            ("SLURM_STEP_NODELIST", "node[07]".into()),
        ]
    });
}

fn torchrun(rank: u32, address: &str, port: u16) -> Vec<(&'static str, String)> {
    vec![
        ("RANK", rank.to_string()),
        ("WORLD_SIZE", "2".into()),
        ("MASTER_ADDR", address.into()),
        ("MASTER_PORT", port.to_string()),
        ("TORCHELASTIC_RUN_ID", "none".into()),
        ("TORCHELASTIC_USE_AGENT_STORE", "True".into()),
    ]
}

#[test]
fn processes_of_torchrun_meet_beside_its_store_and_other_jobs() {
    let address = "127.91.7.5";
    let port = free_port(address);
    let at = |port| std::net::SocketAddr::new(address.parse().unwrap(), port);
    let _store = std::net::TcpListener::bind(at(port)).unwrap();
    let _other_job = Rendezvous::bind(at(port + 1)).unwrap();
    starts_with(|rank| torchrun(rank, address, port));
}

#[test]
fn candidates_that_all_belong_to_others_are_an_error_at_once() {
    let address = "127.91.7.6";
    let at = std::net::SocketAddr::new(address.parse().unwrap(), 65_535);
    let _other_job = Rendezvous::bind(at).unwrap();
    let read = |rank| {
        let vars = torchrun(rank, address, 65_534).into_iter();
        let vars = vars.map(|(name, value)| (name.to_string(), value));
        let long = [("TUTTI_START_DEADLINE".to_string(), "3600".to_string())];
        reason(Communicator::from_env(Config::from_vars(vars.chain(long)).unwrap()))
    };
    assert!(read(0).contains("set MASTER_PORT to a free one"), "{}", read(0));
    assert!(read(1).contains("is not the rendezvous of this job"), "{}", read(1));
}

#[test]
fn a_filter_that_allows_nothing_names_the_interfaces() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let filter = Some(InterfaceFilter::parse("=nosuch0").unwrap());
    let config = Config { socket_ifname: filter, ..patient(0) };
    let reason = reason(Communicator::connect(&rendezvous.id(), Rank(0), 2, config));
    assert!(reason.contains("TUTTI_SOCKET_IFNAME==nosuch0"), "{reason}");
    assert!(reason.contains("lo (127.0.0.1)"), "{reason}");
}

#[test]
fn ports_that_are_all_taken_are_named_with_the_remedy() {
    let rendezvous = Rendezvous::bind(ranks::loopback()).unwrap();
    let taken = std::net::TcpListener::bind(ranks::loopback()).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let config = Config { port_range: Some(PortRange::parse(&port).unwrap()), ..patient(0) };
    let reason = reason(Communicator::connect(&rendezvous.id(), Rank(0), 2, config));
    assert!(reason.contains(&format!("TUTTI_PORT_RANGE={port}")), "{reason}");
    assert!(reason.contains("widen the range"), "{reason}");
}

#[test]
fn hub_and_tcp_share_a_range_of_ports_and_an_interface() {
    // Below the ports that the system gives out; wide enough for other tests and jobs.
    let first = 10_000 + std::process::id() % 9_000;
    starts_with(|rank| {
        vec![
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "2".into()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2".into()),
            ("PMIX_NAMESPACE", format!("tcp-of-this-test-{}", std::process::id())),
            ("TUTTI_PORT_RANGE", format!("{first}-{}", first + 7)),
            ("TUTTI_SOCKET_IFNAME", "=lo".into()),
            ("TUTTI_TRANSPORT", "tcp".into()),
        ]
    });
}

#[test]
fn processes_of_a_rank_table_find_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.json");
    let mark = format!("server of process {}", std::process::id());
    let devices = r#"[{"device_id":"0","rank_id":"0"},{"device_id":"1","rank_id":"1"}]"#;
    let server = format!(r#"{{"server_id":"{mark}","device":{devices}}}"#);
    let table = format!(r#"{{"version":"1.0","status":"completed","server_list":[{server}]}}"#);
    std::fs::write(&path, table).unwrap();
    let path = path.to_str().unwrap().to_string();
    starts_with(|rank| vec![("RANK_ID", rank.to_string()), ("RANK_TABLE_FILE", path.clone())]);
    let vars = [("RANK_ID", "0"), ("RANK_SIZE", "3"), ("RANK_TABLE_FILE", &path)];
    let vars = vars.map(|(name, value)| (name.to_string(), value.to_string()));
    let reason = reason(Communicator::from_env(Config::from_vars(vars).unwrap()));
    assert!(reason.contains("RANK_SIZE=3") && reason.contains("has 2 ranks"), "{reason}");
}
