//! One shared connection, and a channel's lane on it.

use std::collections::HashMap;

use tutti_transport::{Error, Peer};

use super::frame::{self, Head};
use super::inner::WINDOW;
use super::ports::Ports;

/// A connection, as far as frames go.
#[derive(Default)]
pub(super) struct Pipe {
    /// What was begun or is to be said, and the socket has not taken: first the rest of a frame.
    out: Vec<u8>,
    sent: usize,
    rest: Option<Rest>,
    /// What has arrived of a head, if it is not whole.
    part_of_head: Vec<u8>,
    /// The frame of which bytes are coming.
    incoming: Option<Incoming>,
    /// What was wrong with what came: nothing that comes after it makes sense.
    wrong: Option<String>,
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

#[derive(Clone, Copy)]
struct Incoming {
    channel: u64,
    left: usize,
}

/// What one channel has on one connection.
pub(super) struct Lane {
    /// What has arrived and the channel has not taken over.
    pub(super) inbox: Inbox,
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
    pub(super) fn new() -> Lane {
        let (due, credit, inbox) = (WINDOW, WINDOW, Inbox::default());
        Lane { inbox, due, credit, owed: 0, refused: false, closed: false }
    }
}

/// What has arrived of a channel while its own thread did not read.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn extend_from_slice(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Moves bytes to the front of `dst`; how many.
    pub(super) fn take(&mut self, dst: &mut [u8]) -> usize {
        let rest = &self.bytes[self.taken..];
        let len = rest.len().min(dst.len());
        dst[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        if self.taken == self.bytes.len() {
            // Its memory too: most groups are used by one thread at a time.
            *self = Inbox::default();
        }
        len
    }
}

/// Who reads, and where to if it is theirs: no need to keep and to wake.
pub(super) struct Reader<'a> {
    channel: Option<u64>,
    pub(super) into: &'a mut [u8],
    pub(super) received: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(channel: u64, into: &'a mut [u8]) -> Reader<'a> {
        Reader { channel: Some(channel), into, received: 0 }
    }

    /// On behalf of all.
    pub(super) fn nobody() -> Reader<'static> {
        Reader { channel: None, into: &mut [], received: 0 }
    }

    /// Takes what fits, if it is this reader's; how much.
    fn take(&mut self, channel: u64, piece: &[u8]) -> usize {
        if self.channel != Some(channel) {
            return 0;
        }
        let room = &mut self.into[self.received..];
        let len = piece.len().min(room.len());
        room[..len].copy_from_slice(&piece[..len]);
        self.received += len;
        len
    }
}

impl Pipe {
    /// How many of the coming bytes the reader could take now.
    pub(super) fn wanted_by(&self, reader: &Reader<'_>) -> usize {
        let room = reader.into.len() - reader.received;
        match &self.incoming {
            Some(Incoming { channel, left }) if reader.channel == Some(*channel) => {
                let free = self.lanes.get(channel).is_some_and(|lane| lane.inbox.is_empty());
                if free { room.min(*left) } else { 0 }
            }
            _ => 0,
        }
    }

    /// So many bytes of the incoming frame have arrived.
    pub(super) fn arrived(&mut self, len: usize) {
        if let Some(incoming) = &mut self.incoming {
            incoming.left -= len;
            if incoming.left == 0 {
                self.incoming = None;
            }
        }
    }

    /// Brings bytes that have arrived to their lanes, and tells the threads that wait for them; as
    /// long as they are frames, and within the credit.
    pub(super) fn sort(&mut self, mut bytes: &[u8], reader: &mut Reader<'_>, ports: &mut Ports) {
        while !bytes.is_empty() && self.wrong.is_none() {
            if let Some(Incoming { channel, left }) = self.incoming {
                let (piece, rest) = bytes.split_at(bytes.len().min(left));
                bytes = rest;
                self.bring(channel, piece, reader, ports);
                self.arrived(piece.len());
                continue;
            }
            let missing = frame::LEN - self.part_of_head.len();
            let (part, rest) = bytes.split_at(bytes.len().min(missing));
            bytes = rest;
            self.part_of_head.extend_from_slice(part);
            if let Some(head) = self.part_of_head.first_chunk() {
                match Head::decode(head) {
                    Some(head) => {
                        if let Some(channel) = self.hear(head) {
                            ports.tell(channel);
                        }
                    }
                    None => self.wrong = Some(format!("{head:02x?} is no head of a frame")),
                }
                self.part_of_head.clear();
            }
        }
    }

    /// Whether all that came made sense.
    ///
    /// # Errors
    ///
    /// [`Error::Protocol`], from the first time on.
    pub(super) fn check(&self, peer: Peer) -> Result<(), Error> {
        match &self.wrong {
            Some(what) => Err(Error::Protocol { peer, what: what.clone() }),
            None => Ok(()),
        }
    }

    /// Brings data to its reader, or else keeps it for its channel.
    fn bring(&mut self, channel: u64, piece: &[u8], reader: &mut Reader<'_>, ports: &mut Ports) {
        let Some(lane) = self.lanes.get_mut(&channel) else { return };
        let taken = if lane.inbox.is_empty() { reader.take(channel, piece) } else { 0 };
        if taken < piece.len() {
            lane.inbox.extend_from_slice(&piece[taken..]);
            ports.tell(channel);
        }
    }

    /// Takes note of a head; the channel whose thread can do more now.
    fn hear(&mut self, head: Head) -> Option<u64> {
        let (Head::Data { channel, .. } | Head::Credit { channel, .. } | Head::Close { channel }) =
            head;
        match (head, self.lanes.get_mut(&channel)) {
            (Head::Data { len, .. }, lane) => {
                let left = len as usize;
                self.incoming = (left > 0).then_some(Incoming { channel, left });
                match lane {
                    Some(lane) if left > lane.due => {
                        self.wrong = Some(format!("{left} bytes, with credit for {}", lane.due));
                    }
                    Some(lane) => lane.due -= left,
                    // It was closed here, maybe before the peer was connected.
                    None => self.say(Head::Close { channel }),
                }
                None
            }
            (Head::Credit { len, .. }, Some(lane)) => {
                lane.credit = (lane.credit + len as usize).min(WINDOW);
                lane.refused.then_some(channel)
            }
            (Head::Close { .. }, Some(lane)) => {
                lane.closed = true;
                Some(channel)
            }
            (Head::Credit { .. } | Head::Close { .. }, None) => None,
        }
    }

    /// What the socket is to take before anything else.
    pub(super) fn out(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// To be said after what waits already.
    pub(super) fn say(&mut self, head: Head) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::bell::Bell;
    use super::*;

    /// What a pipe with channel 5 makes of bytes: data for 5, and what is wrong.
    fn sort(bytes: &[u8], at_once: usize) -> (Vec<u8>, Option<String>) {
        let (mut pipe, mut ports) = (Pipe::default(), Ports::new(Arc::new(Bell::new().unwrap())));
        pipe.lanes.insert(5, Lane::new());
        for bytes in bytes.chunks(at_once) {
            pipe.sort(bytes, &mut Reader::nobody(), &mut ports);
        }
        let mut data = vec![0; 100];
        let len = pipe.lanes.get_mut(&5).unwrap().inbox.take(&mut data);
        data.truncate(len);
        (data, pipe.wrong)
    }

    #[test]
    fn frames_are_sorted_however_they_are_cut() {
        let data = |channel, data: &[u8]| {
            [&Head::Data { channel, len: data.len() as u32 }.encode(), data].concat()
        };
        let bytes = [data(5, b"abc"), data(6, b"for nobody"), data(5, b""), data(5, b"d")].concat();
        for at_once in 1..bytes.len() {
            assert_eq!(sort(&bytes, at_once), (b"abcd".to_vec(), None));
        }
    }

    #[test]
    fn nonsense_and_more_than_there_is_credit_for_is_noticed() {
        let (data, wrong) = sort(&[0xff; 40], 40);
        assert!(data.is_empty() && wrong.unwrap().contains("no head"));
        let too_much = Head::Data { channel: 5, len: WINDOW as u32 + 1 }.encode();
        let (data, wrong) = sort(&[&too_much[..], b"abc"].concat(), 40);
        assert!(data.is_empty() && wrong.unwrap().contains("with credit for 1048576"));
    }
}
