//! `tutti topo` from outside.

use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;

fn tutti(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.args(arguments.split_whitespace()).env_remove("TUTTI_ALGO").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn this_machine_has_cores_nodes_and_the_ranks_that_are_asked_for() {
    let json = json(&tutti("topo -p 3 --json"));
    let host = &json["hosts"][0];
    assert!(host["cores"].as_f64().unwrap() > 0.0, "{json}");
    let nodes = host["numa_nodes"].as_array().unwrap();
    let ranks = nodes.iter().flat_map(|node| node["ranks"].as_array().unwrap());
    assert_eq!(ranks.collect::<Vec<_>>(), [0, 1, 2], "{json}");
    assert_eq!(host["port"]["gb_per_s"]["provenance"], "assumed");
}

#[test]
fn plan_reads_back_what_topo_writes() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let written = tutti("topo -p 3 --toml");
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    file.write_all(&written.stdout).unwrap();
    let path = file.path().to_str().unwrap();

    assert_eq!(tutti(&format!("topo --fabric {path} --toml")).stdout, written.stdout);
    let from_file = json(&tutti(&format!("plan all_reduce --bytes 1M --fabric {path} --json")));
    let from_here = json(&tutti("plan all_reduce --bytes 1M -p 3 --json"));
    assert_eq!(from_file, from_here);
}

#[test]
fn the_table_has_no_colours_in_a_pipe() {
    let output = tutti("topo");
    let table = text(&output.stdout);
    assert!(table.starts_with("host ") && table.contains("NUMA node "), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
}

#[test]
fn a_drawing_is_written_beside_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drawing.svg");
    let output = tutti(&format!("topo -p 2 --svg {}", path.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let drawing = std::fs::read_to_string(path).unwrap();
    let drawing = roxmltree::Document::parse(&drawing).unwrap();
    assert_eq!(drawing.root_element().tag_name().name(), "svg");
    assert!(text(&output.stdout).contains("ranks 0-1"), "{output:?}");
}

#[test]
fn the_ranks_of_a_job_are_shown_once_where_they_are() {
    let output = tutti(&format!("run -p 3 -- {} topo --json", env!("CARGO_BIN_EXE_tutti")));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // The launcher puts the rank before each line.
    let lines = text(&output.stdout);
    let lines = lines.lines().map(|line| line.strip_prefix("[0] ").expect("rank 0 speaks"));
    let json: Value = serde_json::from_str(&lines.collect::<String>()).unwrap();
    assert_eq!((&json["source"], &json["ranks"]), (&"ranks".into(), &3.into()));
    assert_eq!(json["hosts"].as_array().unwrap().len(), 1, "{json}");
}

#[test]
fn wrong_arguments_are_2_and_wrong_files_1() {
    for (arguments, status) in [
        ("topo -p 0", 2),
        ("topo --json --toml", 2),
        ("topo --fabric /nowhere/pod.toml", 1),
        ("topo --svg /nowhere/drawing.svg", 1),
    ] {
        let output = tutti(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {output:?}");
    }
}
