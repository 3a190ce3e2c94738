//! Tables for people: on the terminal while it goes, and in docs/PERFORMANCE.md.

use std::fmt::Write;

use crate::results::{CaseResults, Library, Report};
use crate::stats::{median, range};

/// Everything, with the machine in front.
pub(crate) fn report(report: &Report) -> String {
    let mut text = head(report);
    for results in &report.cases {
        text += "\n";
        text += &case(results);
    }
    text + "\n" + &summary(report)
}

fn head(report: &Report) -> String {
    let machine = &report.machine;
    let commit = machine.commit.as_deref().unwrap_or("unknown");
    let of_iterations = if report.fastest { "the fastest" } else { "the median" };
    let mut text = format!(
        "`{}`, on {}, commit {commit}: {} cores of {}, Linux {}, load {} at the start.\n\n\
         Microseconds, fp32, sum, plain memory, ranks pinned to the cores in turn. Each iteration: \
         barrier, then the time of the slowest rank; {of_iterations} of the iterations, then the \
         median of the rounds. The ratio is the fastest peer's time by ours within a round, its median and range \
         over the rounds. The raw limit is one word to the next process, and copying (tcp: sending) \
         the least bytes.\n\n",
        machine.command,
        machine.date,
        machine.cores.len(),
        machine.processor,
        machine.kernel,
        machine.load,
    );
    for version in report.versions() {
        let _ = writeln!(text, "- {version}");
    }
    for missing in &report.missing {
        let _ = writeln!(text, "- {missing}");
    }
    text
}

/// One case: a row per size.
pub(crate) fn case(results: &CaseResults) -> String {
    let peers = results.peers();
    let mut text = format!("### {}\n\n| bytes | raw limit |", results.case);
    for peer in &peers {
        let _ = write!(text, " {peer} |");
    }
    text += " Tutti | ratio |\n|---:|---:|";
    text += &"---:|".repeat(peers.len() + 2);
    text += "\n";
    for (row, bytes) in results.sizes.iter().enumerate() {
        let peers = peers.iter().map(|peer| Library::Peer(peer));
        let libraries = [Library::Raw].into_iter().chain(peers).chain([Library::Tutti]);
        let _ = write!(text, "| {} |", size(*bytes));
        for library in libraries {
            let _ = write!(text, " {} |", results.median(library, row).map_or("–".into(), number));
        }
        let _ = writeln!(text, " {} |", ratio(&results.ratios(row)));
    }
    if let Some(mean) = results.mean_ratio() {
        let _ = writeln!(text, "\nGeometric mean of the ratios: {mean:.2}");
    }
    for sentence in results.wrong.iter().chain(&results.problems) {
        let _ = writeln!(text, "\n{sentence}");
    }
    text
}

/// A row per case: how the ratio does over all sizes.
pub(crate) fn summary(report: &Report) -> String {
    let mut text =
        "### Summary\n\n| case | ratio, geometric mean | least | sizes from 1.0 on |\n".to_string();
    text += "|---|---:|---:|---:|\n";
    for results in &report.cases {
        let ratios = results.median_ratios();
        let (Some(mean), Some((least, _))) = (results.mean_ratio(), range(&ratios)) else {
            let _ = writeln!(text, "| {} | – | – | – |", results.case);
            continue;
        };
        let won = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
        let (case, all) = (&results.case, ratios.len());
        let _ = writeln!(text, "| {case} | {mean:.2} | {least:.2} | {won} of {all} |");
    }
    text
}

fn ratio(ratios: &[f64]) -> String {
    let (Some(median), Some((least, largest))) = (median(ratios), range(ratios)) else {
        return "–".into();
    };
    format!("{median:.2} ({least:.2} to {largest:.2})")
}

/// A size with the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        1.. if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        1.. if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Three digits that count.
fn number(us: f64) -> String {
    match us {
        ..10.0 => format!("{us:.2}"),
        ..100.0 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::example;

    #[test]
    fn a_row_has_every_program_and_the_ratio() {
        let text = case(&example());
        assert!(text.contains("| bytes | raw limit | A | B | Tutti | ratio |"), "{text}");
        assert!(
            text.contains("| 8 B | 1.00 | 4.00 | 5.50 | 3.00 | 1.00 (1.00 to 1.00) |"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        let mut results = example();
        results.programs[4].times_us[0] = vec![None, None];
        assert!(case(&results).contains("| 4.00 | – | 3.00 |"));
    }

    #[test]
    fn sizes_have_the_largest_unit_that_divides_them() {
        assert_eq!(
            [0, 8, 2048, 1500, 3 << 20].map(size),
            ["0 B", "8 B", "2 KiB", "1500 B", "3 MiB"]
        );
    }
}
