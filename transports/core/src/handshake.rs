//! The handshake by which two processes prove to each other that they hold one job's secret.
//!
//! Sans-io: [`Handshake::advance`] moves over any non-blocking stream. Four messages of fixed
//! size, little-endian, with two proofs (HMAC-SHA256 with the secret as key) over everything said
//! before them, so each proof holds for one connection, one direction and one pair of numbers:
//!
//! ```text
//! connector                                   acceptor
//!     | Hello      who, to whom, nonce  ------> |
//!     | <----- Challenge  who, nonce, its proof |
//!     | Proof      its proof            ------> |
//!     | <------------------------------ Verdict |
//! ```
//!
//! The stream is neither encrypted nor authenticated afterwards.

mod error;
mod secret;
#[cfg(test)]
mod tests;
mod wire;

use std::io::{self, ErrorKind, Read, Write};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub use error::HandshakeError;
pub use secret::Secret;
use wire::{Challenge, Hello, MAGIC, PROTOCOL, Proof, Status, Verdict};

/// The number that stands for "whoever answers" as `them`, and for "I have no number" as `me`.
pub const ANY: u32 = u32::MAX;

/// One side of a handshake on one connection.
pub struct Handshake {
    secret: Secret,
    session: u64,
    me: u32,
    them: u32,
    hello: Hello,
    challenge: Challenge,
    next: Next,
    out: Buffer,
    inp: Buffer,
}

/// What this side waits for, once all it has to say is sent.
enum Next {
    Start,
    Hello,
    Challenge,
    Proof,
    Verdict,
    Done(u32),
    /// Say why once the other side has been told.
    Fail(HandshakeError),
    Over,
}

impl Handshake {
    /// The side that opened the connection, in `session`, as number `me`, to reach number `them`.
    pub fn connector(secret: &Secret, session: u64, me: u32, them: u32) -> Handshake {
        Handshake::new(secret, session, me, them, Next::Start)
    }

    /// The side that accepted the connection, in `session`, as number `me`.
    ///
    /// It turns away a connector that asks for a number other than `me` or [`ANY`].
    pub fn acceptor(secret: &Secret, session: u64, me: u32) -> Handshake {
        Handshake::new(secret, session, me, ANY, Next::Hello)
    }

    fn new(secret: &Secret, session: u64, me: u32, them: u32, next: Next) -> Handshake {
        Handshake {
            secret: secret.clone(),
            session,
            me,
            them,
            hello: Hello::new_zeroed(),
            challenge: Challenge::new_zeroed(),
            next,
            out: Buffer::default(),
            inp: Buffer::default(),
        }
    }

    /// Moves on as far as `io` allows without blocking (a blocking stream makes it block).
    ///
    /// `Ok(None)`: the stream would block; call again when it is ready. `Ok(Some(peer))`: both
    /// sides are proven, and `peer` is the other's number. Reads not a byte beyond the handshake.
    ///
    /// # Errors
    ///
    /// Why the other side is not let in, or does not let this side in. The connection is of no
    /// more use then.
    pub fn advance<S: Read + Write>(&mut self, io: &mut S) -> Result<Option<u32>, HandshakeError> {
        loop {
            let flushed = self.flush(io);
            if let Next::Fail(_) = self.next {
                if matches!(flushed, Ok(false)) {
                    return Ok(None);
                }
                let Next::Fail(why) = std::mem::replace(&mut self.next, Next::Over) else {
                    unreachable!("just matched");
                };
                return Err(why);
            }
            if !flushed? {
                return Ok(None);
            }
            match self.next {
                Next::Done(peer) => return Ok(Some(peer)),
                Next::Over => return Err(HandshakeError::Closed),
                _ => {}
            }
            if !self.fill(io)? {
                return Ok(None);
            }
            self.next = self.step().unwrap_or_else(Next::Fail);
        }
    }

    /// Answers the message that has arrived whole.
    fn step(&mut self) -> Result<Next, HandshakeError> {
        match self.next {
            Next::Start => self.greet(),
            Next::Hello => self.on_hello(),
            Next::Challenge => self.on_challenge(),
            Next::Proof => self.on_proof(),
            Next::Verdict => {
                let verdict: Verdict = self.inp.take();
                Status::of(verdict.status.get()).check()?;
                Ok(Next::Done(self.challenge.from.get()))
            }
            Next::Done(_) | Next::Fail(_) | Next::Over => unreachable!("nothing is awaited"),
        }
    }

    fn greet(&mut self) -> Result<Next, HandshakeError> {
        self.hello = Hello {
            magic: MAGIC,
            version: PROTOCOL.into(),
            build: wire::build(),
            session: self.session.into(),
            from: self.me.into(),
            to: self.them.into(),
            nonce: secret::random_bytes()?,
        };
        self.out.put(&self.hello);
        Ok(Next::Challenge)
    }

    fn on_hello(&mut self) -> Result<Next, HandshakeError> {
        self.hello = self.inp.take();
        self.challenge = Challenge {
            magic: MAGIC,
            version: PROTOCOL.into(),
            build: wire::build(),
            status: Status::Welcome.code().into(),
            from: self.me.into(),
            nonce: secret::random_bytes()?,
            proof: [0; 32],
        };
        if let Err((status, why)) = self.judge_hello() {
            self.challenge.status = status.code().into();
            self.out.put(&self.challenge);
            return Err(why);
        }
        self.challenge.proof = self.secret.prove(wire::ACCEPTOR, &self.transcript());
        self.out.put(&self.challenge);
        Ok(Next::Proof)
    }

    fn judge_hello(&self) -> Result<(), (Status, HandshakeError)> {
        wire::check_version(self.hello.version, &self.hello.build)
            .map_err(|why| (Status::WrongVersion, why))?;
        if self.hello.session.get() != self.session {
            return Err((Status::WrongSession, HandshakeError::WrongSession));
        }
        let to = self.hello.to.get();
        if to != ANY && to != self.me {
            return Err((Status::WrongNumber, HandshakeError::WrongNumber));
        }
        Ok(())
    }

    fn on_challenge(&mut self) -> Result<Next, HandshakeError> {
        self.challenge = self.inp.take();
        wire::check_version(self.challenge.version, &self.challenge.build)?;
        Status::of(self.challenge.status.get()).check()?;
        let transcript = self.transcript();
        if !self.secret.verify(wire::ACCEPTOR, &transcript, &self.challenge.proof) {
            // A proof that cannot hold tells an honest acceptor what is wrong.
            self.out.put(&Proof { proof: [0; 32] });
            return Err(HandshakeError::WrongSecret);
        }
        if self.them != ANY && self.challenge.from.get() != self.them {
            return Err(HandshakeError::WrongNumber);
        }
        let proof = self.secret.prove(wire::CONNECTOR, &transcript);
        self.out.put(&Proof { proof });
        Ok(Next::Verdict)
    }

    fn on_proof(&mut self) -> Result<Next, HandshakeError> {
        let Proof { proof } = self.inp.take();
        let holds = self.secret.verify(wire::CONNECTOR, &self.transcript(), &proof);
        let status = if holds { Status::Welcome } else { Status::WrongSecret };
        self.out.put(&Verdict { status: status.code().into() });
        status.check()?;
        Ok(Next::Done(self.hello.from.get()))
    }

    /// Everything that was said before the proofs.
    fn transcript(&self) -> [u8; wire::TRANSCRIPT] {
        let mut all = [0; wire::TRANSCRIPT];
        let (hello, challenge) = all.split_at_mut(size_of::<Hello>());
        hello.copy_from_slice(self.hello.as_bytes());
        challenge.copy_from_slice(&self.challenge.as_bytes()[..challenge.len()]);
        all
    }

    /// Sends what is to be sent; whether all of it is gone.
    fn flush(&mut self, io: &mut impl Write) -> Result<bool, HandshakeError> {
        while self.out.at < self.out.len {
            match io.write(&self.out.bytes[self.out.at..self.out.len]) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(n) => self.out.at += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(true)
    }

    /// Reads what is awaited; whether all of it is there.
    fn fill(&mut self, io: &mut impl Read) -> Result<bool, HandshakeError> {
        let (want, opens) = match self.next {
            Next::Hello => (size_of::<Hello>(), true),
            Next::Challenge => (size_of::<Challenge>(), true),
            Next::Proof => (size_of::<Proof>(), false),
            Next::Verdict => (size_of::<Verdict>(), false),
            Next::Start | Next::Done(_) | Next::Fail(_) | Next::Over => (0, false),
        };
        while self.inp.len < want {
            match io.read(&mut self.inp.bytes[self.inp.len..want]) {
                Ok(0) => return Err(HandshakeError::Closed),
                Ok(n) => self.inp.len += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
            // A stranger is known by its first wrong byte, however few it sends.
            let seen = self.inp.len.min(MAGIC.len());
            if opens && self.inp.bytes[..seen] != MAGIC[..seen] {
                return Err(HandshakeError::NotOurs);
            }
        }
        Ok(true)
    }
}

/// Room for any one message.
struct Buffer {
    bytes: [u8; size_of::<Challenge>()],
    at: usize,
    len: usize,
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { bytes: [0; size_of::<Challenge>()], at: 0, len: 0 }
    }
}

impl Buffer {
    fn put(&mut self, message: &(impl IntoBytes + Immutable)) {
        let message = message.as_bytes();
        self.bytes[..message.len()].copy_from_slice(message);
        (self.at, self.len) = (0, message.len());
    }

    fn take<T: FromBytes + KnownLayout + Immutable>(&mut self) -> T {
        let (message, _) = T::read_from_prefix(&self.bytes).expect("holds any message");
        self.len = 0;
        message
    }
}

impl From<io::Error> for HandshakeError {
    fn from(e: io::Error) -> HandshakeError {
        match e.kind() {
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => HandshakeError::Closed,
            _ => HandshakeError::Io(e),
        }
    }
}
