//! Tutti: collective communication between the ranks of a job, over shared memory and TCP, along
//! plans made from what is known of the cluster.
//!
//! A program makes a [`Communicator`], mostly by [`Communicator::from_env`], and calls the
//! collectives on it. Every rank makes the same calls in the same order; what goes wrong is an
//! [`Error`] that names operation, rank, peer, host and what to do next, the same on all ranks.
#![deny(unsafe_code)]

mod bootstrap;
mod call;
mod cgroup;
mod collectives;
mod communicator;
mod config;
mod cores;
mod data_type;
mod engine;
mod error;
mod executor;
pub mod fold;
mod fused;
mod groups;
mod host;
mod interfaces;
mod launch;
mod layout;
mod links;
pub mod machine;
mod message;
mod point_operation;
mod points;
mod ports;
mod program;
mod reduction;
mod request;
mod running;
mod service;
mod stage;
mod start;
mod wait;
mod work;

pub use bootstrap::{AbortHandle, Rendezvous, Store, UniqueId};
pub use call::Call;
pub use communicator::Communicator;
pub use config::{Config, TransportChoice};
pub use data_type::{Bool, Complex64, Complex128, DataType, Element, Fp8E4M3, Fp8E5M2};
pub use error::{Cause, Error, ErrorKind, Member};
pub use interfaces::InterfaceFilter;
pub use launch::Launch;
pub use message::Envelope;
pub use points::{IncomingWork, Point};
pub use ports::PortRange;
pub use reduction::Reduction;
pub use request::{Counts, Request};
pub use tutti_topo::Rank;
pub use tutti_topo::schedule::Collective;
pub use work::Work;
