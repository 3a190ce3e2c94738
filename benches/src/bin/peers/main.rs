//! Measures Tutti and its peers side by side: `benches/peers/run` prepares the peers and starts this.

mod args;
mod case;
mod chart;
mod machine;
mod markdown;
mod outcome;
mod peers;
mod program;
mod results;
mod stats;

use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use args::Args;
use case::{Band, Case};
use machine::Machine;
use program::Site;
use results::{CaseResults, Report};

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let machine = Machine::read()?;
    let site = Site::new(&args, &machine)?;
    let mut report = Report::new(machine, site.missing(), args.fastest);
    for missing in &report.missing {
        println!("{missing}");
    }

    let cases = args.cases();
    let bar = progress_bar(&cases, &args, &site);
    for case in cases {
        let results = measure(&case, &args, &site, &bar)?;
        bar.suspend(|| println!("{}", markdown::case(&results)));
        report.cases.push(results);
        // What was measured so far is kept if a later case is broken off.
        write(&args, &report)?;
    }
    bar.finish_and_clear();
    println!("{}", markdown::summary(&report));
    Ok(if report.is_all_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all programs in turn, round after round. Every round starts with another one.
fn measure(case: &Case, args: &Args, site: &Site, bar: &ProgressBar) -> Result<CaseResults> {
    let programs = site.programs(case);
    let mut results = CaseResults::new(case.clone(), &programs, args.fastest);
    for band in case.bands(args.quick, site.cores().len()) {
        let mut too_slow = vec![false; programs.len()];
        for round in 0..args.rounds.get() {
            results.start_round(&band);
            for turn in 0..programs.len() {
                let index = (turn + round as usize) % programs.len();
                bar.inc(1);
                if too_slow[index] {
                    continue;
                }
                tell(bar, format!("{case}, round {}: {}", round + 1, programs[index]));
                let outcome = site.run(&programs[index], case, &band)?;
                too_slow[index] = outcome.too_slow;
                results.add(index, outcome);
            }
        }
    }
    Ok(results)
}

/// Says what is going on; in a log, with a line of its own.
fn tell(bar: &ProgressBar, message: String) {
    if bar.is_hidden() {
        eprintln!("{message}");
    }
    bar.set_message(message);
}

fn progress_bar(cases: &[Case], args: &Args, site: &Site) -> ProgressBar {
    let runs = |case: &Case| {
        let bands: Vec<Band> = case.bands(args.quick, site.cores().len());
        bands.len() * site.programs(case).len() * args.rounds.get() as usize
    };
    let bar = ProgressBar::new(cases.iter().map(runs).sum::<usize>() as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}");
    bar.with_style(style.expect("the template is well-formed"))
}

fn write(args: &Args, report: &Report) -> Result<()> {
    let put = |path: &Path, text: String| {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    if let Some(path) = &args.json {
        put(path, serde_json::to_string_pretty(report)? + "\n")?;
    }
    if let Some(path) = &args.markdown {
        put(path, markdown::report(report))?;
    }
    if let Some(path) = &args.svg {
        put(path, chart::svg(report))?;
    }
    Ok(())
}
