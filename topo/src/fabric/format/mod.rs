//! The file format `fabric/1`, described at [`Fabric::from_toml`](super::Fabric::from_toml).

mod error;
mod links;
mod read;
mod section;
mod write;

pub use error::{FabricError, FabricErrorKind};

#[cfg(test)]
mod tests;
