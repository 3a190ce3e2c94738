//! Sends and receives between two ranks, alone and in groups.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tutti_topo::Rank;

use crate::data_type::{bytes_of, bytes_of_mut};
use crate::error::{Error, ErrorKind};
use crate::message::{End, Envelope, Message};
use crate::point_operation::{Bytes, Moving, Transfer};
use crate::work::Held;
use crate::{Communicator, DataType, Element, Work};

/// Messages between two ranks; the others take no part.
///
/// A send and its receive agree in count, type and tag. What does not, or a collective at the one end
/// where a message is at the other, is an error on both that names the two calls. Messages from one
/// rank to another arrive in the order they are sent, and are matched in that order: a tag does
/// not select (see [`Envelope`]). Sends and receives share their links with the collectives, so on any
/// two ranks they have the same place among the collectives that both take part in.
impl Communicator {
    /// Sends `data` to a rank, with tag 0 or as an [`Envelope`] says. Blocks until the transport has
    /// taken all of it: a small message may be under way then, a large one waits for its receive. To
    /// exchange with a rank, use [`batch`](Communicator::batch): two ranks that both send first wait for
    /// each other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] for a rank outside the group, or for this rank itself if no receive
    /// was started before; [`ErrorKind::Failed`] as for
    /// [`all_reduce`](Communicator::all_reduce). A mismatch that the receiver finds after this has
    /// returned is told by the next call.
    ///
    /// ```
    /// use tutti::{Communicator, Config, Envelope, Rank};
    ///
    /// let comm = Communicator::from_env(Config::default())?;
    /// let mut token = [0_f32; 4];
    /// match comm.rank() {
    ///     Rank(0) if comm.size() > 1 => comm.send(&token, Envelope { peer: Rank(1), tag: 9 })?,
    ///     Rank(1) => comm.recv(&mut token, Envelope { peer: Rank(0), tag: 9 })?,
    ///     _ => {}
    /// }
    /// # Ok::<(), tutti::Error>(())
    /// ```
    pub fn send<T: Element>(&self, data: &[T], to: impl Into<Envelope>) -> Result<(), Error> {
        self.batch(&mut [Point::send(data, to)])
    }

    /// As [`send`](Communicator::send) for elements whose type is known when the program runs.
    ///
    /// # Errors
    ///
    /// As `send`; [`ErrorKind::Argument`] if `data` holds no whole number of elements.
    pub fn send_bytes(
        &self,
        data: &[u8],
        data_type: DataType,
        to: impl Into<Envelope>,
    ) -> Result<(), Error> {
        self.batch(&mut [Point::send_bytes(data, data_type, to)])
    }

    /// Fills `data` with the next message of a rank. Blocks until all of it has come.
    ///
    /// # Errors
    ///
    /// As [`send`](Communicator::send). The contents of `data` are then undefined.
    pub fn recv<T: Element>(&self, data: &mut [T], from: impl Into<Envelope>) -> Result<(), Error> {
        self.batch(&mut [Point::recv(data, from)])
    }

    /// As [`recv`](Communicator::recv) for elements whose type is known when the program runs.
    ///
    /// # Errors
    ///
    /// As `recv`; [`ErrorKind::Argument`] if `data` holds no whole number of elements.
    pub fn recv_bytes(
        &self,
        data: &mut [u8],
        data_type: DataType,
        from: impl Into<Envelope>,
    ) -> Result<(), Error> {
        self.batch(&mut [Point::recv_bytes(data, data_type, from)])
    }

    /// Fills `data` with the message of whichever rank sends one first, and says whose it is. Of
    /// several that are there, each rank has its turn. A rank whose next bytes belong to a collective is
    /// left alone. Blocks until all of the message has come.
    ///
    /// # Errors
    ///
    /// As [`recv`](Communicator::recv); a message of another count, type or tag is a mismatch also
    /// where another rank's would fit.
    pub fn recv_any<T: Element>(&self, data: &mut [T], tag: u32) -> Result<Rank, Error> {
        self.recv_any_bytes(bytes_of_mut(data), T::DATA_TYPE, tag)
    }

    /// As [`recv_any`](Communicator::recv_any) for elements whose type is known when the program runs.
    ///
    /// # Errors
    ///
    /// As `recv_any`; [`ErrorKind::Argument`] if `data` holds no whole number of elements.
    pub fn recv_any_bytes(
        &self,
        data: &mut [u8],
        data_type: DataType,
        tag: u32,
    ) -> Result<Rank, Error> {
        let mut points = [Point::recv_any_bytes(data, data_type, tag)];
        self.batch(&mut points)?;
        Ok(points[0].source.expect(CAME))
    }

    /// Does all of `points` at once, in whatever order they can be done: no order on any rank, be it
    /// of whatever size, makes two of them wait for each other. Only messages between the same two ranks
    /// in one direction keep their order. Blocks until all are done.
    ///
    /// A message of this rank to itself needs both its ends here.
    ///
    /// # Errors
    ///
    /// As [`send`](Communicator::send) and [`recv`](Communicator::recv).
    ///
    /// ```
    /// use tutti::{Communicator, Config, Point, Rank};
    ///
    /// // Each rank sends to the next one and receives from the one before.
    /// let comm = Communicator::from_env(Config::default())?;
    /// let (rank, size) = (comm.rank().0, comm.size());
    /// let (mine, mut theirs) = (vec![rank as i32; 1000], vec![0; 1000]);
    /// comm.batch(&mut [
    ///     Point::send(&mine, Rank((rank + 1) % size)),
    ///     Point::recv(&mut theirs, Rank((rank + size - 1) % size)),
    /// ])?;
    /// assert_eq!(theirs[0] as u32, (rank + size - 1) % size);
    /// # Ok::<(), tutti::Error>(())
    /// ```
    pub fn batch(&self, points: &mut [Point<'_>]) -> Result<(), Error> {
        let transfers = points
            .iter()
            .map(|point| self.transfer(point.end, point.tag, point.data_type, point.bytes.len()));
        let mut transfers = transfers.collect::<Result<Vec<_>, Error>>()?;
        let moving = transfers.iter_mut().zip(points.iter_mut());
        let mut moving: Vec<_> = moving
            .map(|(transfer, point)| Moving { transfer, bytes: point.bytes.reborrow() })
            .collect();
        self.shared.lock().run_points(&mut moving)?;
        for (transfer, point) in transfers.iter().zip(points) {
            point.source = transfer.end().peer().filter(|_| !point.end.is_send());
        }
        Ok(())
    }

    /// Starts a [`send`](Communicator::send) of `data` and returns at once. Sends and receives that are
    /// started one after another move together, as in a [`batch`](Communicator::batch), also with a
    /// blocking send, receive or batch that follows them; a collective waits for all of them, and
    /// they for the collectives before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Argument`] for a rank outside the group; [`ErrorKind::Failed`] if the
    /// communicator has failed before.
    pub fn start_send<T: Element>(
        &self,
        data: Vec<T>,
        to: impl Into<Envelope>,
    ) -> Result<Work<T>, Error> {
        let Envelope { peer, tag } = to.into();
        let transfer = self.transfer(End::To(peer), tag, T::DATA_TYPE, bytes_of(&data).len())?;
        self.start_point(transfer, data)
    }

    /// Starts a [`recv`](Communicator::recv) into `data` and returns at once; see
    /// [`start_send`](Communicator::start_send).
    ///
    /// # Errors
    ///
    /// As `start_send`.
    pub fn start_recv<T: Element>(
        &self,
        data: Vec<T>,
        from: impl Into<Envelope>,
    ) -> Result<Work<T>, Error> {
        let Envelope { peer, tag } = from.into();
        let transfer = self.transfer(End::From(peer), tag, T::DATA_TYPE, bytes_of(&data).len())?;
        self.start_point(transfer, data)
    }

    /// Starts a [`recv_any`](Communicator::recv_any) into `data` and returns at once; see
    /// [`start_send`](Communicator::start_send).
    ///
    /// # Errors
    ///
    /// As `start_send`.
    pub fn start_recv_any<T: Element>(
        &self,
        data: Vec<T>,
        tag: u32,
    ) -> Result<IncomingWork<T>, Error> {
        let transfer = self.transfer(End::FromAny, tag, T::DATA_TYPE, bytes_of(&data).len())?;
        let source = Arc::new(OnceLock::new());
        let work = self.start_point(transfer.telling(Arc::clone(&source)), data)?;
        Ok(IncomingWork { work, source })
    }

    fn start_point<T: Element>(&self, transfer: Transfer, data: Vec<T>) -> Result<Work<T>, Error> {
        let id = self
            .shared
            .lock()
            .enqueue_point(transfer, Box::new(Held { from: None, into: data }))?;
        Ok(Work::new(Arc::clone(&self.shared), id))
    }

    fn transfer(
        &self,
        end: End,
        tag: u32,
        data_type: DataType,
        len: usize,
    ) -> Result<Transfer, Error> {
        let refuse = |what: String| {
            let name = if end.is_send() { "send" } else { "recv" };
            Err(Error::new(Some(self.rank()), ErrorKind::Argument(format!("{name}: {what}"))))
        };
        if let Some(peer) = end.peer()
            && peer.0 >= self.size()
        {
            return refuse(format!("rank {peer} is outside a group of {}", self.size()));
        }
        let size = data_type.size();
        if !len.is_multiple_of(size) {
            return refuse(format!(
                "{len} bytes are no whole number of {data_type} ({size} bytes each)"
            ));
        }
        Ok(Transfer::new(Message { end, tag, data_type, count: (len / size) as u64 }))
    }
}

/// Why a message that was received has a source.
const CAME: &str = "a message that has come has come from a rank";

/// One send or receive of a [`batch`](Communicator::batch). It can be used again, for the next batch.
pub struct Point<'a> {
    end: End,
    tag: u32,
    data_type: DataType,
    bytes: Bytes<'a>,
    source: Option<Rank>,
}

impl<'a> Point<'a> {
    /// Sends `data`; see [`Communicator::send`].
    pub fn send<T: Element>(data: &'a [T], to: impl Into<Envelope>) -> Point<'a> {
        Point::send_bytes(bytes_of(data), T::DATA_TYPE, to)
    }

    /// As [`send`](Point::send) for elements whose type is known when the program runs.
    pub fn send_bytes(data: &'a [u8], data_type: DataType, to: impl Into<Envelope>) -> Point<'a> {
        let Envelope { peer, tag } = to.into();
        Point { end: End::To(peer), tag, data_type, bytes: Bytes::Out(data), source: None }
    }

    /// Receives into `data`; see [`Communicator::recv`].
    pub fn recv<T: Element>(data: &'a mut [T], from: impl Into<Envelope>) -> Point<'a> {
        Point::recv_bytes(bytes_of_mut(data), T::DATA_TYPE, from)
    }

    /// As [`recv`](Point::recv) for elements whose type is known when the program runs.
    pub fn recv_bytes(
        data: &'a mut [u8],
        data_type: DataType,
        from: impl Into<Envelope>,
    ) -> Point<'a> {
        let Envelope { peer, tag } = from.into();
        Point { end: End::From(peer), tag, data_type, bytes: Bytes::In(data), source: None }
    }

    /// Receives into `data` from any rank; see [`Communicator::recv_any`]. Receives that follow it in the
    /// batch wait until it has its rank.
    pub fn recv_any<T: Element>(data: &'a mut [T], tag: u32) -> Point<'a> {
        Point::recv_any_bytes(bytes_of_mut(data), T::DATA_TYPE, tag)
    }

    /// As [`recv_any`](Point::recv_any) for elements whose type is known when the program runs.
    pub fn recv_any_bytes(data: &'a mut [u8], data_type: DataType, tag: u32) -> Point<'a> {
        Point { end: End::FromAny, tag, data_type, bytes: Bytes::In(data), source: None }
    }

    /// The rank whose message was received, after the batch; none for a send.
    pub fn source(&self) -> Option<Rank> {
        self.source
    }
}

/// A receive from any rank under way; see [`Work`].
#[must_use = "the buffer comes back by `wait`"]
pub struct IncomingWork<T> {
    work: Work<T>,
    source: Arc<OnceLock<Rank>>,
}

impl<T: Element> IncomingWork<T> {
    /// As [`Work::test`].
    pub fn test(&mut self) -> bool {
        self.work.test()
    }

    /// As [`Work::wait_for`].
    pub fn wait_for(&mut self, limit: Duration) -> bool {
        self.work.wait_for(limit)
    }

    /// As [`Work::wait`], with the rank whose message it is.
    ///
    /// # Errors
    ///
    /// As [`Work::wait`].
    pub fn wait(self) -> Result<(Vec<T>, Rank), Error> {
        let data = self.work.wait()?;
        Ok((data, *self.source.get().expect(CAME)))
    }
}
