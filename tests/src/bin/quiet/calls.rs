//! Which system calls this thread makes, told by Linux's syscall user dispatch.
//!
//! A call that is caught is not carried out: it returns as if a signal had come first. Only the first
//! one after each [`watch`] is caught.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// What a waiting rank calls to let others have its core.
pub(crate) const YIELD: i64 = libc::SYS_sched_yield;

/// The kernel reads it at every system call of the thread.
static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
const ALLOW: u8 = 0; // SYSCALL_DISPATCH_FILTER_ALLOW
const BLOCK: u8 = 1; // SYSCALL_DISPATCH_FILTER_BLOCK
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_ON: usize = 1;

/// The number of the call that was caught, or [`NONE`].
static CAUGHT: AtomicI64 = AtomicI64::new(NONE);
const NONE: i64 = -1;

/// To be called once, by the one thread that is watched.
///
/// # Errors
///
/// If the kernel has no syscall user dispatch: Linux has it since 5.11, on some processors later.
pub(crate) fn prepare() -> io::Result<()> {
    // SAFETY: all zero is a value of the struct: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = caught as extern "C" fn(_, _, _) as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and does only what a handler may.
    if unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (no_offset, no_length) = (0_usize, 0_usize);
    let selector = SELECTOR.as_ptr();
    // SAFETY: the selector is a static, so the kernel may read it as long as the thread lives.
    let set = unsafe {
        libc::prctl(
            PR_SET_SYSCALL_USER_DISPATCH,
            PR_SYS_DISPATCH_ON,
            no_offset,
            no_length,
            selector,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From now on a system call of this thread is caught.
pub(crate) fn watch() {
    CAUGHT.store(NONE, Ordering::SeqCst);
    SELECTOR.store(BLOCK, Ordering::SeqCst);
}

/// The end of that; the call that was caught, if there was one.
pub(crate) fn unwatch() -> Option<i64> {
    SELECTOR.store(ALLOW, Ordering::SeqCst);
    Some(CAUGHT.load(Ordering::SeqCst)).filter(|&call| call != NONE)
}

/// Takes note of the call, and allows what follows: the return from this handler first.
extern "C" fn caught(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    SELECTOR.store(ALLOW, Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the third argument is the context of the interrupted thread, which
    // nobody else refers to while the handler runs.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let (number, result) = registers(context);
    CAUGHT.store(number, Ordering::SeqCst);
    *result = -i64::from(libc::EINTR) as _;
}

/// The number of a call that was not carried out, and where its result is put.
#[cfg(target_arch = "x86_64")]
fn registers(context: &mut libc::ucontext_t) -> (i64, &mut i64) {
    let result = &mut context.uc_mcontext.gregs[libc::REG_RAX as usize];
    (*result, result)
}

/// The number of a call that was not carried out, and where its result is put.
#[cfg(target_arch = "aarch64")]
fn registers(context: &mut libc::ucontext_t) -> (i64, &mut u64) {
    let registers = &mut context.uc_mcontext.regs;
    (registers[8] as i64, &mut registers[0])
}
