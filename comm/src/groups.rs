//! Communicators of some of a communicator's ranks.

use std::collections::HashSet;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tutti_topo::Rank;

use crate::bootstrap::wire::GroupId;
use crate::communicator::Communicator;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::start;

impl Communicator {
    /// Splits the ranks: those of equal `color` form a new communicator, in the order of their
    /// `key`, and of their ranks here where keys are equal. `None` as colour is in none and gets
    /// `None`. Every rank of this communicator must call it. Blocks until all have.
    ///
    /// The new communicator shares the control line, so it needs no rendezvous; it lives as long as
    /// its own ranks want, also after this one is dropped. It fails alone: by an abort, a mismatch
    /// or a deadline of its own, or with all others that contain a rank that dies. Communicators
    /// that share ranks may be used at the same time from different threads.
    ///
    /// ```
    /// use tutti::{Communicator, Config};
    ///
    /// // Rows of a grid two ranks wide.
    /// let comm = Communicator::from_env(Config::default())?;
    /// let (row, column) = (comm.rank().0 / 2, comm.rank().0 % 2);
    /// let row = comm.split(Some(row), column)?.expect("this rank has a row");
    /// assert_eq!(row.rank().0, column);
    /// # Ok::<(), tutti::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Failed`] if a rank calls something else, has closed this communicator, dies, or
    /// does not come for [`Config::deadline`](crate::Config::deadline).
    pub fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Communicator>, Error> {
        let mut engine = self.shared.lock();
        let asks = tell_all(&mut engine, "split", &Split { id: new_id()?, color, key })?;
        if color.is_none() {
            return Ok(None);
        }
        let ranks = (0..self.size()).map(Rank);
        let mut members: Vec<_> = ranks.filter(|rank| asks[rank.index()].color == color).collect();
        members.sort_by_key(|rank| (asks[rank.index()].key, *rank));
        found(&engine, asks[members[0].index()].id, &members).map(Some)
    }

    /// A communicator of these ranks, in this order: rank `i` there is `ranks[i]` here. A rank that
    /// is not in its own list gets `None`. Every rank of this communicator must call it; all
    /// members of a list pass the same list, other ranks may pass the same or any other (an empty
    /// one). So lists that do not overlap make several communicators in one call. Blocks until all
    /// ranks have called it. See [`split`](Communicator::split) for what is shared.
    ///
    /// # Errors
    ///
    /// As `split`; [`ErrorKind::Argument`], on all ranks, if a list names a rank twice or one that
    /// is none, or if a member of a list passes another list.
    pub fn group(&self, ranks: &[Rank]) -> Result<Option<Communicator>, Error> {
        let mut engine = self.shared.lock();
        let numbers: Vec<u32> = ranks.iter().map(|rank| rank.0).collect();
        let digest = digest(&numbers);
        let asks = tell_all(&mut engine, "group", &Group { id: new_id()?, digest })?;
        // Most pass the same list: the first of those tells it.
        let first = |digest| asks.iter().position(|ask| ask.digest == digest);
        let tells = first(digest) == Some(self.rank().index());
        let told = tell_all(&mut engine, "group", &if tells { numbers } else { Vec::new() })?;
        let list_of = |ask: &Group| &*told[first(ask.digest).expect("its own, if no other")];
        let lists: Vec<&[u32]> = asks.iter().map(list_of).collect();
        if let Some(what) = objection(&lists) {
            return Err(Error::new(Some(self.rank()), ErrorKind::Argument(what)));
        }
        if !ranks.contains(&self.rank()) {
            return Ok(None);
        }
        found(&engine, asks[ranks[0].index()].id, ranks).map(Some)
    }
}

/// What a rank tells the others in a split.
#[derive(Serialize, Deserialize)]
struct Split {
    /// A name that no other communicator has; it is used if this rank is the first of one.
    id: GroupId,
    color: Option<u32>,
    key: u32,
}

/// What a rank tells the others of its list.
#[derive(Serialize, Deserialize)]
struct Group {
    /// As in [`Split`].
    id: GroupId,
    digest: u64,
}

fn new_id() -> Result<GroupId, Error> {
    getrandom::u64().map_err(|error| {
        Error::system("the system gives no random number", std::io::Error::other(error))
    })
}

/// Gives every rank what all tell, by rank.
fn tell_all<T: Serialize + DeserializeOwned>(
    engine: &mut Engine,
    call: &str,
    ask: &T,
) -> Result<Vec<T>, Error> {
    let blob = serde_json::to_vec(ask).expect("plain data becomes JSON");
    let blobs = engine.exchange(call, &blob)?;
    let asks = blobs.iter().map(|blob| serde_json::from_slice(blob));
    asks.collect::<Result<_, _>>().map_err(|error| {
        let what = format!("{call}: a rank says what this version does not understand: {error}");
        Error::start(Some(engine.parts().group.me), what)
    })
}

/// Makes the communicator of `members`, of which this rank is one.
fn found(parent: &Engine, id: GroupId, members: &[Rank]) -> Result<Communicator, Error> {
    let config = parent.config().clone();
    let parts = start::group(parent.parts(), id, members, &config)?;
    Ok(Communicator::assemble(parts, config))
}

/// FNV-1a of a list.
fn digest(ranks: &[u32]) -> u64 {
    let bytes = ranks.iter().flat_map(|rank| rank.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What is wrong with the lists that the ranks pass, by rank.
fn objection(lists: &[&[u32]]) -> Option<String> {
    (0..).zip(lists).find_map(|(rank, list)| {
        let name = |what: String| Some(format!("group: rank {rank} passes {list:?}, {what}"));
        if let Some(outside) = list.iter().find(|member| **member as usize >= lists.len()) {
            return name(format!(
                "and rank {outside} is outside a communicator of {}",
                lists.len()
            ));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = list.iter().find(|member| !seen.insert(**member)) {
            return name(format!("which names rank {twice} twice"));
        }
        let differs = |member: &&u32| lists[**member as usize] != *list;
        let other = list.iter().find(differs).filter(|_| seen.contains(&rank))?;
        let theirs = lists[*other as usize];
        name(format!("rank {other} of these passes {theirs:?}; all members pass the same list"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_on_which_their_members_agree_are_fine() {
        for lists in [
            [&[0, 1, 2][..], &[0, 1, 2], &[0, 1, 2]],
            [&[2, 0], &[2, 0], &[2, 0]],
            [&[0, 2], &[1], &[0, 2]],
            [&[0, 2], &[], &[0, 2]],
            [&[], &[0, 2], &[]],
        ] {
            assert_eq!(objection(&lists), None, "{lists:?}");
        }
    }

    #[test]
    fn a_rank_outside_or_named_twice_is_named_with_who_passes_it() {
        let outside = objection(&[&[0, 1], &[0, 1], &[7]]).unwrap();
        assert!(outside.contains("rank 2 passes [7]") && outside.contains("rank 7 is outside"));
        let twice = objection(&[&[0, 1, 0], &[], &[]]).unwrap();
        assert!(twice.contains("rank 0 passes [0, 1, 0]") && twice.contains("rank 0 twice"));
    }

    #[test]
    fn lists_that_contradict_each_other_are_named_with_both_ranks() {
        let what = objection(&[&[0, 1], &[1, 0], &[]]).unwrap();
        assert!(what.contains("rank 0 passes [0, 1], rank 1 of these passes [1, 0]"), "{what}");
        assert!(objection(&[&[], &[1, 2], &[]]).is_some(), "rank 2 does not know of it");
    }
}
