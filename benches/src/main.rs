//! Benchmarks with bars: what Kiwi costs, side by side with what a user would pick instead, in one run.
//!
//! **Owns** the measuring, the table and the verdicts. `cargo xtask bench` sets the peers up and starts it.
//!
//! **Deliberately absent**: absolute claims. A figure is a ratio wherever there is something to compare with, because
//! times differ between machines; a bar that is missed makes the run fail.
//!
//! Read first: [`kernel`] (the bars), [`row`] (what a verdict is), [`stats`] (how time is taken).
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is the product")]
#![expect(clippy::disallowed_methods, reason = "not shipped; it starts what it measures against")]

mod cold;
mod fixture;
mod hash;
mod instructions;
mod kernel;
mod peer;
mod plan;
mod row;
mod stats;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

/// Where everything is that takes part.
pub struct Setup {
    /// The release build of `kiwi`.
    pub kiwi: PathBuf,
    /// The interpreter of the peer's environment.
    pub peer_python: PathBuf,
    /// The script that times the peer.
    pub peer_script: PathBuf,
    /// Where the figures go.
    pub out: PathBuf,
}

const USAGE: &str = "usage: kiwi-bench kernel --kiwi FILE --peer-python FILE --peer-script FILE --out FILE (start it with `cargo xtask bench`)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("kiwi-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<bool> {
    match args {
        // Started by itself, under valgrind.
        [area, folder, turns] if area == "plans" => {
            instructions::plans(folder.as_ref(), turns.parse()?)?;
            Ok(true)
        }
        _ => kernel::run(&read(args)?),
    }
}

fn read(args: &[String]) -> Result<Setup> {
    let Some(("kernel", options)) = args.split_first().map(|(area, options)| (area.as_str(), options)) else {
        bail!(USAGE)
    };
    let option = |name: &str| {
        let at = options.iter().position(|option| option == name);
        at.and_then(|at| options.get(at + 1))
            .map(PathBuf::from)
            .with_context(|| format!("{name} is missing; {USAGE}"))
    };
    Ok(Setup {
        kiwi: option("--kiwi")?,
        peer_python: option("--peer-python")?,
        peer_script: option("--peer-script")?,
        out: option("--out")?,
    })
}
