//! The messages. `Hello` and `Challenge` keep their size, and magic, version and build their
//! place, in all versions of the protocol: any two versions can tell each other what they are.

use std::mem::offset_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::HandshakeError;

/// The version of everything two processes of a job say to each other.
pub(super) const PROTOCOL: u32 = 1;
pub(super) const MAGIC: [u8; 8] = *b"\xf3TUTTI\r\n";

// What a proof proves; of one length, so that label and transcript cannot blend.
pub(super) const ACCEPTOR: &[u8; 24] = b"tutti handshake acceptor";
pub(super) const CONNECTOR: &[u8; 24] = b"tutti handshake connects";

/// The bytes that the proofs cover: `Hello`, and `Challenge` up to its proof.
pub(super) const TRANSCRIPT: usize = size_of::<Hello>() + offset_of!(Challenge, proof);

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Hello {
    pub magic: [u8; 8],
    pub version: U32,
    pub build: [u8; 16],
    pub session: U64,
    pub from: U32,
    pub to: U32,
    pub nonce: [u8; 32],
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Challenge {
    pub magic: [u8; 8],
    pub version: U32,
    pub build: [u8; 16],
    pub status: U32,
    pub from: U32,
    pub nonce: [u8; 32],
    pub proof: [u8; 32],
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Proof {
    pub proof: [u8; 32],
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Verdict {
    pub status: U32,
}

/// What the acceptor thinks of the connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Welcome,
    WrongVersion,
    WrongSession,
    WrongNumber,
    WrongSecret,
    Unknown(u32),
}

impl Status {
    pub(super) fn of(code: u32) -> Status {
        use Status::*;
        [Welcome, WrongVersion, WrongSession, WrongNumber, WrongSecret]
            .into_iter()
            .find(|status| status.code() == code)
            .unwrap_or(Unknown(code))
    }

    pub(super) fn code(self) -> u32 {
        match self {
            Status::Welcome => 0,
            Status::WrongVersion => 1,
            Status::WrongSession => 2,
            Status::WrongNumber => 3,
            Status::WrongSecret => 4,
            Status::Unknown(code) => code,
        }
    }

    pub(super) fn check(self) -> Result<(), HandshakeError> {
        match self {
            Status::Welcome => Ok(()),
            Status::WrongSession => Err(HandshakeError::WrongSession),
            Status::WrongNumber => Err(HandshakeError::WrongNumber),
            Status::WrongSecret => Err(HandshakeError::WrongSecret),
            // The version field itself said otherwise, or this would not have been looked at.
            Status::WrongVersion => Err(HandshakeError::UnknownStatus(self.code())),
            Status::Unknown(code) => Err(HandshakeError::UnknownStatus(code)),
        }
    }
}

pub(super) fn check_version(version: U32, build: &[u8; 16]) -> Result<(), HandshakeError> {
    if version.get() == PROTOCOL {
        return Ok(());
    }
    Err(HandshakeError::Version {
        ours: PROTOCOL,
        our_build: show(&self::build()),
        theirs: version.get(),
        their_build: show(build),
    })
}

/// This build: the crate's version, cut or padded with zeros.
pub(super) fn build() -> [u8; 16] {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let mut build = [0; 16];
    let len = version.len().min(build.len());
    build[..len].copy_from_slice(&version[..len]);
    build
}

/// A build as text; a stranger's bytes that are not plain letters become `?`.
fn show(build: &[u8; 16]) -> String {
    let text = build.iter().take_while(|&&byte| byte != 0);
    text.map(|&byte| if byte.is_ascii_graphic() { byte as char } else { '?' }).collect()
}
