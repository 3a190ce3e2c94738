use std::time::Duration;

use mio::net::TcpStream;
use socket2::{SockRef, TcpKeepalive};
use tutti_transport::Peer;
use tutti_transport::handshake::Secret;

/// How a [`Tcp`](crate::Tcp) behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a connection may be refused, or not be answered, before its peer counts as out
    /// of reach. Attempts go on until then. 10 s.
    pub connect_timeout: Duration,
    /// How long an accepted connection may take to prove that it belongs to the job. 5 s.
    pub handshake_timeout: Duration,
    /// The most bytes that `peek` shows of one peer; at least 8 KiB are taken. 256 KiB.
    pub buffer_len_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connect_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(5),
            buffer_len_bytes: 256 << 10,
        }
    }
}

/// Who this process is, among whom, and how it behaves.
pub(crate) struct Job {
    pub me: Peer,
    pub secret: Secret,
    pub session: u64,
    pub options: Options,
}

/// Small messages leave at once, and a host that vanished is noticed.
pub(crate) fn tune(socket: &TcpStream) -> std::io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    // No buffer sizes: setting one would end the kernel's own sizing, which goes higher.
    let alive = TcpKeepalive::new().with_time(Duration::from_secs(10));
    socket.set_tcp_keepalive(&alive.with_interval(Duration::from_secs(5)).with_retries(3))
}

/// Takes a connection inside one host out of the system's pacing (BBR has one): nothing can be lost
/// on the way, so what holds the sender back, and its timers, only cost.
pub(crate) fn tune_inside_host(socket: &TcpStream) {
    let ends = (socket.local_addr().map(|at| at.ip()), socket.peer_addr().map(|at| at.ip()));
    if let (Ok(one), Ok(other)) = ends
        && one == other
    {
        // Every Linux has it and lets everybody use it; where not, all works as well.
        _ = SockRef::from(socket).set_tcp_congestion(b"reno");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_an_own_address_is_not_paced() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = TcpStream::from_std(socket);
        tune_inside_host(&socket);
        let control = SockRef::from(&socket).tcp_congestion().unwrap();
        assert!(control.starts_with(b"reno"), "{}", String::from_utf8_lossy(&control));
    }
}
