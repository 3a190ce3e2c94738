//! How the segment's descriptor crosses the socket: one byte that carries it, one that confirms.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::geteuid;

const SEGMENT: u8 = b'S';
const MAPPED: u8 = b'M';

/// Hands over `file`. The few bytes sent before it leave room for this one, so it does not block.
pub(crate) fn give(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)), "there is space for one");
    let flags = SendFlags::NOSIGNAL;
    sendmsg(stream, &[IoSlice::new(&[SEGMENT])], &mut control, flags)?;
    Ok(())
}

/// Takes what [`give`] gave.
///
/// # Errors
///
/// `WouldBlock` if it has not come, `UnexpectedEof` if it will not, `InvalidData` if something
/// else came.
pub(crate) fn take(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    file.filter(|_| byte == [SEGMENT]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Tells the leader that its segment is mapped.
pub(crate) fn confirm(mut stream: &UnixStream) -> io::Result<()> {
    stream.write_all(&[MAPPED])
}

/// Reads what [`confirm`] sent; errors as those of [`take`].
pub(crate) fn confirmed(mut stream: &UnixStream) -> io::Result<()> {
    let mut byte = [0];
    match stream.read(&mut byte)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ if byte == [MAPPED] => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The user of the process at the other end, if it is neither ours nor root.
pub(crate) fn other_user(stream: &UnixStream) -> io::Result<Option<u32>> {
    let theirs = socket_peercred(stream.as_fd())?.uid;
    let trusted = theirs == geteuid() || theirs.is_root();
    Ok((!trusted).then_some(theirs.as_raw()))
}

#[cfg(test)]
mod tests {
    use rustix::fs::fstat;

    use super::*;

    #[test]
    fn the_descriptor_arrives_closed_on_exec() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        give(&ours, file.as_fd()).unwrap();
        let taken = take(&theirs).unwrap();
        assert_eq!(fstat(&taken).unwrap().st_ino, fstat(&file).unwrap().st_ino);
        let flags = rustix::io::fcntl_getfd(&taken).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_byte_without_descriptor_is_refused() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&[SEGMENT]).unwrap();
        assert_eq!(take(&theirs).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(ours);
        assert_eq!(take(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn processes_of_one_user_trust_each_other() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(other_user(&ours).unwrap(), None);
    }
}
