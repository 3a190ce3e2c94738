//! The hub: where ranks meet, and who judges when something goes wrong.
//!
//! One thread, one poll loop. It may live in the launcher, in the process that made the unique
//! id, or on rank 0. It moves no payload.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use tutti_transport::handshake::{ANY, Handshake, Secret};

use super::job::Job;
use super::wire::{FromHub, GroupId, Inbox, Report, ToHub, WHOLE, encode};
use crate::service;

/// How long a stranger may take to prove that it belongs to the job.
const STRANGER_TIME: Duration = Duration::from_secs(5);
/// How many strangers may be waiting; the oldest is turned away for a new one.
const MAX_STRANGERS: usize = 256;
/// How often ranks that wait for the others are told who is missing.
const WAITING_PAUSE: Duration = Duration::from_secs(1);

const LISTENER: Token = Token(0);
const STOP: Token = Token(1);

/// A hub on a thread of its own. Dropping it ends the thread and all lines.
pub(crate) struct HubThread {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    detached: bool,
}

impl HubThread {
    /// Starts to serve on `listener` (bound, non-blocking).
    pub(crate) fn start(listener: std::net::TcpListener, secret: Secret) -> io::Result<HubThread> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), STOP)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut listener = TcpListener::from_std(listener);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let hub = Hub {
            poll,
            listener,
            secret,
            lines: HashMap::new(),
            next_token: 2,
            jobs: Vec::new(),
            forming: None,
            told_waiting: Instant::now(),
            stop: Arc::clone(&stop),
        };
        let thread = service::spawn("tutti-hub", || hub.run())?;
        Ok(HubThread { stop, waker, thread: Some(thread), detached: false })
    }

    /// Lets the thread serve as long as the process lives, also after this handle is gone: other
    /// ranks may still need it.
    pub(crate) fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for HubThread {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        self.stop.store(true, Ordering::Relaxed);
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the hub's thread panicked");
        }
    }
}

struct Hub {
    poll: Poll,
    listener: TcpListener,
    secret: Secret,
    lines: HashMap<Token, Line>,
    next_token: usize,
    jobs: Vec<Job>,
    /// The job that ranks join now.
    forming: Option<u64>,
    told_waiting: Instant,
    stop: Arc<AtomicBool>,
}

/// One connection.
struct Line {
    stream: TcpStream,
    from: SocketAddr,
    state: State,
    inbox: Inbox,
    out: Vec<u8>,
}

enum State {
    Stranger {
        handshake: Box<Handshake>,
        since: Instant,
    },
    /// Proven; has not joined.
    Known,
    Member {
        job: u64,
        rank: u32,
    },
    /// To be closed when all is said.
    Closing,
}

impl Hub {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = self.next_tick().map(|at| at.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return tracing::error!(%error, "the hub cannot wait any more and ends");
                }
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    STOP => {}
                    token => self.serve(token),
                }
            }
            self.tick(Instant::now());
        }
    }

    fn next_tick(&self) -> Option<Instant> {
        let strangers = self.lines.values().filter_map(|line| match line.state {
            State::Stranger { since, .. } => Some(since + STRANGER_TIME),
            _ => None,
        });
        let waiting = self.forming.map(|_| self.told_waiting + WAITING_PAUSE);
        strangers.chain(self.jobs.iter().filter_map(Job::next_tick)).chain(waiting).min()
    }

    fn tick(&mut self, now: Instant) {
        let late = |line: &Line| matches!(line.state, State::Stranger { since, .. } if since + STRANGER_TIME <= now);
        self.lines.retain(|_, line| {
            let late = late(line);
            if late {
                tracing::warn!(from = %line.from, "turned away: it did not prove in time that it belongs to the job");
            }
            !late
        });
        self.jobs.iter_mut().for_each(|job| job.tick(now));
        if self.told_waiting + WAITING_PAUSE <= now {
            self.told_waiting = now;
            if let Some(job) = self.forming_job() {
                let missing = job.whole.missing();
                job.whole.tell_all(FromHub::Waiting { missing });
            }
        }
        self.deliver();
    }

    fn accept(&mut self) {
        loop {
            let (mut stream, from) = match self.listener.accept() {
                Ok(connection) => connection,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    return tracing::warn!(%error, "a connection was lost before it was accepted");
                }
            };
            let token = Token(self.next_token);
            self.next_token += 1;
            let interest = Interest::READABLE | Interest::WRITABLE;
            if let Err(error) = self.poll.registry().register(&mut stream, token, interest) {
                tracing::warn!(%error, %from, "a connection cannot be served");
                continue;
            }
            _ = stream.set_nodelay(true);
            self.make_room();
            let handshake = Box::new(Handshake::acceptor(&self.secret, 0, ANY));
            let state = State::Stranger { handshake, since: Instant::now() };
            self.lines.insert(
                token,
                Line { stream, from, state, inbox: Inbox::default(), out: Vec::new() },
            );
            self.serve(token);
        }
    }

    fn make_room(&mut self) {
        let strangers = self.lines.iter().filter_map(|(token, line)| match line.state {
            State::Stranger { since, .. } => Some((since, *token)),
            _ => None,
        });
        let strangers: Vec<_> = strangers.collect();
        if strangers.len() >= MAX_STRANGERS
            && let Some((_, oldest)) = strangers.into_iter().min_by_key(|(since, _)| *since)
        {
            self.lines.remove(&oldest);
        }
    }

    /// Takes what has arrived on a line.
    fn serve(&mut self, token: Token) {
        let Some(line) = self.lines.get_mut(&token) else { return };
        let mut messages = Vec::new();
        let end: Result<(), String> = line.read(&mut messages);
        for (group, message) in messages {
            self.hear(token, group, message);
        }
        if let Err(reason) = end {
            self.close(token, &reason);
        }
        self.deliver();
        if let Some(line) = self.lines.get_mut(&token) {
            line.flush();
        }
    }

    fn hear(&mut self, token: Token, group: GroupId, message: ToHub) {
        let Some(line) = self.lines.get_mut(&token) else { return };
        match (&line.state, message) {
            (State::Known, ToHub::Join { rank, size, report }) => {
                self.join(token, rank, size, report)
            }
            (&State::Member { job, rank }, message) => {
                if let Some(job) = self.job(job) {
                    job.hear(rank, group, message, Instant::now());
                }
            }
            (_, message) => {
                tracing::warn!(from = %line.from, ?message, "said before joining; ignored")
            }
        }
    }

    fn join(&mut self, token: Token, rank: u32, size: u32, report: Report) {
        if let Some(problem) = self.objection(rank, size, &report) {
            self.refuse_forming(&problem);
            return self.refuse(token, &problem);
        }
        let id = match self.forming {
            Some(id) => id,
            None => {
                let Ok(id) = getrandom::u64() else {
                    return self.refuse(token, "the system gave no random number for the session");
                };
                self.jobs.push(Job::new(id, size));
                self.told_waiting = Instant::now();
                *self.forming.insert(id)
            }
        };
        if let Some(line) = self.lines.get_mut(&token) {
            line.state = State::Member { job: id, rank };
        }
        let job = self.forming_job().expect("it was found or made above");
        job.whole.join(rank, report);
        if job.whole.missing().is_empty() {
            self.forming = None;
        }
    }

    /// Why this rank cannot join the session that forms, in words.
    fn objection(&mut self, rank: u32, size: u32, report: &Report) -> Option<String> {
        let who = |rank: u32, report: &Report| {
            format!("rank {rank} (host {}, pid {})", report.host, report.pid)
        };
        if rank >= size || size > MAX_SIZE {
            return Some(format!(
                "{} says it is one of {size} ranks; ranks go from 0 to one less than the size, sizes to {MAX_SIZE}",
                who(rank, report)
            ));
        }
        let session = &self.forming_job()?.whole;
        if session.size() != size {
            let first =
                (0..session.size()).find_map(|r| session.report(r).map(|report| who(r, report)))?;
            let theirs = session.size();
            return Some(format!(
                "{} says there are {size} ranks, {first} says there are {theirs}",
                who(rank, report)
            ));
        }
        let claimed = session.report(rank)?;
        Some(format!(
            "rank {rank} was claimed twice: by host {} pid {} and by host {} pid {}",
            claimed.host, claimed.pid, report.host, report.pid
        ))
    }

    fn forming_job(&mut self) -> Option<&mut Job> {
        self.job(self.forming?)
    }

    fn job(&mut self, id: u64) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id() == id)
    }

    fn refuse_forming(&mut self, problem: &str) {
        if let Some(job) = self.forming_job() {
            job.whole.tell_all(FromHub::Refused(problem.into()));
        }
        self.deliver();
        if let Some(id) = self.forming.take() {
            self.jobs.retain(|job| job.id() != id);
            for line in self.lines.values_mut() {
                if matches!(line.state, State::Member { job, .. } if job == id) {
                    line.state = State::Closing;
                }
            }
        }
    }

    fn refuse(&mut self, token: Token, problem: &str) {
        if let Some(line) = self.lines.get_mut(&token) {
            line.out.extend(encode(WHOLE, &FromHub::Refused(problem.into())));
            line.state = State::Closing;
            line.flush();
        }
    }

    fn close(&mut self, token: Token, reason: &str) {
        let Some(line) = self.lines.remove(&token) else { return };
        match line.state {
            State::Stranger { .. } => tracing::warn!(from = %line.from, reason, "turned away"),
            State::Known | State::Closing => {}
            State::Member { job, rank } if self.forming == Some(job) => {
                let who = self.job(job).and_then(|job| job.report(rank));
                let who = who.map_or(String::new(), |report| {
                    format!(" (host {}, pid {})", report.host, report.pid)
                });
                self.refuse_forming(&format!("rank {rank}{who} ended before all ranks had joined"));
            }
            State::Member { job: id, rank } => {
                let mut is_here = false;
                if let Some(job) = self.job(id) {
                    job.gone(rank);
                    is_here = job.report(rank).is_some_and(|r| r.pid == std::process::id());
                }
                self.deliver();
                if is_here {
                    self.announce_the_end(id);
                }
                // Only now: a rank of this process waits for the end of its line before it goes on.
                drop(line.stream);
                let of_job =
                    |line: &Line| matches!(line.state, State::Member { job, .. } if job == id);
                if !self.lines.values().any(of_job) {
                    self.jobs.retain(|job| job.id() != id);
                }
            }
        }
    }

    /// Tells the ranks of a job that this process, and the hub with it, may end.
    fn announce_the_end(&mut self, id: u64) {
        let of_job =
            |line: &&mut Line| matches!(line.state, State::Member { job, .. } if job == id);
        for line in self.lines.values_mut().filter(of_job) {
            line.out.extend(encode(WHOLE, &FromHub::Closing));
            line.flush();
        }
    }

    /// Sends what the communicators have to say; to ranks of this process last, because what they hear
    /// may end the process and with it the hub.
    fn deliver(&mut self) {
        for job in &mut self.jobs {
            let mut said: HashMap<u32, Vec<u8>> = HashMap::new();
            for (rank, group, message) in job.take_out() {
                said.entry(rank).or_default().extend(encode(group, &message));
            }
            if said.is_empty() {
                continue;
            }
            let of_job = |line: &Line| match line.state {
                State::Member { job: id, rank } if id == job.id() => Some(rank),
                _ => None,
            };
            let is_here = |rank| job.report(rank).is_some_and(|r| r.pid == std::process::id());
            for here in [false, true] {
                for line in self.lines.values_mut() {
                    if let Some(rank) = of_job(line).filter(|&rank| is_here(rank) == here) {
                        line.out.extend(said.remove(&rank).unwrap_or_default());
                        line.flush();
                    }
                }
            }
        }
        self.lines.retain(|_, line| !(matches!(line.state, State::Closing) && line.out.is_empty()));
    }
}

/// The largest communicator.
const MAX_SIZE: u32 = 65_536;

impl Line {
    /// Reads all that is there.
    ///
    /// # Errors
    ///
    /// Why the line is over, in words; messages read before count.
    fn read(&mut self, messages: &mut Vec<(GroupId, ToHub)>) -> Result<(), String> {
        if let State::Stranger { handshake, .. } = &mut self.state {
            match handshake.advance(&mut self.stream) {
                Ok(None) => return Ok(()),
                Ok(Some(_)) => self.state = State::Known,
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err("closed".into()),
                Ok(len) => {
                    self.inbox.add(&buffer[..len]);
                    while let Some(message) =
                        self.inbox.next().map_err(|error| error.to_string())?
                    {
                        messages.push(message);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Writes what there is room for; a broken line is noticed by the next read.
    fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(0) => return,
                Ok(len) => drop(self.out.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.out.clear(),
            }
        }
    }
}
