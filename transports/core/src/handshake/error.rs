use std::io;

/// Why a handshake failed. The same variant is seen on both sides wherever a side still can be
/// told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The first bytes are not those of Tutti: a stray connection or a port scan.
    #[error("the other side does not speak Tutti's protocol")]
    NotOurs,
    /// The two sides were built from versions that do not understand each other.
    #[error(
        "this is build {our_build} with protocol {ours}, the other side is build {their_build} \
         with protocol {theirs}"
    )]
    Version {
        /// This side's protocol version.
        ours: u32,
        /// This side's build.
        our_build: String,
        /// The other side's protocol version.
        theirs: u32,
        /// The other side's build.
        their_build: String,
    },
    /// The other side belongs to another session: another job, or an earlier life of this one.
    #[error("the other side belongs to another session")]
    WrongSession,
    /// The side that was reached does not have the number that was asked for.
    #[error("the side that was reached has another number than the one asked for")]
    WrongNumber,
    /// The other side does not hold this job's secret.
    #[error("the other side does not hold this job's secret")]
    WrongSecret,
    /// The other side closed the connection before the handshake was over.
    #[error("the other side closed the connection during the handshake")]
    Closed,
    /// The other side answered with a status that this protocol version does not have.
    #[error("the other side answered with the unknown status {0}")]
    UnknownStatus(u32),
    /// The system refused to read, to write, or to give random bytes.
    #[error("the system gave no random bytes, or failed the connection")]
    Io(#[source] io::Error),
}
