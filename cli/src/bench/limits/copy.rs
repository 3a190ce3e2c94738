//! How fast cores copy memory that no cache holds.

use std::fs;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

/// How often the buffers are copied; the fastest counts.
const ROUNDS: usize = 8;
/// What is copied where the system does not tell its caches, in bytes.
const UNKNOWN_CACHE: usize = 64 << 20;

/// What `cores` threads copy at once, each between buffers of its own: 10^9 bytes a second, all
/// together, in the fastest of several rounds.
///
/// # Errors
///
/// If there is no memory for the buffers.
pub(super) fn gbps(cores: usize, buffer_bytes: usize) -> Result<f64> {
    let mut buffers = Vec::new();
    for _ in 0..cores {
        buffers.push((touched(buffer_bytes)?, touched(buffer_bytes)?));
    }
    let gate = Barrier::new(cores);
    let times = thread::scope(|scope| {
        let copy = |(from, mut to): (Vec<u8>, Vec<u8>)| {
            let gate = &gate;
            scope.spawn(move || (0..ROUNDS).map(|_| round(gate, &from, &mut to)).collect())
        };
        let threads: Vec<_> = buffers.into_iter().map(copy).collect();
        threads.into_iter().map(|thread| thread.join().expect("copying does not panic")).collect()
    });
    Ok((cores * buffer_bytes) as f64 / fastest(times) / 1e9)
}

/// The seconds of one copy, from when all are ready until all have finished.
fn round(gate: &Barrier, from: &[u8], to: &mut [u8]) -> f64 {
    gate.wait();
    let start = Instant::now();
    black_box(&mut *to).copy_from_slice(black_box(from));
    gate.wait();
    start.elapsed().as_secs_f64()
}

/// The time of the fastest round; a round takes as long as on its slowest thread.
fn fastest(times: Vec<Vec<f64>>) -> f64 {
    let of_round = |round: usize| times.iter().map(|times| times[round]).fold(0.0, f64::max);
    (0..ROUNDS).map(of_round).fold(f64::INFINITY, f64::min)
}

fn touched(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    let no_room = || format!("there is no memory for {bytes} bytes");
    buffer.try_reserve_exact(bytes).with_context(no_room)?;
    buffer.resize(bytes, 1);
    Ok(buffer)
}

/// Twice the last cache of the first core, within reason.
pub(super) fn buffer_bytes() -> usize {
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        parse_cache_size(&fs::read_to_string(path).ok()?)
    };
    let largest = (0..8).filter_map(size).max().unwrap_or(UNKNOWN_CACHE / 2);
    (2 * largest).clamp(UNKNOWN_CACHE, 8 * UNKNOWN_CACHE)
}

/// `32768K`, as the system writes it.
fn parse_cache_size(text: &str) -> Option<usize> {
    let text = text.trim();
    match text.strip_suffix('K') {
        Some(kilobytes) => kilobytes.parse::<usize>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_are_read_as_the_system_writes_them() {
        assert_eq!(parse_cache_size("32768K\n"), Some(32 << 20));
        assert_eq!(parse_cache_size("512\n"), Some(512));
        assert_eq!(parse_cache_size("big"), None);
    }

    #[test]
    fn copying_has_a_speed() {
        let speed = gbps(2, 1 << 16).unwrap();
        assert!(speed.is_finite() && speed > 0.0, "{speed}");
    }

    #[test]
    fn the_fastest_round_is_that_of_its_slowest_thread() {
        let mut times = vec![vec![9.0; ROUNDS], vec![9.0; ROUNDS]];
        (times[0][3], times[1][3]) = (2.0, 5.0);
        assert_eq!(fastest(times), 5.0);
    }
}
