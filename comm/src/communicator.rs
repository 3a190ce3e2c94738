//! The communicator: a group of ranks and the calls they make together.

use std::sync::{Arc, Mutex, MutexGuard};

use tutti_topo::Rank;
use tutti_topo::fabric::Fabric;
use tutti_topo::plan::Plan;
use tutti_topo::schedule::Collective;
use tutti_transport::Transport;

use crate::bootstrap::{AbortHandle, Place};
use crate::config::Config;
use crate::data_type::{Element, bytes_of};
use crate::engine::{Engine, Parts};
use crate::error::{Error, ErrorKind};
use crate::request::{Job, Request};
use crate::stage::Buffers;
use crate::work::{Held, Work};
use crate::{Store, UniqueId, start};

/// A group of ranks that move and combine data together.
///
/// Every rank makes the same calls in the same order. A call may be made from any thread; calls
/// on one communicator run one after another. A failed operation ends the communicator, on all
/// ranks and with the same cause ([`ErrorKind::Failed`]); a refused argument leaves it as it was.
///
/// ```
/// use tutti::{Communicator, Config, Reduction};
///
/// // Under `tutti run -p 4` this is one of four ranks; started plainly, it is alone.
/// let comm = Communicator::from_env(Config::default())?;
/// let mut gradient = vec![1.0_f32; 1000];
/// comm.all_reduce(&mut gradient, Reduction::Sum)?;
/// assert_eq!(gradient[0], comm.size() as f32);
/// # Ok::<(), tutti::Error>(())
/// ```
pub struct Communicator {
    pub(crate) shared: Arc<Shared>,
    rank: Rank,
    size: u32,
    hosts: u32,
    transport: &'static str,
    abort: AbortHandle,
}

/// What the communicator and its works share.
pub(crate) struct Shared(Mutex<Engine>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Communicator {
    /// Joins the job that the launcher's variables describe ([`Config::launch`]): those of
    /// `tutti run`, torchrun, Open MPI, MPICH, Intel MPI, Slurm, or `RANK`, `WORLD_SIZE`, `MASTER_ADDR`
    /// and `MASTER_PORT`; docs/STARTING.md has the order. Without any of them this process is a
    /// communicator of one rank. Blocks until all ranks have joined.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Setting`] for a variable that is missing or makes no sense;
    /// [`ErrorKind::Start`] when ranks are missing after [`Config::start_deadline`] (it names
    /// them), were claimed twice, or were started with other settings.
    pub fn from_env(config: Config) -> Result<Communicator, Error> {
        let place = Place::from_config(&config)?;
        Communicator::join(place, config)
    }

    /// Joins, as rank `rank` of `size`, the rendezvous that `id` names. Blocks until all ranks
    /// have joined.
    ///
    /// # Errors
    ///
    /// As [`Communicator::from_env`].
    pub fn connect(
        id: &UniqueId,
        rank: Rank,
        size: u32,
        config: Config,
    ) -> Result<Communicator, Error> {
        check_seat(rank, size)?;
        let meet = (size > 1).then(|| (vec![id.address], id.secret.clone()));
        Communicator::join(Place { rank, size, meet }, config)
    }

    /// Joins, as rank `rank` of `size`, over a key-value store that all ranks reach: rank 0 opens a
    /// rendezvous, for as long as its process lives, and the store tells the others where it is.
    /// Blocks until all ranks have joined: up to [`Config::start_deadline`] for the store, and as
    /// long again for the ranks.
    ///
    /// The rendezvous is at the address that [`Config::socket_ifname`] and [`Config::port_range`]
    /// choose, else at that of the first interface to a network and any free port.
    ///
    /// # Errors
    ///
    /// As [`Communicator::from_env`]; [`ErrorKind::Start`] with the key where the store fails.
    pub fn from_store(
        store: &dyn Store,
        rank: Rank,
        size: u32,
        config: Config,
    ) -> Result<Communicator, Error> {
        check_seat(rank, size)?;
        let place = Place::from_store(store, rank, size, &config)?;
        Communicator::join(place, config)
    }

    /// A communicator over a transport that stands already, whose peer `i` is rank `i`. For tests and
    /// rehearsals: there is no hub, so no rank learns of another's death or abort.
    ///
    /// # Panics
    ///
    /// If the fabric has another number of ranks than `size`.
    pub fn over(
        transport: Box<dyn Transport>,
        rank: Rank,
        size: u32,
        fabric: Fabric,
        config: Config,
    ) -> Communicator {
        assert_eq!(fabric.ranks(), size, "the fabric and the group differ in size");
        let parts = start::over(transport, rank, fabric, &config);
        Communicator::assemble(parts, config)
    }

    fn join(place: Place, config: Config) -> Result<Communicator, Error> {
        config.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let parts = start::join(place, &config)?;
        Ok(Communicator::assemble(parts, config))
    }

    pub(crate) fn assemble(parts: Parts, config: Config) -> Communicator {
        let (rank, size) = (parts.group.me, parts.group.size());
        let hosts = parts.fabric.hosts().len() as u32;
        let transport = kind(rank, &parts);
        let abort =
            parts.monitor.as_ref().map_or(AbortHandle::none(), |monitor| monitor.abort_handle());
        let shared = Arc::new(Shared(Mutex::new(Engine::new(parts, config))));
        Communicator { shared, rank, size, hosts, transport, abort }
    }

    /// This process's rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// How many hosts the ranks are on.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// What carries this rank's bytes: `shm`, `tcp`, `mixed`, or `self` for a rank alone.
    pub fn transport_name(&self) -> &'static str {
        self.transport
    }

    /// Runs one collective on buffers of any alignment whose type is known when the program runs.
    /// Blocks until this rank's part is done. The typed methods say what each collective needs in
    /// `from` and `into`; without a `from` it runs in place.
    ///
    /// # Errors
    ///
    /// As the typed method of the collective.
    pub fn run(
        &self,
        request: &Request,
        from: Option<&[u8]>,
        into: &mut [u8],
    ) -> Result<(), Error> {
        let job = self.fit(request, from.map(<[u8]>::len), into.len())?;
        self.shared.lock().run(&job, Buffers { from, into })
    }

    /// Starts what [`run`](Communicator::run) does, and returns at once. The result comes by
    /// [`Work::wait`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] for buffers that do not fit, and [`ErrorKind::Failed`] if the
    /// communicator has failed before.
    pub fn start<T: Element>(
        &self,
        request: &Request,
        from: Option<Vec<T>>,
        into: Vec<T>,
    ) -> Result<Work<T>, Error> {
        let lengths = (from.as_deref().map(|from| bytes_of(from).len()), bytes_of(&into).len());
        let job = self.fit(request, lengths.0, lengths.1)?;
        let id = self.shared.lock().enqueue(job, Box::new(Held { from, into }))?;
        Ok(Work::new(Arc::clone(&self.shared), id))
    }

    fn fit(&self, request: &Request, from: Option<usize>, into: usize) -> Result<Job, Error> {
        request.fit(self.rank, self.size, from, into).map_err(|what| {
            let what = format!("{}: {what}", request.collective.name());
            Error::new(Some(self.rank), ErrorKind::Argument(what))
        })
    }

    /// Gives every rank the blobs of all, by rank, over the control line: slow, small, and
    /// independent of the data path. Every rank must call it. Blocks until all have.
    ///
    /// # Errors
    ///
    /// As `all_reduce`.
    pub fn exchange(&self, blob: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.shared.lock().exchange("exchange", blob)
    }

    /// The plan for a collective of so many bytes per rank: algorithm, predicted time, and why.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Plan`] if a forced algorithm does not fit.
    pub fn plan(&self, collective: Collective, bytes: u64) -> Result<Plan, Error> {
        self.shared.lock().plan(collective, bytes)
    }

    /// A handle by which any thread can end everything on this communicator.
    pub fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    /// Ends every operation on this communicator, on all ranks, now. Returns at once; may be
    /// called from any thread, and again.
    pub fn abort(&self) {
        self.abort.abort();
    }
}

fn check_seat(rank: Rank, size: u32) -> Result<(), Error> {
    if rank.0 < size {
        return Ok(());
    }
    let what = format!("rank {rank} is outside a group of {size}");
    Err(Error::new(Some(rank), ErrorKind::Argument(what)))
}

fn kind(me: Rank, parts: &Parts) -> &'static str {
    let others = parts.group.peers.iter().filter(|peer| peer.0 != me.0);
    let mut kinds = others.map(|peer| parts.transport.kind(*peer));
    match kinds.next() {
        None => "self",
        Some(first) if kinds.all(|kind| kind == first) => first,
        Some(_) => "mixed",
    }
}
