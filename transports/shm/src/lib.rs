//! The transport between processes of one host: shared memory, and no system call while both ends
//! are awake.
//!
//! The members of a host share one anonymous segment (a memfd). One of them, the leader, makes it
//! ([`Host::create`]) and hands it over a Unix socket to every other ([`Host::serve`],
//! [`Shm::join`]), once both have proven that they hold the job's secret. The segment holds
//!
//! - a ring of bytes per directed pair of members, mapped twice in a row so that what is in it is
//!   always one slice, and committed when its sender first uses it;
//! - the board: two slots per member, with flag and message in one cache line if the message is
//!   short;
//! - a doorbell per member, by which a member that sleeps is woken.
//!
//! What a peer writes to the segment is checked before use: a ring's indices against its capacity,
//! a message's length against the limit. The bytes themselves are read where they are; a member
//! that overwrites them while they are read can make its peer see any bytes, but members have
//! proven that they belong to the job.
//!
//! Nothing outlives the processes: neither segment nor sockets have a name in a file system.
//! A process that is killed is not noticed here; a [`Shm`] that is dropped is.
//!
//! Absent: files, threads, ranks of a communicator.
//!
//! The index protocols (`ring`, `flags`, `doorbell`) hold no pointers, so that loom can explore
//! them: `RUSTFLAGS="--cfg loom" cargo test -p tutti-shm --release --lib`.

// A loom build has the protocols only: loom's atomics cannot live in shared memory.
#![cfg_attr(loom, allow(dead_code, rustdoc::broken_intra_doc_links))]

mod doorbell;
mod flags;
#[cfg(all(test, loom))]
mod models;
mod ring;
mod sync;

#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod handover;
#[cfg(not(loom))]
mod host;
#[cfg(not(loom))]
mod join;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod members;
#[cfg(not(loom))]
mod pipe;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod shm;
#[cfg(all(test, not(loom)))]
mod testing;
#[cfg(not(loom))]
mod waker;

#[cfg(not(loom))]
pub use {error::Error, host::Host, layout::Options, shm::Shm};
