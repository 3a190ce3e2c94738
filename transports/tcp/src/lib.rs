//! The TCP transport of Tutti: one connection per pair of peers, made on first use.
//!
//! A [`Listener`] is bound first, so that its address can be told to the others; with their
//! addresses it becomes a [`Tcp`]. The peer with the higher number connects, the lower accepts.
//! Every connection begins with the [handshake](tutti_transport::handshake), so a stray one never
//! reaches a byte of payload.
//!
//! Where a process is in many groups, a [`Trunk`] has one connection per pair of processes for all
//! of them, and a [`Channel`] is the transport of one group.
//!
//! Absent: name resolution, threads, retries of a stream that broke.

#![forbid(unsafe_code)]

mod buffer;
mod dial;
mod job;
mod listener;
mod net;
mod strangers;
mod stream;
mod tcp;
#[cfg(test)]
mod tests;
mod timer;
mod trunk;

pub use job::Options;
pub use listener::Listener;
pub use tcp::Tcp;
pub use trunk::{Channel, Trunk};
