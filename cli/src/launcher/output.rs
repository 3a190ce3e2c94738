//! What the ranks write, and who gets to see it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use super::Output;
use super::outcome::{End, Outcome};
use crate::coloured;

/// The longest piece that is passed on as one line, in bytes.
const MAX_LINE: u64 = 64 << 10;
/// How much is kept of the errors of a rank that nobody sees yet, in bytes.
const MAX_KEPT: u64 = 64 << 10;
/// How long a process that outlived its rank may hold up the end by keeping the output open.
const TO_CLOSE: Duration = Duration::from_secs(1);

/// The outputs of all ranks of a job.
pub(super) struct Outputs {
    mode: Output,
    kept: Vec<(u32, Arc<Mutex<Vec<u8>>>)>,
    /// Every copying thread holds a sender and sends nothing: the channel closes with the last.
    open: mpsc::Sender<()>,
    closed: mpsc::Receiver<()>,
}

impl Outputs {
    pub(super) fn new(mode: Output) -> Self {
        let (open, closed) = mpsc::channel();
        Outputs { mode, kept: Vec::new(), open, closed }
    }

    /// Says where the rank's process is to write, before it is started.
    pub(super) fn prepare(&self, command: &mut Command, rank: u32) {
        match (self.mode, rank) {
            (Output::Prefixed, _) => command.stdout(Stdio::piped()).stderr(Stdio::piped()),
            (Output::FirstRank, 0) => command.stdout(Stdio::inherit()).stderr(Stdio::inherit()),
            (Output::FirstRank, _) => command.stdout(Stdio::null()).stderr(Stdio::piped()),
        };
    }

    /// Starts to read what the process writes.
    pub(super) fn attach(&mut self, child: &mut Child, rank: u32) {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        if self.mode == Output::FirstRank {
            if let Some(err) = err {
                let kept = Arc::default();
                self.kept.push((rank, Arc::clone(&kept)));
                self.copy(move || keep(err, &kept));
            }
            return;
        }
        if let Some(out) = out {
            let prefix = Prefix::new(rank, coloured(&io::stdout()));
            self.copy(move || prefix.copy(BufReader::new(out), || io::stdout().lock()));
        }
        if let Some(err) = err {
            let prefix = Prefix::new(rank, coloured(&io::stderr()));
            self.copy(move || prefix.copy(BufReader::new(err), || io::stderr().lock()));
        }
    }

    /// Runs `copy` on a thread. If it fails, the reader's end of the pipe closes, and the rank
    /// learns that nobody reads what it writes.
    fn copy(&self, copy: impl FnOnce() -> io::Result<()> + Send + 'static) {
        let open = self.open.clone();
        thread::spawn(move || {
            let _ = copy();
            drop(open);
        });
    }

    /// Waits until everything written is passed on, then says what is left to say on standard
    /// error: the launcher's line, and what was kept of ranks whose failure nobody reported.
    pub(super) fn finish(self, outcome: &Outcome) {
        drop(self.open);
        // Either all threads are done, or the wait was long enough.
        let _ = self.closed.recv_timeout(TO_CLOSE);
        let unreported: Vec<&End> = match self.mode {
            Output::Prefixed => outcome.failures().collect(),
            Output::FirstRank => unreported(outcome),
        };
        for (rank, kept) in &self.kept {
            if unreported.iter().any(|end| end.rank == *rank) {
                let kept = kept.lock().unwrap_or_else(|broken| broken.into_inner());
                let prefix = Prefix::new(*rank, coloured(&io::stderr()));
                let _ = prefix.copy(kept.as_slice(), || io::stderr().lock());
            }
        }
        if let Some(line) = outcome.line()
            && (outcome.interrupted.is_some() || !unreported.is_empty())
        {
            eprintln!("tutti: {line}");
        }
    }
}

/// The ranks whose failure rank 0 has not told of. A program that ends with status 1 or 2 has
/// said why, and all that say something say the same: rank 0 if it does, else the first.
fn unreported(outcome: &Outcome) -> Vec<&End> {
    let (spoke, silent): (Vec<&End>, Vec<&End>) =
        outcome.failures().partition(|end| matches!(end.code(), 1 | 2));
    let first = spoke.first().filter(|_| spoke.iter().all(|end| end.rank != 0));
    silent.into_iter().chain(first.copied()).collect()
}

/// Keeps the first bytes and reads the rest.
fn keep(mut from: impl Read, kept: &Mutex<Vec<u8>>) -> io::Result<()> {
    let mut bytes = Vec::new();
    from.by_ref().take(MAX_KEPT).read_to_end(&mut bytes)?;
    *kept.lock().unwrap_or_else(|broken| broken.into_inner()) = bytes;
    io::copy(&mut from, &mut io::sink()).map(drop)
}

/// What stands before each line of a rank.
struct Prefix(String);

impl Prefix {
    fn new(rank: u32, coloured: bool) -> Self {
        // They show on dark and on light ground.
        const COLOURS: [u8; 6] = [36, 32, 33, 35, 34, 31];
        if coloured {
            let colour = COLOURS[rank as usize % COLOURS.len()];
            Prefix(format!("\x1b[{colour}m[{rank}]\x1b[0m "))
        } else {
            Prefix(format!("[{rank}] "))
        }
    }

    /// Copies line by line until the end. Each line is one write, with a line end added to the
    /// last where it has none; a line that is too long is passed on in pieces.
    fn copy<W: Write>(&self, mut from: impl BufRead, to: impl Fn() -> W) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            line.extend_from_slice(self.0.as_bytes());
            if from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            let mut to = to();
            to.write_all(&line)?;
            to.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    /// What a reader of the terminal gets, one entry per write.
    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn copied(prefix: &Prefix, text: &[u8]) -> Vec<Vec<u8>> {
        let writes = Writes::default();
        prefix.copy(text, || writes.clone()).unwrap();
        writes.0.lock().unwrap().clone()
    }

    #[test]
    fn a_failure_that_all_ranks_tell_of_is_told_once() {
        let end = |rank, code: i32| End {
            rank,
            status: Ok(ExitStatus::from_raw(code << 8)),
            asked: false,
        };
        let told = |ends: Vec<End>| {
            let outcome = Outcome { ends, interrupted: None };
            unreported(&outcome).iter().map(|end| end.rank).collect::<Vec<u32>>()
        };
        assert_eq!(told(vec![end(2, 1), end(0, 1), end(1, 1)]), [0; 0]);
        assert_eq!(told(vec![end(0, 101), end(2, 1), end(1, 1)]), [0, 2]);
        assert_eq!(told(vec![end(3, 101), end(0, 1), end(1, 1)]), [3]);
        assert_eq!(told(vec![end(0, 0), end(2, 1)]), [2]);
    }

    #[test]
    fn each_line_is_one_write_behind_the_rank() {
        let writes = copied(&Prefix::new(3, false), b"one\n\ntwo\xff");
        assert_eq!(writes, [&b"[3] one\n"[..], b"[3] \n", b"[3] two\xff\n"]);
    }

    #[test]
    fn an_endless_line_comes_in_pieces() {
        let text = vec![b'x'; MAX_LINE as usize + 1];
        let writes = copied(&Prefix::new(0, false), &text);
        assert_eq!(writes.len(), 2);
        assert_eq!(writes[1], b"[0] x\n");
    }

    #[test]
    fn colour_ends_before_the_text() {
        let writes = copied(&Prefix::new(7, true), b"a\n");
        assert_eq!(writes, [b"\x1b[32m[7]\x1b[0m a\n"]);
    }

    #[test]
    fn a_noisy_rank_is_kept_up_to_a_limit_and_drained() {
        let mut noise = io::repeat(b'n').take(3 * MAX_KEPT);
        let kept = Mutex::default();
        keep(&mut noise, &kept).unwrap();
        assert_eq!(kept.lock().unwrap().len() as u64, MAX_KEPT);
        assert_eq!(noise.limit(), 0);
    }
}
