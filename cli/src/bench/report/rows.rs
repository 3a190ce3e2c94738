//! The forms of the rows.

use clap::ValueEnum;

use super::Header;
use super::header::limits as limits_text;
use crate::bench::limits::Limits;
use crate::bench::measure::{Row, gb_per_s};

/// The form of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Table,
    /// The columns of hccl_test, for scripts that read them
    Hccl,
    /// Comma-separated values
    Csv,
}

impl Format {
    /// All that stands above the rows.
    pub(super) fn above(self, header: &Header, limits: Option<&Limits>) -> String {
        let limits = limits.map(limits_text).unwrap_or_default();
        match self {
            Format::Table => format!("{}{limits}{}", header.text(), table_head()),
            Format::Hccl => format!("{limits}{HCCL_HEAD}\n"),
            Format::Csv => format!("{limits}{}\n", COLUMNS.map(|column| column.csv).join(",")),
        }
    }

    /// One row, without its line end.
    pub(super) fn row(self, row: &Row) -> String {
        match self {
            Format::Table => table_row(values(row).each_ref().map(String::as_str)),
            Format::Hccl => hccl_row(row),
            Format::Csv => values(row).join(","),
        }
    }
}

struct Column {
    name: &'static str,
    unit: &'static str,
    csv: &'static str,
    width: usize,
}

const fn column(name: &'static str, unit: &'static str, csv: &'static str, width: usize) -> Column {
    Column { name, unit, csv, width }
}

const COLUMNS: [Column; 13] = [
    column("bytes", "B", "bytes", 12),
    column("count", "elements", "count", 12),
    column("type", "", "type", 6),
    column("redop", "", "redop", 5),
    column("algorithm", "", "algorithm", 18),
    column("transport", "", "transport", 9),
    column("median", "us", "median_us", 11),
    column("min", "us", "min_us", 11),
    column("p95", "us", "p95_us", 11),
    column("p99", "us", "p99_us", 11),
    column("algbw", "GB/s", "algbw_gbps", 8),
    column("busbw", "GB/s", "busbw_gbps", 8),
    column("check", "", "check", 6),
];

fn values(row: &Row) -> [String; 13] {
    let time = |us: f64| format!("{us:.2}");
    let bandwidth = |gbps: f64| format!("{gbps:.3}");
    [
        row.case.bytes().to_string(),
        row.case.count.to_string(),
        row.case.type_name().unwrap_or("-").into(),
        row.case.reduction_name().unwrap_or("-").into(),
        row.algorithm.into(),
        row.transport.into(),
        time(row.times.median),
        time(row.times.min),
        time(row.times.p95),
        time(row.times.p99),
        bandwidth(row.algbw()),
        bandwidth(row.busbw()),
        row.check_name().into(),
    ]
}

/// Two lines, the names and the units.
fn table_head() -> String {
    let line = |values: [&str; 13]| format!("#{}\n", &table_row(values)[1..]);
    line(COLUMNS.map(|column| column.name)) + &line(COLUMNS.map(|column| column.unit))
}

/// A value that is wider than its column pushes the rest to the right.
fn table_row(values: [&str; 13]) -> String {
    let cell = |(value, column): (&str, &Column)| format!("{value:>width$}", width = column.width);
    let cells: Vec<String> = values.into_iter().zip(&COLUMNS).map(cell).collect();
    format!("  {}", cells.join(" "))
}

const HCCL_HEAD: &str = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:";

fn hccl_row(row: &Row) -> String {
    let result = match row.check_name() {
        "ok" => "success",
        "failed" => "failed",
        _ => "NULL",
    };
    let (bytes, mean) = (row.case.bytes(), row.times.mean);
    let bandwidth = gb_per_s(bytes, mean);
    format!("{bytes:<17} | {mean:<14.2} | {bandwidth:<20.5} | {result}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::{Act, Case};
    use crate::bench::timing::Summary;
    use tutti::{DataType, Reduction};
    use tutti_topo::schedule::Collective;

    fn row(failures: &[&str], checked: bool) -> Row {
        Row {
            case: Case {
                act: Act::Collective(Collective::AllReduce),
                data_type: DataType::F32,
                reduction: Reduction::Sum,
                ranks: 4,
                count: 250_000,
                uneven: false,
                in_place: true,
            },
            algorithm: "recursive_doubling",
            transport: "shm",
            times: Summary::of(vec![1_000_000, 3_000_000]),
            checked,
            failures: failures.iter().map(|failure| failure.to_string()).collect(),
        }
    }

    #[test]
    fn table_rows_and_heads_have_the_same_columns() {
        let head = table_head();
        let line = Format::Table.row(&row(&[], true));
        for text in head.lines() {
            assert_eq!(text.len(), line.len());
        }
        assert_eq!(line.split_whitespace().count(), COLUMNS.len());
        assert!(line.ends_with("     ok"), "{line}");
    }

    #[test]
    fn hccl_rows_give_the_mean_and_their_own_words_for_the_check() {
        let line = Format::Hccl.row(&row(&[], true));
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(fields, ["1000000", "2000.00", "0.50000", "success"]);
        assert!(Format::Hccl.row(&row(&["x"], true)).ends_with("failed"));
        assert!(Format::Hccl.row(&row(&[], false)).ends_with("NULL"));
    }

    #[test]
    fn csv_has_a_name_for_each_value() {
        let line = Format::Csv.row(&row(&[], true));
        assert_eq!(line.split(',').count(), COLUMNS.len());
        assert!(
            line.starts_with("1000000,250000,fp32,sum,recursive_doubling,shm,2000.00,"),
            "{line}"
        );
    }
}
