//! `tutti doctor` from outside.

use std::process::{Command, Output};

use serde_json::Value;

fn tutti() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.env_remove("MASTER_ADDR").env_remove("MASTER_PORT");
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn found(json: &Value) -> Vec<&str> {
    json["findings"].as_array().unwrap().iter().map(|f| f["check"].as_str().unwrap()).collect()
}

#[test]
fn a_setting_that_makes_no_sense_is_an_error_and_status_2() {
    let output = tutti().args(["doctor", "--json"]).env("TUTTI_DEADLINE", "soon").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let json = json(&output);
    assert_eq!(json["findings"][0]["severity"], "error");
    assert_eq!(found(&json)[0], "settings");
}

#[test]
fn more_ranks_than_cores_are_a_warning_with_a_remedy() {
    let output = tutti().args(["doctor", "-p", "500", "--json"]).output().unwrap();
    let json = json(&output);
    assert!(found(&json).contains(&"cores"), "{json}");
    assert_ne!(output.status.code(), Some(0));
    for finding in json["findings"].as_array().unwrap() {
        assert!(!finding["remedy"].as_str().unwrap().is_empty(), "{finding}");
    }
}

#[test]
fn ranks_of_a_job_report_once_through_rank_0() {
    let program = env!("CARGO_BIN_EXE_tutti");
    let mut command = tutti();
    command.args(["run", "-p", "3", "--", program, "doctor", "-p", "500", "--json"]);
    let output = command.output().unwrap();
    // `tutti run` puts the rank before each line.
    let text = String::from_utf8_lossy(&output.stdout).replace("[0] ", "");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["ranks"], 3);
    let cores = &json["findings"].as_array().unwrap().iter().find(|f| f["check"] == "cores");
    assert_eq!(cores.unwrap()["ranks"], serde_json::json!([0, 1, 2]));
}

#[test]
fn text_without_a_terminal_has_no_colours() {
    let output = tutti().args(["doctor", "-p", "500"]).output().unwrap();
    assert!(!output.stdout.contains(&0x1b), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("warning: cores: 500 ranks share"));
}

/// The machine as a container with everything wrong: no loopback, a tiny /dev/shm, few open files and
/// a name that nobody knows.
#[test]
#[ignore = "needs root"]
fn what_was_broken_on_purpose_is_found() {
    let script = format!(
        "hostname nobody-knows-me && mount -t tmpfs -o size=64k tmpfs /dev/shm && ulimit -n 64 && \
         exec {} doctor -p 4 --json",
        env!("CARGO_BIN_EXE_tutti")
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--uts", "--", "sh", "-c", &script]);
    let output = command.env_remove("MASTER_ADDR").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let json = json(&output);
    for check in ["loopback", "dev_shm", "files", "host_name"] {
        assert!(found(&json).contains(&check), "{check}: {json:#}");
    }
}
