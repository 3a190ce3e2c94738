//! What `tutti bench` prints: rows as they are measured, and JSON at the end.

mod header;
mod json;
mod rows;

use std::fs::File;
use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) use header::Header;
pub(crate) use rows::Format;

use super::Args;
use super::limits::Limits;
use super::measure::Row;
use json::Document;

const NO_ROWS: &str = "cannot write the rows";

/// Where rank 0 reports. Dropped without [`finish`](Report::finish), it writes no JSON.
pub(super) struct Report {
    format: Format,
    /// Standard output, or standard error where the JSON goes to standard output.
    rows: Box<dyn Write>,
    progress: ProgressBar,
    json: Option<(Box<dyn Write>, Document)>,
}

impl Report {
    /// Opens the JSON file, so that it cannot fail at the end, and prints what stands above the
    /// rows.
    pub(super) fn open(header: Header, args: &Args, limits: Option<Limits>) -> Result<Self> {
        let json = args.json.as_deref().map(open_json).transpose()?;
        let mut rows: Box<dyn Write> = match args.json.as_deref() {
            Some("-") => Box::new(io::stderr()),
            _ => Box::new(io::stdout()),
        };
        let above = args.format.above(&header, limits.as_ref());
        rows.write_all(above.as_bytes()).context(NO_ROWS)?;
        let json = json.map(|json| (json, Document::new(&header, limits)));
        Ok(Report { format: args.format, rows, progress: progress(args), json })
    }

    /// Prints a row, and on standard error what its check found.
    pub(super) fn row(&mut self, row: &Row) -> Result<()> {
        let (format, rows) = (self.format, &mut self.rows);
        self.progress.suspend(|| -> Result<()> {
            writeln!(rows, "{}", format.row(row)).context(NO_ROWS)?;
            rows.flush().context(NO_ROWS)?;
            let (what, bytes) = (row.case.name(), row.case.bytes());
            for failure in &row.failures {
                eprintln!("error: {what} of {bytes} bytes: {failure}");
            }
            Ok(())
        })?;
        self.progress.inc(1);
        if let Some((_, document)) = &mut self.json {
            document.add(row);
        }
        Ok(())
    }

    /// Writes the JSON.
    pub(super) fn finish(self) -> Result<()> {
        self.progress.finish_and_clear();
        self.json.map_or(Ok(()), |(to, document)| write_json(to, &document))
    }
}

/// Prints the limits alone.
pub(super) fn limits(limits: &Limits, json: Option<&str>) -> Result<()> {
    let text = header::limits(limits);
    match json {
        Some("-") => eprint!("{text}"),
        _ => print!("{text}"),
    }
    match json {
        Some(path) => write_json(open_json(path)?, &json::LimitsDocument::new(limits)),
        None => Ok(()),
    }
}

fn open_json(path: &str) -> Result<Box<dyn Write>> {
    if path == "-" {
        return Ok(Box::new(io::stdout()));
    }
    let file = File::create(path).with_context(|| format!("cannot write {path}"))?;
    Ok(Box::new(file))
}

fn write_json(mut to: Box<dyn Write>, document: &impl serde::Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut to, document).context("cannot write the JSON")?;
    writeln!(to).context("cannot write the JSON")
}

/// A bar over the rows on a terminal. It is drawn between rows only: nothing ticks during a
/// measurement.
fn progress(args: &Args) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(args.sizes().count() as u64), target);
    let style = ProgressStyle::with_template("{bar:30} row {pos} of {len}, {elapsed}");
    bar.with_style(style.expect("the template is right"))
}
