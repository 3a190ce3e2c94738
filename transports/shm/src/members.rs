use tutti_transport::Peer;

use crate::error::Error;

/// The members of a segment, by their place in it.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    peers: Vec<Peer>,
    me: usize,
}

impl Members {
    /// Checks that `peers` ascend and that `me` is one of them.
    pub(crate) fn new(peers: &[Peer], me: Peer) -> Result<Members, Error> {
        if !peers.is_sorted_by(|a, b| a < b) {
            let what = format!("the members of a segment must ascend, but are {peers:?}");
            return Err(Error::Argument { what });
        }
        let Ok(at) = peers.binary_search(&me) else {
            let what = format!("peer {me} is not among the members of the segment, {peers:?}");
            return Err(Error::Argument { what });
        };
        Ok(Members { peers: peers.to_vec(), me: at })
    }

    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// This member's place.
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// A peer's place.
    pub(crate) fn place(&self, peer: Peer) -> Option<usize> {
        // Mostly the members are a run of neighbouring numbers.
        let guess = peer.0.wrapping_sub(self.peers[0].0) as usize;
        if self.peers.get(guess) == Some(&peer) {
            return Some(guess);
        }
        self.peers.binary_search(&peer).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_list_whatever_the_numbers() {
        for numbers in [&[0, 1, 2][..], &[5, 6, 7], &[1, 4, 9], &[0, 2, 3, u32::MAX]] {
            let peers: Vec<_> = numbers.iter().map(|&n| Peer(n)).collect();
            let members = Members::new(&peers, peers[1]).unwrap();
            assert_eq!(members.me(), 1);
            for (place, &peer) in peers.iter().enumerate() {
                assert_eq!(members.place(peer), Some(place));
            }
            assert_eq!(members.place(Peer(8)), None);
        }
    }

    #[test]
    fn unsorted_repeated_or_foreign_members_are_refused() {
        assert!(Members::new(&[Peer(1), Peer(0)], Peer(0)).is_err());
        assert!(Members::new(&[Peer(1), Peer(1)], Peer(1)).is_err());
        assert!(Members::new(&[Peer(0), Peer(1)], Peer(2)).is_err());
        assert!(Members::new(&[], Peer(0)).is_err());
    }
}
