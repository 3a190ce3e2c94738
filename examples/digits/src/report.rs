//! What rank 0 prints, for people or for programs.

use std::io::{Result, Write, stderr, stdout};

/// How far training has come after one pass over the training images.
pub(crate) struct Epoch {
    /// Counts from 1.
    pub(crate) number: u32,
    /// Mean cross-entropy over the epoch's batches, in nats.
    pub(crate) loss: f64,
    /// The part of the test images that is read correctly, 0 to 1.
    pub(crate) accuracy: f64,
}

/// What a whole run comes to.
pub(crate) struct Summary {
    pub(crate) ranks: u32,
    /// The part of the time that this rank spent in `all_reduce`, waiting for peers included, 0 to 1.
    pub(crate) all_reduce_share: f64,
    /// Of the weights, which are the same on all ranks.
    pub(crate) weights_hash: u64,
}

/// Who reads the output.
#[derive(Clone, Copy)]
pub(crate) enum Format {
    /// A person.
    Text,
    /// A program: standard output has one JSON object per line and epoch, and nothing else.
    Json,
}

/// Prints one line about an epoch.
pub(crate) fn epoch(format: Format, epoch: &Epoch) -> Result<()> {
    let Epoch { number, loss, accuracy } = epoch;
    let percent = 100.0 * accuracy;
    match format {
        Format::Text => {
            writeln!(stdout(), "epoch {number:2}  loss {loss:.6}  test accuracy {percent:.1} %")
        }
        Format::Json => {
            writeln!(stdout(), r#"{{"epoch":{number},"loss":{loss:.9},"accuracy":{accuracy:.6}}}"#)
        }
    }
}

/// Prints the last line, in JSON runs to standard error.
pub(crate) fn summary(format: Format, summary: &Summary) -> Result<()> {
    let ranks = summary.ranks;
    let plural = if ranks == 1 { "" } else { "s" };
    let share = 100.0 * summary.all_reduce_share;
    let hash = summary.weights_hash;
    let line = format!(
        "{ranks} rank{plural}, {share:.1} % of the time in all_reduce, \
         weights identical on all ranks: yes (hash {hash:016x})"
    );
    match format {
        Format::Text => writeln!(stdout(), "{line}"),
        Format::Json => writeln!(stderr(), "{line}"),
    }
}
