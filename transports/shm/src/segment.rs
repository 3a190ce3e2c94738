//! The memory that the members of a host share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create,
};
use rustix::io::{pread, pwrite};
use tutti_transport::Peer;

use crate::error::Error;
use crate::layout::{HEADER, Layout, Options};
use crate::mapping::{Region, Shared};
use crate::ring::Indices;
use crate::waker::Member;

const MAGIC: u64 = u64::from_le_bytes(*b"tuttishm");
/// Of the layout and of the protocols on it.
const VERSION: u64 = 2;

/// A segment: its control part and the messages mapped, the rings to be mapped on demand.
pub(crate) struct Segment {
    file: OwnedFd,
    common: Region,
    layout: Layout,
}

impl Segment {
    /// Makes a segment for `peers`; all zero but for the header.
    pub(crate) fn create(peers: &[Peer], options: &Options) -> Result<Segment, Error> {
        let layout = Layout::new(peers.len(), options)?;
        let (control, total) = (layout.control(), layout.total());
        let file = memfd_create("tutti-shm", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(Error::io("cannot make anonymous shared memory (memfd)"))?;
        ftruncate(&file, total)
            .map_err(Error::io(format!("cannot size the shared memory to {total} bytes")))?;
        commit(file.as_fd(), 0, control as u64).map_err(Error::io(format!(
            "cannot commit {control} bytes of shared memory for {} members: free memory, raise \
             the memory limit, or choose smaller board_bytes",
            peers.len()
        )))?;
        // Nobody can make a mapping fault by shrinking the file.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(Error::io("cannot seal the size of the shared memory"))?;
        let header = header(&layout, peers);
        match pwrite(&file, &header, 0) {
            Ok(written) => assert_eq!(written, header.len(), "the file is longer and committed"),
            Err(refused) => {
                return Err(Error::io("cannot write to the shared memory")(refused));
            }
        }
        Segment::map(file, layout)
    }

    /// The segment in `file`, if it is one made for `peers`.
    pub(crate) fn open(file: OwnedFd, peers: &[Peer]) -> Result<Segment, Error> {
        let misfit = |what: String| Err(Error::Segment { what });
        let seals = fcntl_get_seals(&file).map_err(Error::io("not a memfd"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return misfit("its size is not sealed".into());
        }
        let layout = read_layout(file.as_fd(), peers.len())?;
        let size = fstat(&file).map_err(Error::io("cannot size the leader's file"))?.st_size;
        if u64::try_from(size) != Ok(layout.total()) {
            return misfit(format!("its size is {size} bytes and not {}", layout.total()));
        }
        let mut found = vec![0; 4 * peers.len()];
        read_exactly(file.as_fd(), &mut found, HEADER as u64)?;
        if found != numbers(peers) {
            return misfit(format!("it is not for the peers {peers:?}"));
        }
        Segment::map(file, layout)
    }

    fn map(file: OwnedFd, layout: Layout) -> Result<Segment, Error> {
        let len = layout.common();
        let common = Region::map(file.as_fd(), 0, len)
            .map_err(Error::io(format!("cannot map {len} bytes of shared memory")))?;
        Ok(Segment { file, common, layout })
    }

    /// The file, to be handed to another member.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The control part, and the messages behind it.
    pub(crate) fn common(&self) -> &Region {
        &self.common
    }

    /// The doorbell and address of a member.
    pub(crate) fn member(&self, member: usize) -> &Member {
        self.common.at(self.layout.member(member))
    }

    /// The indices of a ring.
    pub(crate) fn indices(&self, from: usize, to: usize) -> &Indices {
        self.common.at(self.layout.indices(from, to))
    }

    /// Makes sure that a member's messages have memory, and that it is mapped here: afterwards
    /// neither writes nor reads of it are interrupted.
    pub(crate) fn commit_messages(&self, member: usize) -> io::Result<()> {
        let (at, len) = (self.layout.messages(member), self.layout.board_bytes);
        commit(self.file(), at as u64, len as u64)?;
        self.common.populate(at, len)
    }

    /// Makes sure that the bytes of a ring are there to be written.
    pub(crate) fn commit_ring(&self, from: usize, to: usize) -> io::Result<()> {
        let len = self.layout.ring_bytes as u64;
        commit(self.file(), self.layout.data(from, to), len)
    }

    /// Maps the bytes of a ring, twice in a row.
    pub(crate) fn map_ring(&self, from: usize, to: usize) -> io::Result<Region> {
        Region::mirror(self.file(), self.layout.data(from, to), self.layout.ring_bytes)
    }
}

// SAFETY: two atomics on their cache lines, and padding.
unsafe impl Shared for Indices {}

/// Without this a write to the mapping would be killed by SIGBUS when memory runs out.
fn commit(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match fallocate(file, FallocateFlags::empty(), offset, len) {
            Err(rustix::io::Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

fn header(layout: &Layout, peers: &[Peer]) -> Vec<u8> {
    let words = [
        MAGIC,
        VERSION,
        layout.members as u64,
        layout.ring_bytes as u64,
        layout.board_bytes as u64,
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(HEADER, 0);
    bytes.extend(numbers(peers));
    bytes
}

fn numbers(peers: &[Peer]) -> Vec<u8> {
    peers.iter().flat_map(|peer| peer.0.to_le_bytes()).collect()
}

/// The layout that the header in `file` declares, checked but for the size of the file.
fn read_layout(file: BorrowedFd<'_>, expected: usize) -> Result<Layout, Error> {
    let mut bytes = [0; HEADER];
    read_exactly(file, &mut bytes, 0)?;
    let word = |at: usize| {
        let bytes = bytes[8 * at..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let misfit = |what: String| Err(Error::Segment { what });
    if word(0) != MAGIC {
        return misfit("it does not start as one of Tutti's".into());
    }
    if word(1) != VERSION {
        return misfit(format!("its layout has version {}, ours has {VERSION}", word(1)));
    }
    if word(2) != expected as u64 {
        return misfit(format!("it is for {} members and not {expected}", word(2)));
    }
    let size = |at| usize::try_from(word(at)).unwrap_or(usize::MAX);
    Layout::new(expected, &Options { ring_bytes: size(3), board_bytes: size(4) })
        .map_err(|why| Error::Segment { what: why.to_string() })
}

fn read_exactly(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> Result<(), Error> {
    let (read, len) = (
        pread(file, &mut *into, offset).map_err(Error::io("cannot read the leader's file"))?,
        into.len(),
    );
    if read < len {
        let what = format!("it ends after {} bytes", offset + read as u64);
        return Err(Error::Segment { what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const PEERS: [Peer; 2] = [Peer(3), Peer(5)];

    impl Segment {
        /// From now on the system refuses to commit or map.
        pub(crate) fn lose_write_access(&mut self) {
            let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            self.file = std::fs::File::open(path).unwrap().into();
        }
    }

    fn opened(segment: &Segment, peers: &[Peer]) -> Result<Segment, Error> {
        Segment::open(segment.file().try_clone_to_owned().unwrap(), peers)
    }

    fn refusal(opened: Result<Segment, Error>) -> String {
        match opened.err().expect("refused") {
            Error::Segment { what } => what,
            other => panic!("refused, but as {other:?}"),
        }
    }

    #[test]
    fn a_segment_is_opened_with_the_layout_it_was_made_with() {
        let options = Options { board_bytes: 8192, ..Options::default() };
        let segment = Segment::create(&PEERS, &options).unwrap();
        assert_eq!(opened(&segment, &PEERS).unwrap().layout(), segment.layout());
    }

    #[test]
    fn a_segment_for_others_is_refused() {
        let segment = Segment::create(&PEERS, &Options::default()).unwrap();
        assert!(refusal(opened(&segment, &PEERS[..1])).contains("for 2 members"));
        assert!(refusal(opened(&segment, &[Peer(3), Peer(4)])).contains("not for the peers"));
    }

    #[test]
    fn a_corrupted_header_is_refused() {
        let segment = Segment::create(&PEERS, &Options::default()).unwrap();
        let mut good = [0; HEADER];
        read_exactly(segment.file(), &mut good, 0).unwrap();
        // All but the low byte of `board_bytes`: a limit that much off may fit the same file.
        for at in (0..40).filter(|&at| at != 32) {
            let mut bad = good;
            bad[at] ^= 0x95;
            pwrite(segment.file(), &bad, 0).unwrap();
            refusal(opened(&segment, &PEERS));
        }
        pwrite(segment.file(), &good, 0).unwrap();
        assert!(opened(&segment, &PEERS).is_ok());
    }

    #[test]
    fn a_file_too_small_or_not_sealed_is_refused() {
        let layout = Layout::new(2, &Options::default()).unwrap();
        for (seals, size, why) in [
            (SealFlags::SHRINK, 0, "ends after 0 bytes"),
            (SealFlags::SHRINK, 4096, "its size is 4096 bytes"),
            (SealFlags::GROW, layout.total(), "not sealed"),
        ] {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = memfd_create("tutti-test", flags).unwrap();
            ftruncate(&file, size).unwrap();
            if size > 0 {
                pwrite(&file, &header(&layout, &PEERS), 0).unwrap();
            }
            fcntl_add_seals(&file, seals).unwrap();
            assert!(refusal(Segment::open(file, &PEERS)).contains(why));
        }
    }
}
