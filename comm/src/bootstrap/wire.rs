//! What ranks and hub say to each other: frames of a length and JSON, after the handshake.

use std::io;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::call::Fingerprint;
use crate::cores::Cores;
use crate::error::Cause;

/// The longest frame, in bytes; a longer one ends the line.
const MAX_FRAME: usize = 64 << 20;

/// What a rank tells of itself when it joins; every rank learns every other's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The name of its host, for people.
    pub(crate) host: String,
    /// What tells hosts apart: equal for ranks that may share memory.
    pub(crate) host_key: String,
    /// What tells network stacks apart: ranks on different ones do not reach each other's loopback.
    pub(crate) network: String,
    pub(crate) pid: u32,
    pub(crate) numa_node: u32,
    /// The processors it may use.
    pub(crate) cores: Cores,
    /// Where its TCP transport listens.
    pub(crate) address: std::net::SocketAddr,
    /// The settings that must be equal on all ranks, by name.
    pub(crate) settings: Vec<(String, String)>,
}

/// The last operation a rank has entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The fingerprint; none before the first operation.
    pub(crate) print: Option<[u64; 4]>,
    /// Whether the rank is still in it.
    pub(crate) inside: bool,
}

impl Record {
    pub(crate) fn print(&self) -> Option<Fingerprint> {
        self.print.map(Fingerprint::from_words)
    }
}

/// What a rank cannot solve by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Trouble {
    /// `peer` is in another operation (`theirs`, if it could be read).
    Mismatch { peer: u32, theirs: Option<[u64; 4]> },
    /// `peer` has closed its end of the data path.
    Closed { peer: u32 },
    /// The transport failed.
    Transport { what: String },
    /// Nothing moved for the whole deadline.
    Deadline { after: std::time::Duration, waits_for: Option<u32> },
    /// The caller wants everything to end.
    Abort,
}

/// A communicator, to the hub and the ranks of a job.
pub(crate) type GroupId = u64;

/// The communicator of all ranks that joined.
pub(crate) const WHOLE: GroupId = 0;

/// From a rank to the hub.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHub {
    Join {
        rank: u32,
        size: u32,
        report: Report,
    },
    /// This rank is in the communicator of these ranks (by their ranks in that of all, in the
    /// order of their ranks in this one). The first to say so opens it.
    Open {
        ranks: Vec<u32>,
    },
    /// The answer to [`FromHub::Query`].
    Record(Record),
    /// Nothing has moved for a while; is it a mismatch?
    Stall(Record),
    Trouble {
        record: Record,
        trouble: Trouble,
    },
    /// This rank's part of a control-line exchange; every rank takes part in every round, by the
    /// same call.
    Exchange {
        round: u64,
        call: String,
        blob: Vec<u8>,
    },
    /// This rank has come to a monitored barrier, its `round`-th, and waits for `limit`.
    Barrier {
        round: u64,
        limit: std::time::Duration,
    },
    Leave,
}

/// From the hub to a rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FromHub {
    /// The session is not complete yet.
    Waiting {
        missing: Vec<u32>,
    },
    /// The session cannot be.
    Refused(String),
    /// All have joined: their reports by rank.
    Welcome {
        session: u64,
        reports: Vec<Report>,
    },
    Query,
    Exchanged {
        round: u64,
        blobs: Vec<Vec<u8>>,
    },
    /// A monitored barrier is over: all have come, or these had not after so long.
    Barrier {
        round: u64,
        missing: Vec<u32>,
        after: std::time::Duration,
    },
    /// The communicator has failed, for this cause, on all ranks.
    Verdict(Cause),
    /// The rank in whose process the hub is has closed all its communicators: if the line ends now,
    /// that is no fault, and what is under way goes on without a hub.
    Closing,
}

/// A message about a communicator as a frame.
pub(crate) fn encode(group: GroupId, message: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(&(group, message)).expect("plain data becomes JSON");
    let len = u32::try_from(json.len()).expect("no message is near 4 GiB");
    [&len.to_le_bytes()[..], &json].concat()
}

/// Bytes that have arrived on a line, cut into frames.
#[derive(Default)]
pub(crate) struct Inbox(Vec<u8>);

impl Inbox {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole message, and which communicator it is about.
    ///
    /// # Errors
    ///
    /// If the frame is too long or is no message of this protocol.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<(GroupId, T)>> {
        let Some((len, rest)) = self.0.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        if len > MAX_FRAME {
            return Err(io::Error::other(format!(
                "a frame of {len} bytes, over the limit of {MAX_FRAME}"
            )));
        }
        let Some(json) = rest.get(..len) else { return Ok(None) };
        let message = serde_json::from_slice(json)?;
        self.0.drain(..4 + len);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_however_they_are_cut() {
        let blob = vec![1, 2, 255];
        let messages = [ToHub::Leave, ToHub::Exchange { round: 3, call: "split".into(), blob }];
        let messages = [WHOLE, u64::MAX].into_iter().zip(messages).collect::<Vec<_>>();
        let bytes = messages.iter().flat_map(|(g, m)| encode(*g, m)).collect::<Vec<u8>>();
        for cut in 1..bytes.len() {
            let mut inbox = Inbox::default();
            let mut got = Vec::new();
            for piece in bytes.chunks(cut) {
                inbox.add(piece);
                while let Some(message) = inbox.next::<ToHub>().unwrap() {
                    got.push(format!("{message:?}"));
                }
            }
            assert_eq!(got, messages.iter().map(|m| format!("{m:?}")).collect::<Vec<_>>());
        }
    }

    #[test]
    fn too_long_a_frame_and_nonsense_are_errors() {
        let mut inbox = Inbox::default();
        inbox.add(&u32::MAX.to_le_bytes());
        assert!(inbox.next::<ToHub>().is_err());
        let mut inbox = Inbox::default();
        inbox.add(&[3, 0, 0, 0, b'a', b'b', b'c']);
        assert!(inbox.next::<ToHub>().is_err());
    }
}
