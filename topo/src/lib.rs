//! What Tutti knows about a cluster and decides from it: the [`fabric`] (hosts, supernodes,
//! links), collective algorithms as [`schedule`]s (lists of steps with a checker that proves
//! them), and the [`plan`] that picks one and says why.
//!
//! Text in, data out: no unsafe code, socket, thread, clock, environment variable or log.
#![forbid(unsafe_code)]

pub mod fabric;
pub mod plan;
mod rank;
pub mod schedule;

pub use rank::Rank;
