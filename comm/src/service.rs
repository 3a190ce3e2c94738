//! The library's own threads.

use std::io;
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow};

/// Starts a thread that takes no signals: those of the process are for the program's own threads.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    // A new thread has the mask of the one that starts it.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let thread = Builder::new().name(name.into()).spawn(body);
    before.thread_set_mask()?;
    thread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_the_library_takes_no_signals_and_its_maker_does() {
        let before = SigSet::thread_get_mask().unwrap();
        let thread = spawn("test", || {
            let mask = SigSet::thread_get_mask().unwrap();
            // SIGKILL and SIGSTOP cannot be blocked, and libc keeps two for itself.
            let blocked = |signal| mask.contains(signal);
            use nix::sys::signal::Signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
            assert!([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD].into_iter().all(blocked));
        });
        thread.unwrap().join().unwrap();
        assert_eq!(SigSet::thread_get_mask().unwrap(), before);
    }
}
