use std::fmt;

use crate::fabric::nearest;
use crate::schedule::{Algorithm, Collective};

/// Algorithms that somebody wants, whatever the planner thinks. The default wants nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// By name of the collective, at most one each.
    forced: Vec<(&'static str, Algorithm)>,
}

/// Why a text is no list of overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// An item is not of the form `collective:algorithm`.
    Form {
        /// The item.
        item: String,
    },
    /// There is no such collective.
    UnknownCollective {
        /// What stands for one.
        word: String,
    },
    /// The collective has no such algorithm.
    UnknownAlgorithm {
        /// The collective.
        collective: &'static str,
        /// What stands for an algorithm.
        word: String,
    },
    /// A second algorithm for one collective.
    Twice {
        /// The collective.
        collective: &'static str,
    },
}

impl Overrides {
    /// Reads a list like `all_reduce:ring,broadcast:chain`. Blanks do not count; an empty text is
    /// an empty list.
    ///
    /// # Errors
    ///
    /// For names that do not exist, with those that do and the one that was most likely meant.
    pub fn parse(text: &str) -> Result<Overrides, OverrideError> {
        let mut overrides = Overrides::default();
        let items = if text.trim().is_empty() { None } else { Some(text.split(',')) };
        for item in items.into_iter().flatten().map(str::trim) {
            let form = || OverrideError::Form { item: item.to_owned() };
            let (collective, algorithm) = item.split_once(':').ok_or_else(form)?;
            let (collective, algorithm) = (collective.trim(), algorithm.trim());
            let kind = Collective::KINDS.into_iter().find(|kind| kind.name() == collective);
            let unknown = || OverrideError::UnknownCollective { word: collective.to_owned() };
            let collective = kind.ok_or_else(unknown)?;
            overrides.add(collective, algorithm)?;
        }
        Ok(overrides)
    }

    /// The algorithm that is wanted for a collective.
    pub fn algorithm(&self, collective: Collective) -> Option<Algorithm> {
        let forced = self.forced.iter().find(|(name, _)| *name == collective.name());
        forced.map(|&(_, algorithm)| algorithm)
    }

    fn add(&mut self, kind: Collective, word: &str) -> Result<(), OverrideError> {
        let collective = kind.name();
        let known = Algorithm::all_for(kind).iter().find(|known| known.name() == word);
        let unknown = || OverrideError::UnknownAlgorithm { collective, word: word.to_owned() };
        let algorithm = *known.ok_or_else(unknown)?;
        if self.algorithm(kind).is_some() {
            return Err(OverrideError::Twice { collective });
        }
        self.forced.push((collective, algorithm));
        Ok(())
    }
}

/// The list as [`Overrides::parse`] reads it, by name of the collective.
impl fmt::Display for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items: Vec<String> = self
            .forced
            .iter()
            .map(|(name, algorithm)| format!("{name}:{}", algorithm.name()))
            .collect();
        items.sort();
        f.write_str(&items.join(","))
    }
}

fn collectives() -> Vec<&'static str> {
    Collective::KINDS.into_iter().map(Collective::name).collect()
}

fn algorithms(collective: &str) -> Vec<&'static str> {
    let kinds = Collective::KINDS.into_iter().filter(|kind| kind.name() == collective);
    kinds.flat_map(Algorithm::all_for).map(|algorithm| algorithm.name()).collect()
}

impl std::error::Error for OverrideError {}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { item } => {
                let example = "such as `all_reduce:ring,broadcast:chain`";
                write!(f, "`{item}` is not of the form collective:algorithm, {example}")
            }
            Self::UnknownCollective { word } => {
                write!(f, "there is no collective `{word}`")?;
                suggest(f, word, &collectives())
            }
            Self::UnknownAlgorithm { collective, word } => {
                write!(f, "{collective} has no algorithm `{word}`")?;
                suggest(f, word, &algorithms(collective))
            }
            Self::Twice { collective } => write!(f, "{collective} is given two algorithms"),
        }
    }
}

fn suggest(f: &mut fmt::Formatter<'_>, word: &str, known: &[&str]) -> fmt::Result {
    if let Some(near) = nearest(word, known.iter().copied()) {
        write!(f, "; did you mean `{near}`?")?;
    }
    write!(f, " (possible: {})", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    #[test]
    fn a_list_forces_each_of_its_collectives() {
        let overrides = Overrides::parse(" all_reduce : ring, broadcast:chain").unwrap();
        let root = Rank(7);
        assert_eq!(overrides.algorithm(Collective::AllReduce), Some(Algorithm::Ring));
        assert_eq!(overrides.algorithm(Collective::Broadcast { root }), Some(Algorithm::Chain));
        assert_eq!(overrides.algorithm(Collective::Barrier), None);
    }

    #[test]
    fn an_empty_text_forces_nothing() {
        assert_eq!(Overrides::parse("  "), Ok(Overrides::default()));
    }

    #[test]
    fn errors_list_what_is_possible_and_the_nearest_name() {
        let error = |text| Overrides::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("allreduce:ring"),
            "there is no collective `allreduce`; did you mean `all_reduce`? \
             (possible: all_reduce, broadcast, reduce, all_gather, reduce_scatter, gather, scatter, \
             all_to_all, all_to_all_v, barrier)",
        );
        assert_eq!(
            error("broadcast:ring"),
            "broadcast has no algorithm `ring` (possible: fused, flat, binomial, chain, hierarchical)",
        );
        assert!(error("all_reduce:rng").contains("did you mean `ring`?"));
        assert!(error("all_reduce").contains("`all_reduce` is not of the form"));
        assert!(error("all_reduce:ring,").contains("`` is not of the form"));
        assert_eq!(error("barrier:flat,barrier:ring"), "barrier is given two algorithms");
    }
}
