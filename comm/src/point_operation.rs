//! Moves messages between pairs of ranks: state machines that own no thread, lock or clock.
//!
//! Messages from one rank to another go in order, each a fingerprint and then its bytes, through
//! the same stream as the collectives'. All messages lent to one [`Streams::progress`] move together,
//! so that the order of sends and receives of a group never matters between different peers.

use std::sync::{Arc, OnceLock};

use tutti_topo::Rank;
use tutti_transport::{Peer, Transport};
use zerocopy::{FromBytes, IntoBytes};

use crate::call::Fingerprint;
use crate::executor::{Fault, Group};
use crate::message::{End, Message};

/// One end of a message under way.
pub(crate) struct Transfer {
    message: Message,
    print: Fingerprint,
    /// How many bytes of the fingerprint have passed.
    header: usize,
    /// How many bytes of the message have passed, and how many there are.
    done: usize,
    len: usize,
    /// Where a receive from any rank tells from whom it came.
    source: Option<Arc<OnceLock<Rank>>>,
}

/// A message under way with the memory it comes from or goes to.
pub(crate) struct Moving<'a> {
    pub(crate) transfer: &'a mut Transfer,
    pub(crate) bytes: Bytes<'a>,
}

/// The memory of a message.
pub(crate) enum Bytes<'a> {
    Out(&'a [u8]),
    In(&'a mut [u8]),
}

impl Bytes<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Bytes::Out(bytes) => bytes.len(),
            Bytes::In(bytes) => bytes.len(),
        }
    }

    pub(crate) fn reborrow(&mut self) -> Bytes<'_> {
        match self {
            Bytes::Out(bytes) => Bytes::Out(bytes),
            Bytes::In(bytes) => Bytes::In(bytes),
        }
    }
}

/// What stands between this rank and each other one: how many messages have begun each way, and
/// which ways are taken by an earlier message.
pub(crate) struct Streams {
    out: Vec<Stream>,
    into: Vec<Stream>,
    /// Counts the polls.
    round: u64,
    /// Where a receive from any rank looks first: behind the rank that was served last.
    turn: u32,
}

#[derive(Clone, Copy, Default)]
struct Stream {
    messages: u64,
    /// The last poll that found an unfinished message here; later ones wait behind it.
    taken: u64,
}

impl Transfer {
    pub(crate) fn new(message: Message) -> Transfer {
        let print = Fingerprint::of_message(&message, Fingerprint::UNNUMBERED);
        let len = message.count as usize * message.data_type.size();
        Transfer { message, print, header: 0, done: 0, len, source: None }
    }

    /// Tells `source` from which rank the message came.
    pub(crate) fn telling(self, source: Arc<OnceLock<Rank>>) -> Transfer {
        Transfer { source: Some(source), ..self }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.header == Fingerprint::LEN && self.done == self.len
    }

    pub(crate) fn print(&self) -> Fingerprint {
        self.print
    }

    pub(crate) fn end(&self) -> End {
        self.message.end
    }

    /// Whether it has its place in the order of messages, which its fingerprint shows.
    fn has_begun(&self) -> bool {
        self.print.sequence() != Fingerprint::UNNUMBERED
    }

    /// Takes its place in the order of messages.
    fn begin(&mut self, stream: &mut Stream) {
        if !self.has_begun() {
            self.print = Fingerprint::of_message(&self.message, stream.messages);
            stream.messages += 1;
        }
    }

    /// A receive from any rank becomes one from `rank`.
    fn comes_from(&mut self, rank: Rank) {
        self.message.end = End::From(rank);
        if let Some(source) = &self.source {
            source.set(rank).expect("a message comes from one rank");
        }
    }

    fn send(
        &mut self,
        bytes: &[u8],
        peer: Peer,
        transport: &mut dyn Transport,
    ) -> Result<bool, tutti_transport::Error> {
        let rest = &self.print.as_bytes()[self.header..];
        if rest.is_empty() {
            let sent = transport.send(peer, &bytes[self.done..])?;
            self.done += sent;
            return Ok(sent > 0);
        }
        let sent = transport.send_joined(peer, rest, bytes)?;
        let of_header = sent.min(rest.len());
        self.header += of_header;
        self.done += sent - of_header;
        Ok(sent > 0)
    }

    fn receive(
        &mut self,
        bytes: &mut [u8],
        (me, from): (Rank, Rank),
        peer: Peer,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let fault = |source| Fault::Transport { rank: Some(from), source };
        let first = self.header < Fingerprint::LEN;
        if first {
            let Some(theirs) = next_print(peer, transport).map_err(fault)? else {
                return Ok(false);
            };
            self.compare(me, from, theirs)?;
            transport.consume(peer, Fingerprint::LEN);
            self.header = Fingerprint::LEN;
        }
        let rest = &mut bytes[self.done..];
        let got = if rest.is_empty() { 0 } else { transport.recv(peer, rest).map_err(fault)? };
        self.done += got;
        Ok(first || got > 0)
    }

    /// Whether `theirs`, which came from `from`, is the send that this receive expects.
    fn compare(&self, me: Rank, from: Rank, theirs: Fingerprint) -> Result<(), Fault> {
        let sent = Message { end: End::To(me), ..self.message };
        if theirs == Fingerprint::of_message(&sent, self.print.sequence()) {
            return Ok(());
        }
        Err(Fault::Mismatch { rank: from, theirs: Some(theirs) })
    }

    fn conclude(&mut self) {
        self.header = Fingerprint::LEN;
        self.done = self.len;
    }
}

/// The fingerprint that is next in the stream from `peer`, when all of it is there.
fn next_print(
    peer: Peer,
    transport: &mut dyn Transport,
) -> Result<Option<Fingerprint>, tutti_transport::Error> {
    let header = transport.peek(peer)?.get(..Fingerprint::LEN);
    Ok(header.map(|header| Fingerprint::read_from_bytes(header).expect("it has that length")))
}

impl Streams {
    pub(crate) fn new(size: u32) -> Streams {
        let none = vec![Stream::default(); size as usize];
        Streams { out: none.clone(), into: none, round: 0, turn: 0 }
    }

    /// Moves what can be moved of `moving`, which are in the order of the program; says whether
    /// anything did. Never blocks.
    ///
    /// # Errors
    ///
    /// Why one of them, by its index, cannot go on.
    pub(crate) fn progress(
        &mut self,
        moving: &mut [Moving<'_>],
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, (usize, Fault)> {
        self.round += 1;
        let mut moved = self.own_messages(moving, group.me)?;
        // An earlier receive takes from any rank: who sends to it is not known yet.
        let mut unclear = false;
        for (index, Moving { transfer, bytes }) in moving.iter_mut().enumerate() {
            if transfer.is_done() || transfer.end().peer() == Some(group.me) {
                continue;
            }
            let stepped = match bytes {
                Bytes::Out(bytes) => self.send(transfer, bytes, group, transport),
                Bytes::In(_) if unclear && !transfer.has_begun() => continue,
                Bytes::In(bytes) => self.receive(transfer, bytes, group, transport),
            };
            moved |= stepped.map_err(|fault| (index, fault))?;
            unclear |= transfer.end() == End::FromAny;
        }
        Ok(moved)
    }

    fn send(
        &mut self,
        transfer: &mut Transfer,
        bytes: &[u8],
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        let End::To(rank) = transfer.end() else { unreachable!("only a send has bytes to send") };
        let stream = &mut self.out[rank.index()];
        if stream.taken == self.round {
            return Ok(false);
        }
        transfer.begin(stream);
        let sent = transfer.send(bytes, group.peer(rank), transport);
        if !transfer.is_done() {
            stream.taken = self.round;
        }
        sent.map_err(|source| Fault::Transport { rank: Some(rank), source })
    }

    fn receive(
        &mut self,
        transfer: &mut Transfer,
        bytes: &mut [u8],
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<bool, Fault> {
        if transfer.end() == End::FromAny {
            let Some(rank) = self.first_sender(group, transport)? else { return Ok(false) };
            transfer.comes_from(rank);
        }
        let rank = transfer.end().peer().expect("found above");
        let stream = &mut self.into[rank.index()];
        if stream.taken == self.round {
            return Ok(false);
        }
        transfer.begin(stream);
        let got = transfer.receive(bytes, (group.me, rank), group.peer(rank), transport);
        if !transfer.is_done() {
            stream.taken = self.round;
        }
        got
    }

    /// A rank whose next bytes are a message that no earlier receive waits for. Ranks that have
    /// closed are passed over as long as others can send.
    fn first_sender(
        &mut self,
        group: &Group,
        transport: &mut dyn Transport,
    ) -> Result<Option<Rank>, Fault> {
        let size = group.size();
        let (mut open, mut closed) = (false, None);
        for rank in (0..size).map(|step| Rank((self.turn + step) % size)) {
            if rank == group.me {
                continue;
            }
            if self.into[rank.index()].taken == self.round {
                open = true;
                continue;
            }
            match next_print(group.peer(rank), transport) {
                Ok(Some(print)) if print.message().is_some() => {
                    self.turn = (rank.0 + 1) % size;
                    return Ok(Some(rank));
                }
                Ok(_) => open = true,
                Err(source @ tutti_transport::Error::Closed { .. }) => {
                    closed = Some(Fault::Transport { rank: Some(rank), source });
                }
                Err(source) => return Err(Fault::Transport { rank: Some(rank), source }),
            }
        }
        closed.filter(|_| !open).map_or(Ok(None), Err)
    }

    /// Copies the messages from this rank to itself whose both ends are here.
    fn own_messages(
        &mut self,
        moving: &mut [Moving<'_>],
        me: Rank,
    ) -> Result<bool, (usize, Fault)> {
        let mut moved = false;
        loop {
            let first = |wanted: &dyn Fn(End) -> bool| {
                let open = |m: &Moving<'_>| !m.transfer.is_done() && wanted(m.transfer.end());
                moving.iter().position(open)
            };
            let Some(out) = first(&|end| end == End::To(me)) else { return Ok(moved) };
            let into = first(&|end| end == End::From(me) || end == End::FromAny);
            let Some(into) = into else { return Ok(moved) };
            let Ok([send, recv]) = moving.get_disjoint_mut([out, into]) else {
                unreachable!("a send is no receive")
            };
            self.copy(send, recv, me).map_err(|fault| (into, fault))?;
            moved = true;
        }
    }

    fn copy(
        &mut self,
        send: &mut Moving<'_>,
        recv: &mut Moving<'_>,
        me: Rank,
    ) -> Result<(), Fault> {
        if recv.transfer.end() == End::FromAny {
            recv.transfer.comes_from(me);
        }
        send.transfer.begin(&mut self.out[me.index()]);
        recv.transfer.begin(&mut self.into[me.index()]);
        recv.transfer.compare(me, me, send.transfer.print)?;
        let (Bytes::Out(from), Bytes::In(into)) = (&send.bytes, &mut recv.bytes) else {
            unreachable!("a send has bytes to send, a receive room for them")
        };
        into.copy_from_slice(from);
        send.transfer.conclude();
        recv.transfer.conclude();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
