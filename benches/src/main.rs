//! Benchmarks with bars: what Kiwi costs, side by side with what a user would pick instead, in one run.
//!
//! **Owns** the measuring, the table and the verdicts. `cargo xtask bench` sets the peers up and starts it.
//!
//! **Deliberately absent**: absolute claims. A figure is a ratio wherever there is something to compare with, because
//! times differ between machines; a bar that is missed makes the run fail.
//!
//! Read first: [`kernel`], [`lockfiles`], [`exec`], [`gate`], [`search`] and [`registry`] (the bars), [`row`] (what a verdict is), [`stats`] (how time is taken).
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is the product")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "not shipped; it starts and asks what it measures against"
)]

mod cold;
mod exec;
mod fixture;
mod gate;
mod hash;
mod instructions;
mod kernel;
mod lockfiles;
mod mcp;
mod peer;
mod plan;
mod registry;
mod report;
mod row;
mod search;
mod stats;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

/// Where everything is that takes part.
pub struct Setup {
    /// The release build of `kiwi`.
    pub kiwi: PathBuf,
    /// Where the figures go.
    pub out: PathBuf,
}

const USAGE: &str = "usage: kiwi-bench kernel|lockfiles|exec|gate|mcp|search|registry --kiwi FILE --out FILE, for kernel, exec and search also --peer-python FILE --peer-script FILE, for search --sets FOLDER, for registry --postgres URL, for exec --uv FILE, for mcp --upstream FILE, --scripts FOLDER and the interpreters of its peers (start it with `cargo xtask bench`)";

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
    let Some((area, options)) = args.split_first() else { bail!(USAGE) };
    match (area.as_str(), options) {
        // Started by itself, under valgrind.
        ("plans", [folder, turns]) => {
            instructions::plans(folder.as_ref(), turns.parse()?)?;
            Ok(true)
        }
        // Started by itself, to hold memory.
        ("holder", [kiwi, scratch, mib]) => {
            exec::hold(kiwi.as_ref(), scratch.as_ref(), mib.parse()?)?;
            Ok(true)
        }
        // Started by itself, to stand between a client and a server.
        ("bare", [kiwi, upstream, scratch, port @ ..]) => {
            let port = port.first().map(|port| port.parse()).transpose()?;
            mcp::serve_bare(kiwi.as_ref(), upstream.as_ref(), scratch.as_ref(), port)?;
            Ok(true)
        }
        // Started by itself, to search with nothing else in memory.
        (search::ASKER, [folder, questions]) => {
            search::asker(folder.as_ref(), questions.as_ref())?;
            Ok(true)
        }
        ("search", _) => {
            let peers = search::Peers {
                python: option(options, "--peer-python")?,
                script: option(options, "--peer-script")?,
            };
            search::run(&setup(options)?, &option(options, "--sets")?, &peers)
        }
        ("mcp", _) => {
            let peers = mcp::Peers {
                mcp_proxy: option(options, "--mcp-proxy")?,
                fastmcp: option(options, "--fastmcp")?,
                contextforge: option(options, "--contextforge")?,
                ryeos: option(options, "--ryeos")?,
                scripts: option(options, "--scripts")?,
            };
            mcp::run(&setup(options)?, &option(options, "--upstream")?, &peers)
        }
        ("kernel", _) => {
            let program = peer::Program {
                python: option(options, "--peer-python")?,
                script: option(options, "--peer-script")?,
            };
            kernel::run(&setup(options)?, &program)
        }
        ("registry", _) => {
            let postgres = option(options, "--postgres")?;
            registry::run(&setup(options)?, postgres.to_str().context("an address is text")?)
        }
        ("lockfiles", _) => lockfiles::run(&setup(options)?),
        ("gate", _) => gate::run(&setup(options)?),
        ("exec", _) => {
            let programs = exec::Programs {
                python: option(options, "--peer-python")?,
                peer: option(options, "--peer-script")?,
                uv: option(options, "--uv")?,
            };
            exec::run(&setup(options)?, &programs)
        }
        _ => bail!(USAGE),
    }
}

fn setup(options: &[String]) -> Result<Setup> {
    Ok(Setup { kiwi: option(options, "--kiwi")?, out: option(options, "--out")? })
}

fn option(options: &[String], name: &str) -> Result<PathBuf> {
    let at = options.iter().position(|option| option == name);
    at.and_then(|at| options.get(at + 1))
        .map(PathBuf::from)
        .with_context(|| format!("{name} is missing; {USAGE}"))
}
