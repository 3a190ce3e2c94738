//! A barrier that names who is missing, over the control line.

use std::time::Duration;

use super::Engine;
use crate::Communicator;
use crate::error::{Error, ErrorKind};

impl Communicator {
    /// Returns when every rank has called it, or else, after `limit`, names the ranks that have not, with
    /// host and process id, on all ranks that have.
    ///
    /// It goes over the control line, past what is under way on the data path: operations that were
    /// started go on afterwards, and the communicator stays usable. The first caller's limit to
    /// pass ends the barrier for all: a rank that calls it later gets the same error at once, and
    /// the next call of each rank is the next barrier.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Missing`] if ranks are missing; [`ErrorKind::Failed`] if the communicator
    /// fails or has failed; [`ErrorKind::System`] if the rendezvous does not answer.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use tutti::{Communicator, Config, ErrorKind};
    ///
    /// let comm = Communicator::from_env(Config::default())?;
    /// match comm.barrier_monitored(Duration::from_secs(10)) {
    ///     Err(error) if matches!(error.kind, ErrorKind::Missing { .. }) => eprintln!("{error}"),
    ///     result => result?,
    /// }
    /// # Ok::<(), tutti::Error>(())
    /// ```
    pub fn barrier_monitored(&self, limit: Duration) -> Result<(), Error> {
        self.shared.lock().barrier_monitored(limit)
    }
}

const NAME: &str = "barrier_monitored";

impl Engine {
    fn barrier_monitored(&mut self, limit: Duration) -> Result<(), Error> {
        self.check_usable(&NAME)?;
        let Some(monitor) = &mut self.parts.monitor else {
            let what =
                "it needs a control line, which a communicator over a given transport has not";
            let alone = self.parts.group.size() == 1;
            let refused = || self.error(NAME.into(), ErrorKind::Argument(what.into()));
            return if alone { Ok(()) } else { Err(refused()) };
        };
        let kind = match monitor.barrier(limit) {
            Ok((missing, _)) if missing.is_empty() => return Ok(()),
            Ok((missing, after)) => {
                let members =
                    missing.iter().filter_map(|rank| self.parts.members.get(*rank as usize));
                ErrorKind::Missing { members: members.cloned().collect(), after }
            }
            Err(Some(cause)) => {
                self.failed.get_or_insert_with(|| cause.clone());
                ErrorKind::Failed(cause)
            }
            Err(None) => ErrorKind::System {
                what: "the rendezvous does not answer".into(),
                error: std::io::ErrorKind::TimedOut.into(),
            },
        };
        Err(self.error(NAME.into(), kind))
    }
}
