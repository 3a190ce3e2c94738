use std::fmt;
use std::ops::Range;

use crate::fabric::nearest;

/// What is wrong with a fabric file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {kind}")]
pub struct FabricError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: FabricErrorKind,
}

/// What is wrong with a fabric file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FabricErrorKind {
    /// It is not TOML.
    Syntax {
        /// What the TOML parser says.
        message: String,
    },
    /// A key that the section does not have.
    UnknownKey {
        /// The section, such as `[[host]]`.
        section: &'static str,
        /// The key.
        key: String,
        /// The keys that it has.
        known: &'static [&'static str],
    },
    /// A key that the section must have is not there.
    MissingKey {
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
        /// What its value would be.
        expected: &'static str,
    },
    /// A value of another type than expected.
    WrongType {
        /// The key.
        key: String,
        /// The type that is expected, in words.
        expected: &'static str,
        /// The type that is there.
        found: &'static str,
    },
    /// A number that makes no sense.
    OutOfRange {
        /// The key.
        key: &'static str,
        /// The range that is expected, in words.
        expected: &'static str,
        /// The number that is there.
        found: String,
    },
    /// A word that is none of the possible ones: a unit, a provenance, a kind of link, or the name
    /// of a host or supernode that the file does not have.
    UnknownWord {
        /// The key.
        key: &'static str,
        /// The word.
        word: String,
        /// The possible ones.
        known: Vec<String>,
    },
    /// The same thing a second time.
    Duplicate {
        /// The thing.
        what: String,
        /// Where it was first.
        first_line: usize,
    },
    /// A link that does not say what it links, or says it twice over.
    Ends,
    /// A link from a host to itself.
    SameHost {
        /// The host.
        name: String,
    },
    /// More ranks than a group may have.
    TooManyRanks {
        /// The most there may be.
        most: u32,
    },
}

impl FabricError {
    /// An error about the bytes `span` of `text`.
    pub(super) fn at(text: &str, span: Range<usize>, kind: FabricErrorKind) -> FabricError {
        let (line, column) = line_and_column(text, span.start);
        FabricError { line, column, kind }
    }
}

/// The line and the column, both from 1, of a byte of `text`.
pub(super) fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

impl fmt::Display for FabricErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { message } => write!(f, "{message}"),
            Self::UnknownKey { section, key, known } => {
                write!(f, "{section} has no key `{key}`")?;
                suggest(f, key, known.iter().copied())
            }
            Self::MissingKey { section, key, expected } => {
                write!(f, "{section} needs `{key}`, {expected}")
            }
            Self::WrongType { key, expected, found } => {
                write!(f, "`{key}` is {expected}, not of type {found}")
            }
            Self::OutOfRange { key, expected, found } => {
                write!(f, "`{key}` is {expected}, not {found}")
            }
            Self::UnknownWord { key, word, known } => {
                write!(f, "`{key}` cannot be \"{word}\"")?;
                suggest(f, word, known.iter().map(String::as_str))
            }
            Self::Duplicate { what, first_line } => {
                write!(f, "{what} is already given in line {first_line}")
            }
            Self::Ends => write!(f, "[[link]] needs either `between`, or `from` and `to`"),
            Self::SameHost { name } => write!(
                f,
                "the link is from \"{name}\" to itself; \
                 use `between = \"inside-host\"` and `of = \"{name}\"`"
            ),
            Self::TooManyRanks { most } => write!(f, "more than {most} ranks in all"),
        }
    }
}

/// Ends a complaint about `word` with the nearest of the `known` ones, or with them all.
fn suggest<'a>(
    f: &mut fmt::Formatter<'_>,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> fmt::Result {
    if let Some(near) = nearest(word, known.clone()) {
        return write!(f, "; did you mean `{near}`?");
    }
    const MOST: usize = 12;
    let listed: Vec<&str> = known.clone().take(MOST).collect();
    let more = if known.count() > MOST { ", ..." } else { "" };
    write!(f, "; expected one of: {}{more}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::line_and_column;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "ä = 1\nbö = 2";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, "ä".len()), (1, 2));
        assert_eq!(line_and_column(text, text.find("= 2").unwrap()), (2, 4));
        assert_eq!(line_and_column(text, 999), (2, 7));
    }
}
