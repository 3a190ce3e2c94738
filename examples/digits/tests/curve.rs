//! One to four ranks, as processes, reach the same loss curve and the same weights.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use tutti::Rendezvous;

/// One epoch as `--json` prints it.
#[derive(Debug)]
struct Epoch {
    loss: f64,
    accuracy: f64,
}

fn field(line: &str, name: &str) -> f64 {
    let rest = line.split_once(&format!("\"{name}\":")).expect(line).1;
    let end = rest.find([',', '}']).expect(line);
    rest[..end].parse().expect(line)
}

/// The curve that rank 0 prints, and what it says at the end.
fn train(size: u32) -> (Vec<Epoch>, String) {
    let rendezvous = Rendezvous::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let start = |rank: u32| -> Child {
        Command::new(env!("CARGO_BIN_EXE_digits"))
            .arg("--json")
            .env("TUTTI_ID", rendezvous.id().to_string())
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", size.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ranks: Vec<Child> = (0..size).map(start).collect();
    let outputs: Vec<_> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let lines = String::from_utf8(outputs[0].stdout.clone()).unwrap();
    let epoch = |line| Epoch { loss: field(line, "loss"), accuracy: field(line, "accuracy") };
    (lines.lines().map(epoch).collect(), String::from_utf8(outputs[0].stderr.clone()).unwrap())
}

#[test]
fn one_to_four_ranks_reach_the_same_curve_and_identical_weights() {
    let (alone, _) = train(1);
    assert!(alone.last().unwrap().accuracy >= 0.95, "{alone:?}");
    for size in [2, 3, 4] {
        let (curve, summary) = train(size);
        assert_eq!(curve.len(), alone.len());
        for (ours, theirs) in curve.iter().zip(&alone) {
            assert!((ours.loss - theirs.loss).abs() <= 1e-5, "{size} ranks: {ours:?}, {theirs:?}");
        }
        assert!(curve.last().unwrap().accuracy >= 0.95, "{size} ranks: {curve:?}");
        assert!(summary.contains("weights identical on all ranks: yes"), "{summary}");
    }
}
