//! `tutti topo` from outside.

use std::process::{Command, Output};

use serde_json::Value;

fn tutti(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tutti")).args(arguments).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn what_it_writes_as_a_fabric_file_it_and_plan_read_back() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let written = tutti(&["topo", "-p", "6", "--toml"]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    std::fs::write(path, &written.stdout).unwrap();
    let again = tutti(&["topo", "--fabric", path, "--toml"]);
    assert_eq!(text(again.stdout), text(written.stdout));
    let plan = tutti(&["plan", "all_reduce", "-b", "1M", "--fabric", path, "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["ranks"], 6);
}

#[test]
fn json_has_this_machines_interfaces_and_every_rank() {
    let output = tutti(&["topo", "-p", "3", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let interfaces = json["machine"]["interfaces"].as_array().unwrap();
    assert!(interfaces.iter().any(|interface| interface["is_loopback"] == true), "{json}");
    assert_eq!(json["hosts"][0]["placed"][0]["ranks"], serde_json::json!([0, 1, 2]));
}

#[test]
fn the_table_has_no_colours_and_the_drawing_goes_to_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("here.svg");
    let output = tutti(&["topo", "--svg", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!output.stdout.contains(&0x1b));
    assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg "));
}

#[test]
fn a_file_that_is_not_there_or_of_other_ranks_is_an_error() {
    let output = tutti(&["topo", "--fabric", "/no/such/file.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).contains("cannot read /no/such/file.toml"));
    assert_eq!(tutti(&["topo", "--json", "--toml"]).status.code(), Some(2));
}
