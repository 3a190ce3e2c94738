//! `tutti plan` from outside.

use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;

fn plan(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.arg("plan").args(arguments.split_whitespace()).env_remove("TUTTI_ALGO");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_choice_is_one_of_those_considered_and_has_a_reason() {
    let output = plan("all_reduce --bytes 64K --ranks 4 --json");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["ranks"], &json["hosts"], &json["bytes"]),
        (&4.into(), &1.into(), &65536.into())
    );
    let considered = json["considered"].as_array().unwrap();
    assert!(considered.iter().any(|other| other["algorithm"] == json["algorithm"]), "{json}");
    assert!(json["predicted_us"].as_f64().unwrap() > 0.0);
    assert!(json["why"].as_str().unwrap().starts_with(json["algorithm"].as_str().unwrap()));
}

#[test]
fn a_fabric_file_says_where_the_ranks_are() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let fabric = "schema = \"fabric/1\"\n\
        [units]\nbandwidth = \"GB/s\"\nlatency = \"ns\"\n\
        [[host]]\nname = \"a\"\ncores = 8\nranks = 8\n\
        [[host]]\nname = \"b\"\ncores = 8\nranks = 8\n";
    file.write_all(fabric.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    let output = plan(&format!("broadcast --bytes 1M --root 9 --fabric {path}"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("16 ranks on 2 hosts"), "{output:?}");

    let output = plan(&format!("broadcast --bytes 1M -p 4 --fabric {path}"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("has 16 ranks, not 4"), "{output:?}");
}

#[test]
fn a_broken_fabric_file_is_named_with_line_and_column() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"schema = \"fabric/9\"\n").unwrap();
    let path = file.path().to_str().unwrap();
    let output = plan(&format!("barrier --fabric {path}"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with(&format!("error: in {path}: line 1, column ")), "{stderr}");
}

#[test]
fn wrong_arguments_are_2() {
    for arguments in [
        "",
        "all_reduce --bytes 8",
        "all_reduce --ranks 4",
        "all_reduce --bytes 8 --ranks 0",
        "broadcast --bytes 8 --ranks 4 --root 4",
        "all_gather --bytes 8",
    ] {
        let output = plan(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
    }
}
