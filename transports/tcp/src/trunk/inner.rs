//! What is under a trunk's lock: the sockets, and what each channel has on them.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use tutti_transport::{Error, Peer, Transport};

use super::bell::Bell;
use super::frame::{self, Head};
use super::pipe::{Lane, Pipe, Reader};
use super::ports::Ports;
use crate::Tcp;

/// How much of a channel may be under way between two processes, unread by its receiver.
pub(super) const WINDOW: usize = 1 << 20;
/// The most data in a frame: what is kept, at most, of one that the socket took a part of.
const FRAME: usize = 128 << 10;
/// How many frames go at once.
const FRAMES_AT_ONCE: usize = 8;
/// How much is read at once of which it is not known whose it is.
const UNSORTED: usize = 256 << 10;
/// The same for who hopes that it is its own.
const UNSORTED_FOR_A_READER: usize = 16 << 10;

pub(super) struct Inner {
    pub(super) tcp: Tcp,
    pub(super) ports: Ports,
    /// By peer.
    pipes: Vec<Pipe>,
    /// Where bytes come whose place is not known yet.
    unsorted: Box<[u8]>,
}

impl Inner {
    pub(super) fn new(tcp: Tcp, size: usize, kick: Arc<Bell>) -> Inner {
        let pipes = (0..size).map(|_| Pipe::default()).collect();
        Inner { tcp, ports: Ports::new(kick), pipes, unsorted: vec![0; UNSORTED].into() }
    }

    pub(super) fn add(&mut self, channel: u64, members: &[Peer]) {
        self.ports.add(channel);
        for &peer in members {
            assert!(peer.index() < self.pipes.len(), "{peer} is none of {}", self.pipes.len());
            self.pipes[peer.index()].lanes.insert(channel, Lane::new());
        }
    }

    /// Closes a channel at this end, and tells those that are connected.
    pub(super) fn remove(&mut self, channel: u64, members: &[Peer]) {
        self.ports.remove(channel);
        for &peer in members {
            self.pipes[peer.index()].lanes.remove(&channel);
            if self.tcp.stands(peer) {
                self.pipes[peer.index()].say(Head::Close { channel });
                // Where the connection is gone, the peer knows.
                _ = self.flush(peer);
            }
        }
    }

    pub(super) fn lane(&mut self, channel: u64, peer: Peer) -> &mut Lane {
        let lane = self.pipes[peer.index()].lanes.get_mut(&channel);
        lane.expect("a channel asks for its members")
    }

    /// Sends what the receiver has given credit for and the socket takes.
    pub(super) fn send(&mut self, channel: u64, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        if self.lane(channel, peer).closed {
            return Err(Error::Closed { peer });
        }
        let free = self.is_up(peer)? && self.flush(peer)?;
        let lane = self.lane(channel, peer);
        let mut taken = lane.owed.min(bytes.len());
        lane.owed -= taken;
        lane.refused = false;
        if free && lane.credit < bytes.len() - taken {
            self.read(peer, &mut Reader::new(channel, &mut []))?;
        }
        while free && taken < bytes.len() {
            let offered = &bytes[taken..];
            let offered = &offered[..offered.len().min(self.lane(channel, peer).credit)];
            let went = self.send_frames(channel, peer, offered)?;
            taken += went;
            if went < offered.len().max(1) {
                break;
            }
        }
        self.lane(channel, peer).refused = taken < bytes.len();
        Ok(taken)
    }

    /// Sends bytes within the credit; how many were taken. The rest of the frame that the socket
    /// took a part of is kept.
    fn send_frames(&mut self, channel: u64, peer: Peer, bytes: &[u8]) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let pieces = || bytes.chunks(FRAME).take(FRAMES_AT_ONCE);
        let mut heads = [[0; frame::LEN]; FRAMES_AT_ONCE];
        for (head, piece) in heads.iter_mut().zip(pieces()) {
            *head = Head::Data { channel, len: piece.len() as u32 }.encode();
        }
        let frames = || heads.iter().zip(pieces());
        let slices: Vec<_> =
            frames().flat_map(|(head, piece)| [IoSlice::new(head), IoSlice::new(piece)]).collect();
        let mut went = self.tcp.send_vectored(peer, &slices)?;
        let mut taken = 0;
        for (head, piece) in frames() {
            if went == 0 {
                break;
            }
            self.lane(channel, peer).credit -= piece.len();
            let of_head = went.min(frame::LEN);
            let of_piece = (went - of_head).min(piece.len());
            went -= of_head + of_piece;
            taken += of_piece;
            if of_piece < piece.len() {
                self.pipes[peer.index()].keep(channel, &head[of_head..], &piece[of_piece..]);
            }
        }
        Ok(taken)
    }

    /// Sends what waits on a connection; whether nothing does any more.
    fn flush(&mut self, peer: Peer) -> Result<bool, Error> {
        let pipe = &mut self.pipes[peer.index()];
        while !pipe.out().is_empty() {
            let len = self.tcp.send(peer, pipe.out())?;
            if len == 0 {
                return Ok(false);
            }
            if let Some((channel, len)) = pipe.took(len)
                && let Some(lane) = pipe.lanes.get_mut(&channel)
            {
                lane.owed += len;
                self.ports.tell(channel);
            }
        }
        Ok(true)
    }

    /// Gives the sender credit for what the channel's user has consumed.
    pub(super) fn give_credit(&mut self, channel: u64, peer: Peer, len: usize) {
        self.lane(channel, peer).due += len;
        self.pipes[peer.index()].say(Head::Credit { channel, len: len as u32 });
        // A broken connection is met by the next read.
        _ = self.flush(peer);
    }

    /// Reads what has arrived from `peer`, if it is connected, and sorts it by channels; ends early
    /// when the reader has all that it has room for.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when nothing is left and the connection has ended, [`Error::Protocol`] if
    /// what came is no frame or more than there was credit for.
    pub(super) fn read(&mut self, peer: Peer, reader: &mut Reader<'_>) -> Result<(), Error> {
        if !self.is_up(peer)? {
            return Ok(());
        }
        self.pipes[peer.index()].check(peer)?;
        let mut drained = false;
        while !drained {
            let pipe = &mut self.pipes[peer.index()];
            // Data of the reader's goes to its place; of what may be, little is read before it is
            // known, so that little is copied.
            let direct = pipe.wanted_by(reader);
            let room = &mut reader.into[reader.received..];
            let unsorted = if room.is_empty() { UNSORTED } else { UNSORTED_FOR_A_READER };
            let slices = [&mut room[..direct], &mut self.unsorted[..unsorted]];
            let read = self.tcp.recv_vectored(peer, &mut slices.map(IoSliceMut::new))?;
            drained = read.drained;
            let placed = read.len.min(direct);
            reader.received += placed;
            pipe.arrived(placed);
            pipe.sort(&self.unsorted[..read.len - placed], reader, &mut self.ports);
            pipe.check(peer)?;
            if !reader.into.is_empty() && reader.received == reader.into.len() {
                break;
            }
        }
        self.tcp.rest(peer);
        Ok(())
    }

    /// Whether the connection to `peer` stands; sees to it that it will.
    fn is_up(&mut self, peer: Peer) -> Result<bool, Error> {
        if self.tcp.stands(peer) {
            return Ok(true);
        }
        let up = self.tcp.open(peer)?;
        self.attend();
        Ok(up)
    }

    /// Takes note of what has happened on the network, without waiting, for all channels.
    pub(super) fn harvest(&mut self) -> Result<(), Error> {
        self.tcp.park(&[], Duration::ZERO)?;
        self.attend();
        Ok(())
    }

    /// Serves the connections with events.
    fn attend(&mut self) {
        for peer in self.tcp.take_stirred() {
            let stands = self.tcp.stands(peer);
            let read = if stands { self.read(peer, &mut Reader::nobody()) } else { Ok(()) };
            let free = if stands { self.flush(peer) } else { Ok(false) };
            let fine = stands && read.is_ok() && free.is_ok();
            for (channel, lane) in &self.pipes[peer.index()].lanes {
                if !fine || (lane.refused && matches!(free, Ok(true))) {
                    self.ports.tell(*channel);
                }
            }
        }
    }
}
