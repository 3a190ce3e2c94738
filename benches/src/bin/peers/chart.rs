//! A drawing of the ratios: a panel per collective, a line per number of ranks.

use std::fmt::Write;

use crate::case::Collective;
use crate::markdown::size;
use crate::results::{CaseResults, Report};
use crate::stats::median;

const WIDTH: f64 = 720.0;
const PANEL: f64 = 260.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
/// The ratios at the ends of the upright axis; lines beyond are cut.
const ENDS: (f64, f64) = (0.25, 16.0);
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"];

/// The drawing. Cases of one size, a barrier's, have no line.
pub(crate) fn svg(report: &Report) -> String {
    let with_line = |collective: &Collective| {
        let cases = report.cases.iter().filter(|case| case.case.collective == *collective);
        cases.filter(|case| case.sizes.len() > 1).collect::<Vec<&CaseResults>>()
    };
    let panels: Vec<Vec<&CaseResults>> =
        Collective::ALL.iter().map(with_line).filter(|cases| !cases.is_empty()).collect();
    let height = PANEL * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (index, cases) in panels.iter().enumerate() {
        let _ = writeln!(text, "<g transform=\"translate(0 {})\">", PANEL * index as f64);
        panel(&mut text, cases);
        text += "</g>\n";
    }
    text + "</svg>\n"
}

fn panel(text: &mut String, cases: &[&CaseResults]) {
    let (right, case) = (WIDTH - RIGHT, &cases[0].case);
    let (collective, transport) = (case.collective.name(), case.transport.name());
    let title = format!("{collective}, {transport}: time of the fastest peer / time of Tutti");
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>");
    for ratio in [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
        let (y, colour) = (y_of(ratio), if ratio == 1.0 { "black" } else { "#ddd" });
        let _ = writeln!(
            text,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"{colour}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{ratio}</text>",
            LEFT - 6.0,
            y + 4.0,
        );
    }
    let mut sizes: Vec<u64> = cases.iter().flat_map(|case| case.sizes.iter().copied()).collect();
    sizes.sort_unstable();
    let ends = (sizes[0], sizes[sizes.len() - 1]);
    for power in (3..=26).step_by(4).filter(|power| (ends.0..=ends.1).contains(&(1 << power))) {
        let (x, y) = (x_of(1 << power, ends), PANEL - BOTTOM + 18.0);
        let label = size(1 << power);
        let _ =
            writeln!(text, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
    }
    for (index, case) in cases.iter().enumerate() {
        line(text, case, ends, index);
    }
}

fn line(text: &mut String, case: &CaseResults, ends: (u64, u64), index: usize) {
    let colour = COLOURS[index % COLOURS.len()];
    let point = |row: usize| {
        let ratio = median(&case.ratios(row))?;
        Some(format!("{:.1},{:.1}", x_of(case.sizes[row], ends), y_of(ratio)))
    };
    let points: Vec<String> = (0..case.sizes.len()).filter_map(point).collect();
    let points = points.join(" ");
    let (x, y) = (WIDTH - RIGHT + 10.0, TOP + 12.0 + 18.0 * index as f64);
    let ranks = case.case.ranks;
    let _ = writeln!(
        text,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
         <text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{ranks} ranks</text>"
    );
}

/// Both axes are logarithmic.
fn x_of(bytes: u64, (first, last): (u64, u64)) -> f64 {
    let log = |bytes: u64| (bytes.max(1) as f64).ln();
    let share = (log(bytes) - log(first)) / (log(last) - log(first)).max(f64::EPSILON);
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn y_of(ratio: f64) -> f64 {
    let share = (ratio.clamp(ENDS.0, ENDS.1) / ENDS.0).ln() / (ENDS.1 / ENDS.0).ln();
    PANEL - BOTTOM - share * (PANEL - TOP - BOTTOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_from_left_to_right_and_ratios_upwards() {
        assert_eq!(x_of(8, (8, 512)), LEFT);
        let middle = x_of(64, (8, 512));
        assert!((middle - (LEFT + WIDTH - RIGHT) / 2.0).abs() < 1e-9, "{middle}");
        assert!(y_of(2.0) < y_of(1.0) && y_of(1.0) < y_of(0.5));
        assert_eq!(y_of(1e9), TOP);
    }
}
