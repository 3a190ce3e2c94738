//! What two processes exchange at best: a cache line, and bytes through loopback TCP.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::lines::Lines;

/// Every exchange is measured this often; the fastest counts.
const BATCHES: u32 = 10;
/// Round trips per batch.
const LINE_ROUNDS: u32 = 10_000;
const TCP_ROUNDS: u32 = 1_000;
/// Bytes through TCP per batch, and in one write.
const STREAM: usize = 128 << 20;
const PIECE: usize = 1 << 20;
/// How long one process waits for the other's bytes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was measured between two processes.
pub(super) struct Between {
    pub(super) cache_line_us: Option<f64>,
    pub(super) tcp_8_bytes_us: f64,
    pub(super) tcp_gbps: f64,
}

/// Starts this program again as the other process and measures against it, the cache line only
/// if `two_cores` can poll at once.
pub(super) fn measure(two_cores: bool) -> Result<Between> {
    let memory = Lines::memory()?;
    let lines = Lines::map(&memory)?;
    let (mut stream, theirs) = connection().context("cannot connect to ourselves")?;
    let mut peer = Peer::start(theirs, memory)?;

    stream.write_all(&[u8::from(two_cores)])?;
    let lines = if two_cores { Some(fastest(|batch| lines.serve(values(batch)))?) } else { None };
    let tcp = fastest(|_| serve_tcp(&mut stream))?;
    let streaming = fastest(|_| send_stream(&mut stream))?;
    peer.finish()?;
    Ok(Between {
        cache_line_us: lines.map(|time| one_way_us(time, LINE_ROUNDS)),
        tcp_8_bytes_us: one_way_us(tcp, TCP_ROUNDS),
        tcp_gbps: STREAM as f64 / streaming.as_secs_f64() / 1e9,
    })
}

fn one_way_us(time: Duration, round_trips: u32) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(round_trips) / 2.0
}

/// What is written to the lines in one batch.
fn values(batch: u32) -> Range<u64> {
    let first = u64::from(batch * LINE_ROUNDS) + 1;
    first..first + u64::from(LINE_ROUNDS)
}

/// The other process: its standard input is the connection, its standard output the memory.
pub(crate) fn peer() -> Result<()> {
    let started = "this command is started by `tutti bench limits`";
    let descriptor = io::stdin().as_fd().try_clone_to_owned()?;
    let mut stream = patient(TcpStream::from(descriptor)).context(started)?;
    let lines = Lines::map(io::stdout()).context(started)?;

    let mut two_cores = [0];
    stream.read_exact(&mut two_cores)?;
    if two_cores != [0] {
        (0..BATCHES).try_for_each(|batch| lines.answer(values(batch)))?;
    }
    for _ in 0..BATCHES * TCP_ROUNDS {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)?;
    }
    let mut piece = vec![0; PIECE];
    for _ in 0..BATCHES {
        (0..STREAM / PIECE).try_for_each(|_| stream.read_exact(&mut piece))?;
        stream.write_all(&[1])?;
    }
    Ok(())
}

/// Both ends of a loopback connection that nobody else can have opened.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (theirs, from) = listener.accept()?;
        if from == ours.local_addr()? {
            return Ok((patient(ours)?, theirs));
        }
    }
}

/// Without delays of the system's making, and with a limit to waiting.
fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn serve_tcp(stream: &mut TcpStream) -> Result<()> {
    let mut bytes = [7; 8];
    for _ in 0..TCP_ROUNDS {
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
    }
    Ok(())
}

/// Sends everything and waits for the word that it has arrived.
fn send_stream(stream: &mut TcpStream) -> Result<()> {
    let piece = vec![1; PIECE];
    for _ in 0..STREAM / PIECE {
        stream.write_all(&piece)?;
    }
    stream.read_exact(&mut [0])?;
    Ok(())
}

/// The time of the fastest batch.
fn fastest(mut batch: impl FnMut(u32) -> Result<()>) -> Result<Duration> {
    let mut fastest = Duration::MAX;
    for number in 0..BATCHES {
        let start = Instant::now();
        batch(number).context("the second process of `bench limits` broke off")?;
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

/// The other process, which ends when this is dropped.
struct Peer(Child);

impl Peer {
    fn start(connection: TcpStream, memory: OwnedFd) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the tutti program itself")?;
        let child = Command::new(program)
            .arg("limits-peer")
            .stdin(Stdio::from(OwnedFd::from(connection)))
            .stdout(Stdio::from(memory))
            .spawn();
        child.map(Peer).context("cannot start a second process")
    }

    fn finish(&mut self) -> Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the second process of `bench limits` failed: {status}");
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only if it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
