use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::buffer::Buffer;

/// The most that one `send` takes, so that a fast reader does not keep the caller in it.
const MOST_AT_ONCE: usize = 1 << 20;

/// From here on, `recv` reads into the caller's memory without a stop in the buffer.
const DIRECT: usize = 16 << 10;

/// How much a closing stream throws away, in pieces of 64 KiB.
const MOST_THROWN_AWAY: usize = 256;

/// What one read has brought, and whether nothing is left.
pub(crate) struct Brought {
    pub(crate) len: usize,
    pub(crate) drained: bool,
}

/// An established connection, read into a buffer.
///
/// The descriptor is watched edge-triggered: an edge tells of what came since the last look.
/// Where a look leaves something behind (a buffer without room, a read or a send that was ended
/// by its own length) the edge is renewed as soon as the caller could go on. So all that is still
/// to be told waits in the kernel, and whoever watches the epoll descriptor hears of it.
pub(crate) struct Stream {
    socket: TcpStream,
    token: Token,
    buffer: Buffer,
    /// The last look left nothing to read behind.
    drained: bool,
    /// An edge has told that the peer has closed: after the last byte comes the end.
    hung_up: bool,
    /// The end was read, or `failed` was met.
    over: bool,
    failed: Option<io::Error>,
    /// The last send took less than it was offered.
    refused: bool,
    /// Bytes were consumed since the last look, so that what is left may be all that the caller wants.
    consumed: bool,
}

impl Stream {
    pub(crate) fn new(
        socket: TcpStream,
        token: Token,
        buffer_len: usize,
        registry: &Registry,
    ) -> Stream {
        let mut stream = Stream {
            socket,
            token,
            // `peek` owes 4 KiB, and a buffer may be half unusable.
            buffer: Buffer::new(buffer_len.max(8 << 10)),
            drained: false,
            hung_up: false,
            over: false,
            failed: None,
            // Nothing was taken before the connection stood, and now there is room.
            refused: true,
            consumed: false,
        };
        stream.renew_edge(registry);
        stream
    }

    /// Writes until all is taken, the socket is full, or it is enough for one call.
    pub(crate) fn send(&mut self, bytes: &[u8], registry: &Registry) -> io::Result<usize> {
        if self.over || self.hung_up {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let most = bytes.len().min(MOST_AT_ONCE);
        let mut taken = 0;
        self.refused = false;
        while taken < most {
            match self.socket.write(&bytes[taken..most]) {
                Ok(n) => taken += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.refused = true;
                    return Ok(taken);
                }
                // What was taken is reported; the next send meets the error again.
                Err(_) if taken > 0 => return Ok(taken),
                Err(e) => return Err(e),
            }
        }
        if taken < bytes.len() {
            self.refused = true;
            self.renew_edge(registry);
        }
        Ok(taken)
    }

    /// Writes the slices one after the other, in one call of the system.
    pub(crate) fn send_vectored(
        &mut self,
        slices: &[IoSlice<'_>],
        registry: &Registry,
    ) -> io::Result<usize> {
        if self.over || self.hung_up {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let taken = loop {
            match self.socket.write_vectored(slices) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break 0,
                written => break written?,
            }
        };
        self.refused = taken < slices.iter().map(|slice| slice.len()).sum();
        if self.refused && taken > 0 {
            self.renew_edge(registry);
        }
        Ok(taken)
    }

    /// Reads past the buffer, of which no other use may be made then, in one call of the system.
    pub(crate) fn recv_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<Brought> {
        let room = slices.iter().map(|slice| slice.len()).sum();
        if !self.over {
            let read = self.socket.read_vectored(slices);
            let len = self.note_read(read, room);
            if len > 0 || !self.over {
                return Ok(Brought { len, drained: self.drained });
            }
        }
        Err(self.failed.take().unwrap_or_else(|| ErrorKind::UnexpectedEof.into()))
    }

    /// To be called after `recv_vectored`, before the caller waits for more.
    pub(crate) fn rest(&mut self, registry: &Registry) {
        if !self.drained {
            self.renew_edge(registry);
        }
    }

    /// What has arrived. Of what `consume` has left, the first call shows what is there already.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        let enough = std::mem::take(&mut self.consumed) && self.drained;
        if !enough || self.buffer.shown().is_empty() {
            self.fill();
        }
        if self.buffer.shown().is_empty() && self.over {
            return Err(self.failed.take().unwrap_or_else(|| ErrorKind::UnexpectedEof.into()));
        }
        Ok(self.buffer.shown())
    }

    pub(crate) fn consume(&mut self, len: usize, registry: &Registry) {
        let was_full = self.buffer.room() == 0;
        self.buffer.consume(len);
        self.consumed = true;
        if was_full && self.buffer.room() > 0 && !self.drained {
            self.renew_edge(registry);
        }
    }

    /// Moves what has arrived to `dst`: from the buffer, or past it where that is worthwhile.
    pub(crate) fn recv(&mut self, dst: &mut [u8], registry: &Registry) -> io::Result<usize> {
        if self.buffer.shown().is_empty() && (self.over || dst.len() < DIRECT) {
            self.peek()?;
        }
        let buffered = self.buffer.shown().len().min(dst.len());
        dst[..buffered].copy_from_slice(&self.buffer.shown()[..buffered]);
        self.consume(buffered, registry);
        let rest = &mut dst[buffered..];
        if rest.len() < DIRECT || self.over {
            return Ok(buffered);
        }
        let read = self.socket.read(rest);
        let direct = self.note_read(read, rest.len());
        if !self.drained {
            self.renew_edge(registry);
        }
        if buffered + direct == 0 && self.over {
            self.peek()?;
        }
        Ok(buffered + direct)
    }

    /// Takes note of an edge; whether the caller can do more than before.
    pub(crate) fn on_event(&mut self, event: &Event) -> bool {
        let hangs_up = !self.hung_up && (event.is_read_closed() || event.is_error());
        self.hung_up |= hangs_up;
        let readable = event.is_readable() || self.hung_up;
        if readable && !self.over {
            self.drained = false;
        }
        let writable = event.is_writable() && std::mem::take(&mut self.refused);
        writable || hangs_up || (readable && self.buffer.room() > 0 && !self.over)
    }

    /// Makes the kernel tell again what the socket is ready for.
    fn renew_edge(&mut self, registry: &Registry) {
        let interests = Interest::READABLE | Interest::WRITABLE;
        let renewed = registry.reregister(&mut self.socket, self.token, interests);
        renewed.expect("a registered socket can be registered again");
    }

    /// Reads until nothing is left or the buffer is full.
    fn fill(&mut self) {
        while !self.over && self.buffer.room() > 0 {
            let tail = self.buffer.tail();
            let room = tail.len();
            let read = self.socket.read(tail);
            let len = self.note_read(read, room);
            self.buffer.filled(len);
            if self.drained {
                break;
            }
        }
    }

    /// Draws the conclusions from one read into `room` bytes; returns how many came.
    fn note_read(&mut self, read: io::Result<usize>, room: usize) -> usize {
        // A short read has emptied the socket, but for the end of the stream, of which an edge
        // tells: here already, or still queued.
        match read {
            Ok(0) => (self.over, self.drained) = (true, true),
            Ok(n) => {
                self.drained = n < room && !self.hung_up;
                return n;
            }
            Err(e) => match e.kind() {
                ErrorKind::Interrupted => self.drained = false,
                ErrorKind::WouldBlock => self.drained = true,
                ErrorKind::ConnectionReset => (self.over, self.drained) = (true, true),
                _ => (self.over, self.drained, self.failed) = (true, true, Some(e)),
            },
        }
        0
    }
}

impl Drop for Stream {
    /// Closes so that what was taken arrives.
    ///
    /// The kernel goes on sending what it holds after the close. But closing with unread bytes,
    /// or bytes that come later, makes it reset the connection, which can destroy what is still
    /// on its way to the peer. So what has come is read and thrown away. A peer that keeps on
    /// sending to one who leaves can still lose bytes; orderly jobs end with a barrier.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        let mut away = vec![0; 64 << 10];
        for _ in 0..MOST_THROWN_AWAY {
            match self.socket.read(&mut away) {
                Ok(n) if n > 0 => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}
