//! The figures of a run as JSON.

use serde::Serialize;

use super::Header;
use crate::bench::limits::Limits;
use crate::bench::measure::Row;
use crate::bench::timing::Summary;

/// A whole run. Bandwidths are 10^9 bytes a second, times microseconds.
#[derive(Serialize)]
pub(super) struct Document {
    #[serde(flatten)]
    program: Program,
    collective: &'static str,
    ranks: u32,
    hosts: u32,
    cores: usize,
    dtype: Option<&'static str>,
    op: Option<&'static str>,
    warm_up: u32,
    iterations: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    rows: Vec<JsonRow>,
}

/// The limits alone.
#[derive(Serialize)]
pub(super) struct LimitsDocument<'a> {
    #[serde(flatten)]
    program: Program,
    limits: &'a Limits,
}

#[derive(Serialize)]
struct Program {
    tool: &'static str,
    version: &'static str,
}

const PROGRAM: Program = Program { tool: "tutti", version: env!("CARGO_PKG_VERSION") };

#[derive(Serialize)]
struct JsonRow {
    bytes: u64,
    count: u64,
    algorithm: &'static str,
    transport: &'static str,
    #[serde(flatten)]
    times: Summary,
    algbw_gbps: f64,
    busbw_gbps: f64,
    check: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

impl Document {
    pub(super) fn new(header: &Header, limits: Option<Limits>) -> Self {
        Document {
            program: PROGRAM,
            collective: header.collective,
            ranks: header.ranks,
            hosts: header.hosts,
            cores: header.cores,
            dtype: header.data_type,
            op: header.reduction,
            warm_up: header.warm_up,
            iterations: header.iterations,
            limits,
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: &Row) {
        self.rows.push(JsonRow {
            bytes: row.case.bytes(),
            count: row.case.count,
            algorithm: row.algorithm,
            transport: row.transport,
            times: row.times,
            algbw_gbps: row.algbw(),
            busbw_gbps: row.busbw(),
            check: row.check_name(),
            failures: row.failures.clone(),
        });
    }
}

impl<'a> LimitsDocument<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        LimitsDocument { program: PROGRAM, limits }
    }
}
