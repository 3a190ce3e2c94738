//! `tutti run` from outside: what it passes on, and that nothing outlives it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

fn tutti_run(ranks: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.args(["run", "-p", ranks, "--"]);
    command
}

fn run_shell(ranks: &str, script: &str) -> Output {
    tutti_run(ranks).args(["sh", "-c", script]).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn success_of_all_ranks_is_success_without_a_word() {
    let output = run_shell("3", "exit 0");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn exit_status_is_the_highest_of_all_ranks() {
    let output = run_shell("4", "exit $RANK");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn the_first_failure_ends_the_rest_and_is_named() {
    let output = run_shell("3", "[ $RANK = 1 ] && exit 7; exec sleep 1000");
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let line = "tutti: rank 1 ended with exit status 7; 2 other ranks were ended\n";
    assert_eq!(text(&output.stderr), line);
}

#[test]
fn a_rank_that_ignores_the_request_to_end_is_killed() {
    let script = "[ $RANK = 0 ] && exit 5; trap '' TERM; while :; do sleep 1; done";
    let output = run_shell("2", script);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

#[test]
fn a_signal_is_128_and_its_number() {
    let output = run_shell("2", "[ $RANK = 1 ] && kill -KILL $$; exit 0");
    assert_eq!(output.status.code(), Some(137));
    assert!(text(&output.stderr).contains("rank 1 was killed by signal 9 (SIGKILL)"), "{output:?}");
}

#[test]
fn a_program_that_does_not_exist_is_127_and_named() {
    let output = tutti_run("2").arg("no-such-program").output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("no-such-program"), "{output:?}");
}

#[test]
fn a_file_that_is_no_program_is_126() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = tutti_run("2").arg(file.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(126), "{output:?}");
}

#[test]
fn every_rank_knows_its_place() {
    let output = run_shell("2", "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $TUTTI_ID");
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert!(lines[0].starts_with("[0] 0 2 0 2 tutti:127.0.0.1:"), "{lines:?}");
    assert!(lines[1].starts_with("[1] 1 2 1 2 tutti:127.0.0.1:"), "{lines:?}");
}

#[test]
fn each_stream_is_passed_on_as_itself() {
    let output = run_shell("1", "echo out; echo err >&2; printf tail");
    assert_eq!(text(&output.stdout), "[0] out\n[0] tail\n");
    assert_eq!(text(&output.stderr), "[0] err\n");
}

#[test]
fn lines_of_several_ranks_stay_whole() {
    let output = run_shell("4", "for i in 1 2 3 4 5 6 7 8; do seq 100000 100500; done");
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 4 * 8 * 501);
    for line in stdout.lines() {
        let (prefix, number) = line.split_once(' ').unwrap();
        assert!(["[0]", "[1]", "[2]", "[3]"].contains(&prefix), "{line}");
        assert!((100_000..=100_500).contains(&number.parse::<u32>().unwrap()), "{line}");
    }
}

#[test]
fn wrong_arguments_are_2() {
    for arguments in [&["run", "-p", "0", "true"][..], &["run", "-p", "2"], &["run", "true"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tutti")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// Starts two ranks that print the number of a process; returns the launcher and a handle on each
/// such process, unless it has been reaped already.
fn two_sleepers(script: &str) -> (Child, Vec<rustix::fd::OwnedFd>) {
    let mut command = tutti_run("2");
    command.args(["sh", "-c", script]).stdout(Stdio::piped());
    let mut launcher = command.spawn().unwrap();
    let lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    let numbers = lines.take(2).map(|line| {
        let line = line.unwrap();
        let (_, number) = line.split_once(' ').unwrap();
        Pid::from_raw(number.parse().unwrap()).unwrap()
    });
    let handles = numbers.filter_map(|pid| match pidfd_open(pid, PidfdFlags::empty()) {
        Err(Errno::SRCH) => None,
        handle => Some(handle.unwrap()),
    });
    let handles = handles.collect();
    (launcher, handles)
}

fn signal(launcher: &Child, signal: Signal) {
    kill_process(Pid::from_child(launcher), signal).unwrap();
}

/// Blocks until the process has ended.
fn await_end(handle: rustix::fd::OwnedFd) {
    let mut handles = [PollFd::new(&handle, PollFlags::IN)];
    assert_eq!(poll(&mut handles, None), Ok(1));
}

#[test]
fn an_interrupted_launcher_takes_its_ranks_along() {
    for (number, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut launcher, ranks) = two_sleepers("echo $$; exec sleep 1000");
        signal(&launcher, number);
        assert_eq!(launcher.wait().unwrap().code(), Some(status));
        ranks.into_iter().for_each(await_end);
    }
}

#[test]
fn a_second_signal_does_not_wait_for_stubborn_ranks() {
    let script = "trap '' INT TERM; echo $$; while :; do sleep 1000; done";
    let (mut launcher, ranks) = two_sleepers(script);
    signal(&launcher, Signal::INT);
    signal(&launcher, Signal::TERM);
    assert!(matches!(launcher.wait().unwrap().code(), Some(130 | 143)));
    ranks.into_iter().for_each(await_end);
}

#[test]
fn ranks_end_with_a_launcher_that_is_killed() {
    let (mut launcher, ranks) = two_sleepers("echo $$; exec sleep 1000");
    signal(&launcher, Signal::KILL);
    launcher.wait().unwrap();
    ranks.into_iter().for_each(await_end);
}

#[test]
fn what_a_rank_leaves_running_ends_with_it() {
    let (mut launcher, left_over) = two_sleepers("sleep 1000 & echo $!");
    assert_eq!(launcher.wait().unwrap().code(), Some(0));
    left_over.into_iter().for_each(await_end);
}
