//! The proof machinery: sets up real components, runs every check, measures, fuzzes. Never shipped.
//!
//! **Owns** `cargo xtask test|bench|soak|docs`: what is needed for a proof, in which versions, in which order.
//!
//! **Deliberately absent**: anything the product needs, and any check that a plain `cargo test` could make.
//!
//! Read first: [`test`] (the order of checks), [`tools`] (what is pinned), [`shell`] (how anything is started).
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command talks to a terminal")]
#![expect(clippy::disallowed_methods, reason = "xtask is not shipped; it drives cargo and test components")]

mod bench;
mod components;
mod containers;
mod docs;
mod machine;
mod mcp;
mod minilm;
mod postgres;
mod report;
mod schemathesis;
mod shell;
mod soak;
mod tally;
mod test;
mod tools;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  test                  set up everything and run every check, in order; what CI runs
  bench [AREA]          measure side by side with peers; table on stdout, JSON in target/bench/
                        areas: kernel, lockfiles, exec, gate, mcp, search; without one, all
                        search needs KIWI_SEARCH_SETS: a folder with the sets BFCL and MetaTool
  soak [--minutes N]    fuzz every target for N minutes (default 5), run the storms at full count,
                        and add a dated row to docs/src/soak.md
  engines COMMAND…      run one command with the container engines that tests use
  mcp COMMAND…          run one command with the MCP clients, servers and suites that tests use
  minilm COMMAND…       run one command with the sentence encoder that tests use
  postgres COMMAND…     run one command with the PostgreSQL that tests use
  schemathesis COMMAND… run one command with the client of described APIs that tests use
  docs                  build the guide with a pinned mdBook into docs/book/";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["test"] => test::run(),
        ["bench"] => bench::all(),
        ["bench", "kernel"] => bench::kernel(),
        ["bench", "lockfiles"] => bench::lockfiles(),
        ["bench", "exec"] => bench::exec(),
        ["bench", "gate"] => bench::gate(),
        ["bench", "mcp"] => bench::mcp(),
        ["bench", "search"] => bench::search(),
        ["bench", "registry"] => bench::registry(),
        ["soak"] => soak::run(5),
        ["soak", "--minutes", minutes] => soak::run(minutes.parse()?),
        ["docs"] => docs::run(),
        ["engines", program, words @ ..] => containers::run(program, words),
        ["mcp", program, words @ ..] => mcp::run(program, words),
        ["minilm", program, words @ ..] => minilm::run(program, words),
        ["postgres", program, words @ ..] => postgres::run(program, words),
        ["schemathesis", program, words @ ..] => schemathesis::run(program, words),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown arguments: {}\n\n{HELP}", args.join(" ")),
    }
}
