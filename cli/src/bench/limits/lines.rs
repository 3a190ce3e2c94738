//! Two cache lines that two processes share.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// How long one process waits for the other's write.
const PATIENCE: Duration = Duration::from_secs(10);

/// A line for each direction, mapped from a memfd. Each is written by one process and read by the
/// other.
pub(super) struct Lines {
    pair: NonNull<Pair>,
}

/// Two lines far enough apart that fetching one does not fetch the other.
#[repr(C)]
struct Pair {
    there: Line,
    back: Line,
}

#[repr(C, align(128))]
struct Line(AtomicU64);

impl Lines {
    /// Makes a memfd that holds both lines, zero, and cannot shrink.
    pub(super) fn memory() -> Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("tutti-limits", flags).context("cannot make a memfd")?;
        ftruncate(&memory, size_of::<Pair>() as u64).context("cannot size a memfd")?;
        fcntl_add_seals(&memory, SealFlags::SHRINK).context("cannot seal a memfd")?;
        Ok(memory)
    }

    /// Maps the lines. `memory` may be closed afterwards.
    ///
    /// # Errors
    ///
    /// If it is not what [`memory`](Lines::memory) makes.
    pub(super) fn map(memory: impl AsFd) -> Result<Self> {
        let seals = fcntl_get_seals(&memory).context("this is no memfd")?;
        let size = fstat(&memory).context("cannot ask for the size of a memfd")?.st_size;
        let whole = seals.contains(SealFlags::SHRINK) && size >= size_of::<Pair>() as i64;
        ensure!(whole, "this is not the memory of two lines");
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches no memory in use.
        let address = unsafe {
            mmap(ptr::null_mut(), size_of::<Pair>(), protection, MapFlags::SHARED, &memory, 0)
        };
        let address = address.context("cannot map a memfd")?;
        Ok(Lines { pair: NonNull::new(address.cast()).context("mapped at address 0")? })
    }

    /// Writes the values, each once its predecessor has come back.
    pub(super) fn serve(&self, values: Range<u64>) -> Result<()> {
        let pair = self.pair();
        for value in values {
            pair.there.write(value);
            pair.back.await_value(value)?;
        }
        Ok(())
    }

    /// Writes the values back, each once it has come.
    pub(super) fn answer(&self, values: Range<u64>) -> Result<()> {
        let pair = self.pair();
        for value in values {
            pair.there.await_value(value)?;
            pair.back.write(value);
        }
        Ok(())
    }

    fn pair(&self) -> &Pair {
        // SAFETY: the mapping starts on a page, so it is aligned; it is as long as a `Pair`, and
        // so is the file behind it, which cannot shrink; it lasts as long as `self`. Any bytes
        // are a `Pair`, and the other process changes them by atomic writes only.
        unsafe { self.pair.as_ref() }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // SAFETY: `map` made the mapping with this address and length, and no reference to it
        // outlives `self`.
        let unmapped = unsafe { munmap(self.pair.as_ptr().cast(), size_of::<Pair>()) };
        debug_assert!(unmapped.is_ok());
    }
}

impl Line {
    fn write(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    /// Polls until the line holds `value`. Gives up the core now and then, in case the other
    /// process needs it.
    fn await_value(&self, value: u64) -> Result<()> {
        for _ in 0..1 << 12 {
            if self.0.load(Ordering::Acquire) == value {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        let start = Instant::now();
        while self.0.load(Ordering::Acquire) != value {
            if start.elapsed() > PATIENCE {
                bail!("the other process wrote nothing for {PATIENCE:?}");
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_memory_answer_each_other() {
        let memory = Lines::memory().unwrap();
        let (here, there) = (Lines::map(&memory).unwrap(), Lines::map(&memory).unwrap());
        std::thread::scope(|scope| {
            let answers = scope.spawn(|| Lines::map(&memory).unwrap().answer(1..101));
            here.serve(1..101).unwrap();
            answers.join().unwrap().unwrap();
        });
        assert_eq!(there.pair().back.0.load(Ordering::Acquire), 100);
    }

    #[test]
    fn other_files_are_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Lines::map(&file).is_err());
        let empty = memfd_create("empty", MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(Lines::map(&empty).is_err());
    }
}
