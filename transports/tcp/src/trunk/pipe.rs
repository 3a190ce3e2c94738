//! One shared connection, and a channel's lane on it.

use std::collections::HashMap;

use super::frame;

/// A connection, as far as frames go.
#[derive(Default)]
pub(super) struct Pipe {
    /// What was begun or is to be said, and the socket has not taken: first the rest of a frame.
    out: Vec<u8>,
    sent: usize,
    rest: Option<Rest>,
    /// The frame of which bytes are coming.
    pub(super) incoming: Option<Incoming>,
    /// By channel.
    pub(super) lanes: HashMap<u64, Lane>,
}

/// The part of a data frame that the socket has not taken.
struct Rest {
    channel: u64,
    /// Bytes of its head, then of its data.
    head: usize,
    data: usize,
}

pub(super) struct Incoming {
    pub(super) channel: u64,
    pub(super) left: usize,
}

/// What one channel has on one connection.
pub(super) struct Lane {
    /// What has arrived and the channel has not taken over.
    pub(super) inbox: Vec<u8>,
    /// How much more may arrive before this end gives credit.
    pub(super) due: usize,
    /// How much this end may send.
    pub(super) credit: usize,
    /// Bytes that have left, of which the channel's user does not know yet that they were taken.
    pub(super) owed: usize,
    /// The channel's last send took less than it was offered.
    pub(super) refused: bool,
    /// The other end has closed the channel.
    pub(super) closed: bool,
}

impl Lane {
    pub(super) fn new(window: usize) -> Lane {
        let (due, credit) = (window, window);
        Lane { inbox: Vec::new(), due, credit, owed: 0, refused: false, closed: false }
    }
}

impl Pipe {
    /// What the socket is to take before anything else.
    pub(super) fn out(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// To be said after what waits already.
    pub(super) fn say(&mut self, head: frame::Head) {
        self.out.extend_from_slice(&head.encode());
    }

    /// Keeps what the socket did not take of a frame: a part of the head, and of the data.
    pub(super) fn keep(&mut self, channel: u64, head: &[u8], data: &[u8]) {
        debug_assert!(self.out().is_empty());
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(data);
        self.rest = Some(Rest { channel, head: head.len(), data: data.len() });
    }

    /// The socket took `len` bytes of `out`; how many of them were a channel's data.
    pub(super) fn took(&mut self, len: usize) -> Option<(u64, usize)> {
        self.sent += len;
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        let rest = self.rest.as_mut()?;
        let of_head = len.min(rest.head);
        rest.head -= of_head;
        let of_data = (len - of_head).min(rest.data);
        rest.data -= of_data;
        let channel = rest.channel;
        if rest.head + rest.data == 0 {
            self.rest = None;
        }
        Some((channel, of_data))
    }
}
