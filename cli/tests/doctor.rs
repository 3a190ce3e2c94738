//! `tutti doctor` from outside. The machine that these tests run on may have flaws of its own, so they
//! look for single findings.

use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::Value;

const TUTTI: &str = env!("CARGO_BIN_EXE_tutti");

/// Runs `tutti` with these arguments and variables.
fn tutti(arguments: &str, set: &[(&str, &str)]) -> Output {
    let mut command = Command::new(TUTTI);
    command.args(arguments.split_whitespace()).envs(set.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What a check of the first rank of the report came to.
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["ranks"][0]["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["check"] == name)
        .unwrap_or_else(|| panic!("no {name}: {report}"))
}

#[test]
fn the_exit_status_is_that_of_the_worst_finding() {
    let output = tutti("doctor --json", &[]);
    let report = report(&output);
    let checks = report["ranks"][0]["checks"].as_array().unwrap();
    let worst = checks.iter().map(|check| match check["severity"].as_str().unwrap() {
        "error" => 2,
        "warning" => 1,
        _ => 0,
    });
    assert_eq!(output.status.code(), worst.max(), "{report}");
    assert_eq!(check(&report, "self-test over shm")["severity"], "ok");
    assert_eq!(check(&report, "self-test over tcp")["severity"], "ok");
}

#[test]
fn a_misspelt_setting_is_a_warning_with_its_remedy() {
    let output = tutti("doctor", &[("TUTTI_DEADLIN", "3")]);
    assert!(output.status.code() >= Some(1), "{output:?}");
    let said = text(&output.stdout);
    let line = said.lines().find(|line| line.starts_with("warning: variables:")).expect(&said);
    assert!(line.contains("did you mean TUTTI_DEADLINE?"), "{said}");
    assert!(said.contains("\n  why: ") && said.contains("\n  do:  "), "{said}");
}

#[test]
fn a_setting_without_sense_does_not_keep_the_doctor_from_the_rest() {
    let output = tutti("doctor --json", &[("TUTTI_TRANSPORT", "pigeon")]);
    assert_eq!(output.status.code(), Some(2));
    let report = report(&output);
    assert_eq!(check(&report, "variables")["severity"], "error");
    assert_eq!(check(&report, "loopback")["severity"], "ok");
}

#[test]
fn taken_ports_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let set = [("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &*port), ("TUTTI_PORT_RANGE", &*port)];
    let output = tutti("doctor -p 1 --json", &set);
    assert_eq!(output.status.code(), Some(2));
    let report = report(&output);
    assert!(check(&report, "MASTER_PORT")["found"].as_str().unwrap().contains(&port), "{report}");
    let range = check(&report, "TUTTI_PORT_RANGE")["found"].as_str().unwrap();
    assert_eq!(range, "TUTTI_PORT_RANGE has 1 ports, of which 0 are free");
}

#[test]
fn rank_0_says_what_all_ranks_find() {
    let output = tutti(&format!("run -p 3 -- {TUTTI} doctor"), &[("TUTTI_DEADLIN", "3")]);
    let said = text(&output.stdout);
    assert!(said.lines().all(|line| line.starts_with("[0]")), "{said}");
    assert!(said.contains(": ranks 0-2\n"), "{said}");
    assert_eq!(said.matches("did you mean TUTTI_DEADLINE?").count(), 1, "{said}");
    let passed = said.lines().find(|line| line.contains("nothing found by:")).expect(&said);
    assert!(passed.ends_with(", ranks"), "{said}");
}

#[test]
fn ranks_that_do_not_come_are_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let set = [
        ("RANK", "0"),
        ("WORLD_SIZE", "3"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", &*free),
        ("TUTTI_START_DEADLINE", "0.2"),
    ];
    let output = tutti("doctor --json", &set);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let report = report(&output);
    let found = check(&report, "ranks")["found"].as_str().unwrap();
    assert!(found.contains("never seen: 1, 2"), "{report}");
}

#[test]
fn wrong_arguments_are_2() {
    for arguments in ["doctor -p 0", "doctor --nonsense"] {
        let output = tutti(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
#[ignore = "needs root and unshare"]
fn a_machine_that_is_broken_on_purpose_is_found_out() {
    let script = "mount -t tmpfs -o size=64k tmpfs /dev/shm && hostname wrong-name && ulimit -n 64 \
                  && exec \"$0\" doctor --json";
    let mut command = Command::new("unshare");
    command.args(["--net", "--uts", "--mount", "sh", "-c", script, TUTTI]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let report = report(&output);
    for (name, severity, part) in [
        ("loopback", "error", "lo is missing or down"),
        ("/dev/shm", "warning", "64 KiB"),
        ("open files", "warning", "64 files"),
        ("host name", "warning", "wrong-name"),
        ("self-test over tcp", "error", "127.0.0.1"),
    ] {
        let check = check(&report, name);
        assert_eq!(check["severity"], severity, "{report}");
        assert!(check["found"].as_str().unwrap().contains(part), "{check}");
        assert!(!check["remedy"].as_str().unwrap().is_empty(), "{check}");
    }
}
