//! The communicator: a group of ranks and the calls they make together.

use std::sync::{Arc, Mutex, MutexGuard};

use tutti_topo::Rank;
use tutti_topo::fabric::Fabric;
use tutti_topo::plan::Plan;
use tutti_topo::schedule::Collective;
use tutti_transport::Transport;

use crate::bootstrap::{AbortHandle, Place};
use crate::call::Call;
use crate::config::Config;
use crate::data_type::{Element, bytes_of, bytes_of_mut};
use crate::engine::{Engine, Parts};
use crate::error::{Error, ErrorKind};
use crate::work::{Lent, Work};
use crate::{DataType, Reduction, UniqueId, start};

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
    shared: Arc<Shared>,
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
        if rank.0 >= size {
            let what = format!("rank {rank} is outside a group of {size}");
            return Err(Error::new(Some(rank), ErrorKind::Argument(what)));
        }
        let meet = (size > 1).then(|| (vec![id.address], id.secret.clone()));
        Communicator::join(Place { rank, size, meet }, config)
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

    fn assemble(parts: Parts, config: Config) -> Communicator {
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

    /// Replaces `data` by its element-wise combination over all ranks. Blocks until that is done.
    ///
    /// Every rank passes the same count, type and reduction. All ranks get the same bits, and a
    /// repeated run gets them again: the order of folding depends on group and plan alone. Integers
    /// wrap; NaN propagates, also through min and max; averages of integers divide toward zero.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Failed`]: a rank called something else, died, aborted, or nothing moved for
    /// [`Config::deadline`]. The contents of `data` are then undefined.
    pub fn all_reduce<T: Element>(
        &self,
        data: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        self.all_reduce_bytes(bytes_of_mut(data), T::DATA_TYPE, reduction)
    }

    /// As [`all_reduce`](Communicator::all_reduce), with the result in `into` and `from` unchanged.
    ///
    /// # Errors
    ///
    /// As `all_reduce`; [`ErrorKind::Argument`] if the two differ in length.
    pub fn all_reduce_into<T: Element>(
        &self,
        from: &[T],
        into: &mut [T],
        reduction: Reduction,
    ) -> Result<(), Error> {
        if from.len() != into.len() {
            let what = format!(
                "all_reduce_into from {} elements into {}: lengths must be equal",
                from.len(),
                into.len()
            );
            return Err(Error::new(Some(self.rank), ErrorKind::Argument(what)));
        }
        bytes_of_mut(into).copy_from_slice(bytes_of(from));
        self.all_reduce(into, reduction)
    }

    /// As [`all_reduce`](Communicator::all_reduce) for elements whose type is known when the program
    /// runs. `data` may have any alignment.
    ///
    /// # Errors
    ///
    /// As `all_reduce`; [`ErrorKind::Argument`] if `data` holds no whole number of elements.
    pub fn all_reduce_bytes(
        &self,
        data: &mut [u8],
        data_type: DataType,
        reduction: Reduction,
    ) -> Result<(), Error> {
        let call = self.call(Collective::AllReduce, data_type, reduction, data.len())?;
        self.shared.lock().run(call, data)
    }

    /// Replaces `data` by that of rank `root`. Blocks until this rank's part is done: where the plan
    /// is not fused, the root may return before the others have received, and hear of a mismatch
    /// only by its next call.
    ///
    /// # Errors
    ///
    /// As `all_reduce`; [`ErrorKind::Argument`] if `root` is no rank.
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: Rank) -> Result<(), Error> {
        self.broadcast_bytes(bytes_of_mut(data), T::DATA_TYPE, root)
    }

    /// As [`broadcast`](Communicator::broadcast) for elements whose type is known when the program runs.
    ///
    /// # Errors
    ///
    /// As `broadcast`; [`ErrorKind::Argument`] if `data` holds no whole number of elements.
    pub fn broadcast_bytes(
        &self,
        data: &mut [u8],
        data_type: DataType,
        root: Rank,
    ) -> Result<(), Error> {
        let call =
            self.call(Collective::Broadcast { root }, data_type, Reduction::Sum, data.len())?;
        self.shared.lock().run(call, data)
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    ///
    /// As `all_reduce`.
    pub fn barrier(&self) -> Result<(), Error> {
        let call = self.call(Collective::Barrier, DataType::U8, Reduction::Sum, 1)?;
        self.shared.lock().run(call, &mut [0])
    }

    /// Starts an [`all_reduce`](Communicator::all_reduce) of `data` and returns at once. The buffer comes
    /// back by [`Work::wait`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Failed`] if the communicator has failed before.
    pub fn start_all_reduce<T: Element>(
        &self,
        data: Vec<T>,
        reduction: Reduction,
    ) -> Result<Work<T>, Error> {
        self.start(Collective::AllReduce, data, reduction)
    }

    /// Starts a [`broadcast`](Communicator::broadcast) of `data` and returns at once.
    ///
    /// # Errors
    ///
    /// As `start_all_reduce`; [`ErrorKind::Argument`] if `root` is no rank.
    pub fn start_broadcast<T: Element>(&self, data: Vec<T>, root: Rank) -> Result<Work<T>, Error> {
        self.start(Collective::Broadcast { root }, data, Reduction::Sum)
    }

    /// Starts a [`barrier`](Communicator::barrier) and returns at once.
    ///
    /// # Errors
    ///
    /// As `start_all_reduce`.
    pub fn start_barrier(&self) -> Result<Work<u8>, Error> {
        self.start(Collective::Barrier, vec![0_u8], Reduction::Sum)
    }

    fn start<T: Element>(
        &self,
        collective: Collective,
        mut data: Vec<T>,
        reduction: Reduction,
    ) -> Result<Work<T>, Error> {
        let call = self.call(collective, T::DATA_TYPE, reduction, data.bytes().len())?;
        let id = self.shared.lock().enqueue(call, Box::new(data))?;
        Ok(Work::new(Arc::clone(&self.shared), id))
    }

    fn call(
        &self,
        collective: Collective,
        data_type: DataType,
        reduction: Reduction,
        len: usize,
    ) -> Result<Call, Error> {
        let refuse = |what: String| {
            let what = format!("{}: {what}", collective.name());
            Err(Error::new(Some(self.rank), ErrorKind::Argument(what)))
        };
        if let Collective::Broadcast { root } = collective
            && root.0 >= self.size
        {
            return refuse(format!("root {root} is outside a group of {}", self.size));
        }
        let size = data_type.size();
        if !len.is_multiple_of(size) {
            return refuse(format!(
                "{len} bytes are no whole number of {data_type} ({size} bytes each)"
            ));
        }
        Ok(Call { collective, data_type, reduction, count: (len / size) as u64 })
    }

    /// Gives every rank the blobs of all, by rank, over the control line: slow, small, and
    /// independent of the data path. Every rank must call it. Blocks until all have.
    ///
    /// # Errors
    ///
    /// As `all_reduce`.
    pub fn exchange(&self, blob: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        self.shared.lock().exchange(blob)
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

fn kind(me: Rank, parts: &Parts) -> &'static str {
    let others = parts.group.peers.iter().filter(|peer| peer.0 != me.0);
    let mut kinds = others.map(|peer| parts.transport.kind(*peer));
    match kinds.next() {
        None => "self",
        Some(first) if kinds.all(|kind| kind == first) => first,
        Some(_) => "mixed",
    }
}
