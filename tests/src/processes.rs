//! Ranks as processes of their own.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use tutti::Rendezvous;

use crate::ranks;

/// The ranks of a job; killed when this is dropped, so that no test leaves one behind.
pub struct Processes {
    _rendezvous: Rendezvous,
    children: Vec<Child>,
}

impl Processes {
    /// Starts `program` as each of `size` ranks, with the variables that `set` gives by rank.
    pub fn start(
        program: &str,
        size: u32,
        args: &[&str],
        set: impl Fn(u32) -> Vec<(&'static str, String)>,
    ) -> Processes {
        let rendezvous = Rendezvous::bind(ranks::loopback()).expect("the loopback has a free port");
        let child = |rank: u32| {
            Command::new(program)
                .args(args)
                .env("TUTTI_ID", rendezvous.id().to_string())
                .env("RANK", rank.to_string())
                .env("WORLD_SIZE", size.to_string())
                .envs(set(rank))
                .stdout(Stdio::piped())
                .spawn()
                .expect("the program is there")
        };
        Processes { children: (0..size).map(child).collect(), _rendezvous: rendezvous }
    }

    /// What a rank prints. To be asked for once.
    pub fn lines(&mut self, rank: usize) -> Lines<BufReader<ChildStdout>> {
        BufReader::new(self.children[rank].stdout.take().expect("asked for once")).lines()
    }

    /// Kills a rank; its process id.
    pub fn kill(&mut self, rank: usize) -> u32 {
        self.children[rank].kill().expect("an own child");
        self.children[rank].id()
    }

    /// Waits until a rank has ended; its exit code, if it ended by itself.
    pub fn exit_code(&mut self, rank: usize) -> Option<i32> {
        self.children[rank].wait().expect("an own child").code()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
