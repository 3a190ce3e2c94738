//! Grids of processes, of every form that few ranks have, end with the weights of a single one.

use std::net::Ipv4Addr;
use std::process::{Command, Output, Stdio};

use tutti::Rendezvous;

/// What each rank of a job said.
fn train(ranks: u32, grid: [u32; 2]) -> Vec<Output> {
    let rendezvous = Rendezvous::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let start = |rank: u32| {
        Command::new(env!("CARGO_BIN_EXE_grid"))
            .args(grid.map(|side| side.to_string()))
            .env("TUTTI_ID", rendezvous.id().to_string())
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", ranks.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let ranks: Vec<_> = (0..ranks).map(start).collect();
    ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect()
}

#[test]
fn every_form_of_a_grid_ends_with_the_weights_of_one_rank() {
    for [rows, columns] in [[1, 1], [1, 3], [3, 1], [2, 2], [2, 3]] {
        let outputs = train(rows * columns, [columns, rows]);
        for output in &outputs {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let said = String::from_utf8(outputs[0].stdout.clone()).unwrap();
        assert!(said.contains("weights as on one rank: yes"), "{said}");
        let loss = said.split_once("loss ").unwrap().1.lines().next().unwrap();
        assert!(loss.parse::<f32>().unwrap() < 0.01, "{said}");
    }
}

#[test]
fn a_grid_of_another_size_is_refused_with_both_sizes() {
    for output in train(3, [2, 2]) {
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("2 x 2 needs 4 ranks, there are 3"), "{said}");
    }
}
