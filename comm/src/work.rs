//! Operations that run while the caller does something else.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::communicator::Shared;
use crate::data_type::{Element, bytes_of, bytes_of_mut};
use crate::error::Error;
use crate::stage::Buffers;

/// An operation under way that holds the caller's buffer until it is done.
///
/// Operations of one communicator run in the order they were started. They move when any call of
/// the communicator, or of one of its works, waits or tests. Dropping a work does not cancel it:
/// it completes in its turn and its result is thrown away.
#[must_use = "the buffer comes back by `wait`"]
pub struct Work<T> {
    shared: Arc<Shared>,
    id: u64,
    done: bool,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Work<T> {
    pub(crate) fn new(shared: Arc<Shared>, id: u64) -> Self {
        Work { shared, id, done: false, element: PhantomData }
    }

    /// Moves what can be moved now and says whether the operation is over, well or not. Does not
    /// block, except for other threads that are in a call of the same communicator.
    pub fn test(&mut self) -> bool {
        self.done = self.done || self.shared.lock().turn(self.id, Some(Instant::now()));
        self.done
    }

    /// Waits for at most `limit` and says whether the operation is over, well or not. If it is
    /// not, nothing has failed: test or wait again.
    pub fn wait_for(&mut self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        self.done = self.done || self.shared.lock().turn(self.id, until);
        self.done
    }

    /// Waits until the operation is done and hands over the buffer with its result. Blocks no
    /// longer than [`Config::deadline`](crate::Config::deadline) without anything moving.
    ///
    /// # Errors
    ///
    /// As the blocking call of the same name. The buffer is lost.
    pub fn wait(mut self) -> Result<Vec<T>, Error> {
        let mut state = self.shared.lock();
        state.turn(self.id, None);
        self.done = true;
        let buffer = state.take(self.id)?;
        drop(state);
        let buffer: Box<dyn Any> = buffer;
        let held: Box<Held<T>> =
            buffer.downcast().expect("the buffers are those this work was started with");
        Ok(held.into)
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.shared.lock().forget(self.id);
    }
}

/// Buffers that the communicator holds for a while.
pub(crate) trait Lent: Any + Send {
    fn lend(&mut self) -> Buffers<'_>;
}

/// The buffers of a started operation; without a `from` it runs in place.
pub(crate) struct Held<T> {
    pub(crate) from: Option<Vec<T>>,
    pub(crate) into: Vec<T>,
}

impl<T: Element> Lent for Held<T> {
    fn lend(&mut self) -> Buffers<'_> {
        Buffers { from: self.from.as_deref().map(bytes_of), into: bytes_of_mut(&mut self.into) }
    }
}
