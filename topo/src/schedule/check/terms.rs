use std::collections::HashMap;

use crate::Rank;

/// What a chunk holds: one rank's contribution, or the fold of two terms. Equal terms have the same
/// ranks folded in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term(u32);

/// All terms that came up. Each is kept once, so comparing two takes no look at their folds.
pub(super) struct Terms {
    /// How many words hold one bit per rank.
    words: usize,
    /// The set of ranks in each term, one after the other.
    sets: Vec<u64>,
    folds: HashMap<(Term, Term), Term>,
}

impl Terms {
    /// The terms of the bare contributions of `size` ranks.
    pub(super) fn new(size: u32) -> Terms {
        let words = size.div_ceil(64) as usize;
        let mut sets = vec![0; words * size as usize];
        for rank in 0..size as usize {
            sets[rank * words + rank / 64] = 1 << (rank % 64);
        }
        Terms { words, sets, folds: HashMap::new() }
    }

    /// What `rank` brings.
    pub(super) fn of(&self, rank: Rank) -> Term {
        Term(rank.0)
    }

    /// The fold of two terms. A fold commutes, so it has no first operand.
    ///
    /// # Errors
    ///
    /// A rank that is in both.
    pub(super) fn fold(&mut self, a: Term, b: Term) -> Result<Term, Rank> {
        let key = (a.min(b), a.max(b));
        if let Some(&term) = self.folds.get(&key) {
            return Ok(term);
        }
        if let Some(rank) = first(self.set(a).iter().zip(self.set(b)).map(|(a, b)| a & b)) {
            return Err(rank);
        }
        let term = Term((self.sets.len() / self.words) as u32);
        for word in 0..self.words {
            self.sets.push(self.set(a)[word] | self.set(b)[word]);
        }
        self.folds.insert(key, term);
        Ok(term)
    }

    /// The first of the ranks `0..size` that is not in the term.
    pub(super) fn missing(&self, term: Term, size: u32) -> Option<Rank> {
        first(self.set(term).iter().map(|word| !word)).filter(|rank| rank.0 < size)
    }

    fn set(&self, term: Term) -> &[u64] {
        &self.sets[term.0 as usize * self.words..][..self.words]
    }
}

/// The rank of the first bit that is set.
fn first(words: impl Iterator<Item = u64>) -> Option<Rank> {
    let (index, word) = words.enumerate().find(|&(_, word)| word != 0)?;
    Some(Rank(64 * index as u32 + word.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_commutes_and_keeps_its_order() {
        let mut terms = Terms::new(3);
        let [a, b, c] = [0, 1, 2].map(|rank| terms.of(Rank(rank)));
        let ab = terms.fold(a, b).unwrap();
        let bc = terms.fold(b, c).unwrap();
        assert_eq!(terms.fold(b, a), Ok(ab));
        assert_ne!(terms.fold(ab, c), terms.fold(a, bc));
    }

    #[test]
    fn a_fold_of_what_overlaps_names_who_is_in_both() {
        let mut terms = Terms::new(100);
        let [a, b] = [3, 98].map(|rank| terms.of(Rank(rank)));
        let both = terms.fold(a, b).unwrap();
        assert_eq!(terms.fold(both, b), Err(Rank(98)));
    }

    #[test]
    fn the_first_missing_rank_is_named() {
        let mut terms = Terms::new(65);
        let all = (1..64).fold(terms.of(Rank(0)), |all, rank| {
            let term = terms.of(Rank(rank));
            terms.fold(all, term).unwrap()
        });
        assert_eq!(terms.missing(all, 64), None);
        assert_eq!(terms.missing(all, 65), Some(Rank(64)));
        assert_eq!(terms.missing(terms.of(Rank(0)), 65), Some(Rank(1)));
    }
}
