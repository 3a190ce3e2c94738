//! `tutti bench` from outside: what it prints, what it checks, how it ends.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.arg("bench").args(arguments.split_whitespace());
    command.output().unwrap()
}

/// Runs to success and reads the JSON from standard output.
fn json(arguments: &str) -> Value {
    let output = bench(&format!("{arguments} --json"));
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn rows(json: &Value) -> &Vec<Value> {
    json["rows"].as_array().unwrap()
}

#[test]
fn json_describes_the_run_and_every_row() {
    let json = json("all_reduce -p 4 -b 8 -e 4K -f 8 -n 5 -w 1");
    assert_eq!((&json["tool"], &json["collective"]), (&"tutti".into(), &"all_reduce".into()));
    assert_eq!((&json["ranks"], &json["hosts"]), (&4.into(), &1.into()));
    assert_eq!((&json["dtype"], &json["op"]), (&"fp32".into(), &"sum".into()));
    let bytes: Vec<u64> = rows(&json).iter().map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [8, 64, 512, 4096]);
    for row in rows(&json) {
        assert_eq!(row["check"], "ok");
        assert_eq!(row["count"].as_u64().unwrap() * 4, row["bytes"].as_u64().unwrap());
        assert!(row["min_us"].as_f64().unwrap() > 0.0);
        assert!(row["median_us"].as_f64() <= row["p95_us"].as_f64());
        assert!(row["busbw_gbps"].as_f64() >= row["algbw_gbps"].as_f64());
    }
}

#[test]
fn json_in_a_file_leaves_the_table_on_standard_output() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let output = bench(&format!("all_reduce -p 2 -e 16 -n 2 --json {path}"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("algbw"));
    let json: Value = serde_json::from_reader(file).unwrap();
    assert_eq!(rows(&json).len(), 2);
}

#[test]
fn a_corrupted_result_fails_and_names_the_rank() {
    for check in [1, 2] {
        let output = bench(&format!("all_reduce -p 4 -b 64 -e 64 -n 2 -c {check} --corrupt 3"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stdout).contains("failed"), "{output:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("rank 3: element 8 is "), "{stderr}");
        assert!(stderr.contains(", expected "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn every_type_and_reduction_passes_the_check() {
    for data_type in ["fp32", "fp64", "fp16", "bf16", "int8", "int32", "int64", "uint8"] {
        for op in ["sum", "prod", "min", "max", "avg"] {
            let json = json(&format!(
                "all_reduce -p 3 -b 0 -e 20K -f 100 -n 2 -w 0 -d {data_type} -o {op}"
            ));
            for row in rows(&json) {
                assert_eq!(row["check"], "ok", "{data_type} {op}: {row}");
            }
            assert_eq!(rows(&json)[0]["count"], 0);
        }
    }
}

#[test]
fn broadcast_and_barrier_are_checked_too() {
    let broadcast = json("broadcast -p 3 -r 2 -b 4 -e 64K -f 64 -n 3 -c 2");
    assert!(rows(&broadcast).iter().all(|row| row["check"] == "ok"), "{broadcast}");
    assert_eq!(broadcast["op"], Value::Null);
    let barrier = json("barrier -p 3 -n 50");
    assert_eq!(rows(&barrier).len(), 1);
    assert_eq!(rows(&barrier)[0]["check"], "ok");
}

#[test]
fn one_rank_alone_is_a_group() {
    let json = json("all_reduce -p 1 -e 64 -n 2");
    assert!(rows(&json).iter().all(|row| row["check"] == "ok" && row["busbw_gbps"] == 0.0));
}

#[test]
fn hccl_form_has_its_head_and_success() {
    let output = bench("all_reduce -p 2 -b 8 -e 16 -n 2 --format hccl");
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    let head = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:";
    assert_eq!(lines.next(), Some(head));
    assert!(lines.next().unwrap().ends_with("| success"), "{stdout}");
    assert_eq!(lines.count(), 1);
}

#[test]
fn unchecked_rows_say_so() {
    let output = bench("all_reduce -p 2 -b 8 -e 8 -n 2 -c 0 --format csv");
    assert!(text(&output.stdout).trim_end().ends_with(",none"), "{output:?}");
}

#[test]
fn bench_joins_the_ranks_of_a_launcher() {
    let tutti = env!("CARGO_BIN_EXE_tutti");
    let mut command = Command::new(tutti);
    command.args(["run", "-p", "2", tutti, "bench", "all_reduce", "-e", "8", "-n", "2"]);
    let output = command.args(["--format", "csv"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert!(stdout.lines().all(|line| line.starts_with("[0] ")), "{stdout}");
}

#[test]
fn wrong_flags_are_2() {
    for arguments in [
        "",
        "gather_all",
        "all_reduce -d complex64 -o min",
        "all_reduce -o xor",
        "all_reduce -b 1X",
        "all_reduce -b 16 -e 8",
        "all_reduce -p 2 -r 2",
        "all_reduce -n 0",
        "all_reduce --algo no_such_algorithm",
        "all_reduce --no-such-flag",
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {output:?}");
        assert!(!output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_one_error() {
    let output = bench("all_reduce -p 2 -e 8 -n 1 --json /no/such/folder/file.json");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: cannot write /no/such/folder/file.json"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn an_error_of_the_library_is_told_once() {
    let output = bench("all_reduce -p 2 -e 8 -n 1 --algo fused --transport tcp");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: ") && stderr.contains("fused"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn settings_of_the_environment_hold_and_flags_come_first() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.env("TUTTI_ALGO", "all_reduce:ring").env("TUTTI_TRANSPORT", "tcp");
    command.args(["bench", "all_reduce", "-p", "2", "-e", "8", "-n", "1", "--format", "csv"]);
    let stdout = text(&command.output().unwrap().stdout);
    assert!(stdout.contains(",ring,tcp,"), "{stdout}");
    command.args(["--algo", "flat", "--transport", "shm"]);
    let stdout = text(&command.output().unwrap().stdout);
    assert!(stdout.contains(",flat,shm,"), "{stdout}");
}

#[test]
fn limits_are_measured_between_processes() {
    let output = bench("limits --json");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    for figure in ["tcp_8_bytes_us", "tcp_gbps", "copy_one_core_gbps"] {
        assert!(json["limits"][figure].as_f64().unwrap() > 0.0, "{json}");
    }
}
