//! What the machine can do at best: the bounds that no collective on it can pass.

mod copy;
mod lines;
mod peer;

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use anyhow::Result;
use serde::Serialize;

pub(crate) use peer::peer;

/// What one machine does, without any collective. None where it takes two cores and there is one.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Limits {
    /// Cores this process may use.
    pub(super) cores: usize,
    /// From the write of a cache line in one process until another has seen it, in microseconds.
    pub(super) cache_line_us: Option<f64>,
    /// 8 bytes one way through loopback TCP between two processes, in microseconds.
    pub(super) tcp_8_bytes_us: f64,
    /// One way through one loopback TCP connection, 10^9 bytes a second.
    pub(super) tcp_gbps: f64,
    /// The size of each buffer that was copied, in bytes: more than the last cache holds.
    pub(super) copy_bytes: usize,
    /// Bytes copied by one core, 10^9 a second; each is read once and written once.
    pub(super) copy_one_core_gbps: f64,
    /// Bytes copied by two cores at once, both together.
    pub(super) copy_two_cores_gbps: Option<f64>,
}

/// Measures the limits. Blocks for a few seconds, and starts one more process for them.
///
/// # Errors
///
/// If the other process cannot be started or breaks off, or there is no memory for the buffers.
pub(super) fn measure() -> Result<Limits> {
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    let between = peer::measure(cores > 1)?;
    let copy_bytes = copy::buffer_bytes();
    Ok(Limits {
        cores,
        cache_line_us: between.cache_line_us,
        tcp_8_bytes_us: between.tcp_8_bytes_us,
        tcp_gbps: between.tcp_gbps,
        copy_bytes,
        copy_one_core_gbps: copy::gbps(1, copy_bytes)?,
        copy_two_cores_gbps: (cores > 1).then(|| copy::gbps(2, copy_bytes)).transpose()?,
    })
}
