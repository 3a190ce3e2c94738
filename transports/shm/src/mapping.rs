//! Mapped memory: the only module that makes references to what other processes write.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A range of a file, mapped shared, readable and writable until the value is dropped.
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is reached through this value
// alone.
unsafe impl Send for Region {}

/// Types that may live in memory that other processes write.
///
/// # Safety
///
/// The type consists of atomics only, so any bits are a value of it and concurrent writes are
/// no data race.
pub(crate) unsafe trait Shared {}

impl Region {
    /// Maps `len` bytes of `file` from `offset` on; both are multiples of the page size. Access
    /// beyond the end of the file is a fault, so the caller makes sure that it is long enough.
    pub(crate) fn map(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Region> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system picks an address where nothing is mapped.
        let base = unsafe { mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, offset)? };
        Ok(Region::own(base, len))
    }

    /// As [`map`](Region::map), but maps the bytes twice in a row: the region is `2 * len` long,
    /// and any `len` bytes that wrap around the end of the range are contiguous in it.
    pub(crate) fn mirror(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Region> {
        let reserved = 2 * len;
        // SAFETY: the system picks an address where nothing is mapped.
        let base = unsafe {
            mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), MapFlags::PRIVATE)?
        };
        let region = Region::own(base, reserved);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
        for half in [0, len] {
            // SAFETY: both halves lie in the range reserved above, in which nobody else maps
            // anything and to which no reference exists yet. Should the second mapping fail,
            // dropping `region` unmaps all of it.
            unsafe { mmap(base.byte_add(half), len, access, flags, file, offset)? };
        }
        Ok(region)
    }

    fn own(base: *mut core::ffi::c_void, len: usize) -> Region {
        let base = NonNull::new(base.cast()).expect("the system maps nothing at address 0");
        Region { base, len }
    }

    /// Maps in all pages of a range, which begins and ends on pages and has memory behind it, so
    /// that no access has to wait for that. Systems that cannot (before Linux 5.14) do it at each page's first access.
    pub(crate) fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        let at = self.range(offset, len);
        // SAFETY: in bounds by `range`; the advice changes no byte.
        match unsafe { madvise(at.cast(), len, Advice::LinuxPopulateWrite) } {
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(refused) => Err(refused.into()),
        }
    }

    /// The atomics at `offset`.
    pub(crate) fn at<T: Shared>(&self, offset: usize) -> &T {
        let at = self.range(offset, size_of::<T>()).cast::<T>();
        assert!(at.is_aligned());
        // SAFETY: in bounds and aligned by the asserts; any bits are a `T`, and concurrent access
        // to it is atomic, by `Shared`; the mapping lives as long as the borrow.
        unsafe { &*at }
    }

    /// The `len` bytes from `offset` on.
    ///
    /// # Safety
    ///
    /// While the slice lives nobody who keeps to the protocol writes these bytes, and the writes
    /// to them before happened before this call.
    pub(crate) unsafe fn slice(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: in bounds by `range`; stable by the duty of the caller; the mapping lives as
        // long as the borrow.
        unsafe { std::slice::from_raw_parts(self.range(offset, len), len) }
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    ///
    /// Nobody who keeps to the protocol reads or writes these bytes now, no slice of them lives,
    /// and the accesses to them before happened before this call.
    pub(crate) unsafe fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.range(offset, bytes.len());
        // SAFETY: in bounds by `range`, unshared by the duty of the caller; `bytes` is not part of
        // the region, as no slice of the bytes written lives.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn range(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: within the mapping by the assert.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by this value, and no borrow of it outlives this value.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}
