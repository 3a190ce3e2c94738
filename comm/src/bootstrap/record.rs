//! The operation a rank is in, written by the rank without a lock and read by its monitor thread.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::wire::Record;
use crate::call::Fingerprint;

/// A fingerprint and whether the rank is still inside; a sequence lock with one writer.
#[derive(Default)]
pub(crate) struct RecordCell {
    /// Odd while the words are being written; 0 before the first operation.
    version: AtomicU64,
    words: [AtomicU64; 4],
    inside: AtomicU64,
}

impl RecordCell {
    /// The rank enters an operation. Only the holder of the communicator's lock calls this.
    pub(crate) fn enter(&self, print: &Fingerprint) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (cell, word) in self.words.iter().zip(print.words()) {
            cell.store(word, Ordering::Relaxed);
        }
        self.inside.store(1, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// The rank has left the operation it entered last.
    pub(crate) fn leave(&self) {
        self.inside.store(0, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Record {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let words = [0, 1, 2, 3].map(|i: usize| self.words[i].load(Ordering::Relaxed));
            let inside = self.inside.load(Ordering::Relaxed) == 1;
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return Record { print: (before > 0).then_some(words), inside };
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, DataType, Reduction};
    use tutti_topo::schedule::Collective;

    #[test]
    fn reader_never_sees_half_of_a_record() {
        let cell = RecordCell::default();
        assert_eq!(cell.read(), Record::default());
        let print = |n: u64| {
            let call = Call {
                collective: Collective::AllReduce,
                data_type: DataType::F32,
                reduction: Reduction::Sum,
                count: n,
                counts: 0,
            };
            Fingerprint::new(&call, n, n as u32)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (1..20_000).for_each(|n| cell.enter(&print(n))));
            let mut last = 0;
            while last < 19_999 {
                let Some(seen) = cell.read().print() else { continue };
                assert_eq!(seen, print(seen.sequence()));
                assert!(seen.sequence() >= last);
                last = seen.sequence();
            }
        });
    }
}
