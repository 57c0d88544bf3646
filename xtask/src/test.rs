//! `cargo xtask test`: all set-up and all checks, in order; the first failure ends it.

use anyhow::{Context as _, Result, bail};

use crate::containers::{self, Engines};
use crate::postgres::{self, Postgres};
use crate::report::Report;
use crate::shell::{Shell, find};
use crate::tally::Tally;
use crate::{components, machine, mcp, minilm, schemathesis, tools};

/// Runs everything.
pub fn run() -> Result<()> {
    println!(
        "cargo xtask test: components, formatting, lints, dependencies, tests. Nothing is skipped silently.\n"
    );
    let mut report = Report::default();
    report.step("components", "real programs that suites start", components::for_tests)?;
    report.step("format", "cargo fmt --all --check", || {
        Shell::cargo()?.args(["fmt", "--all", "--check"]).run()
    })?;
    report.step("lints", "cargo clippy, every crate and target, warnings are errors", || {
        Shell::cargo()?
            .args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
            .run()?;
        // A program without a standard library, which no other crate is built beside.
        Shell::cargo()?
            .args(["clippy", "--quiet", "--package", "kiwi-launcher", "--bin", "kiwi-launcher"])
            .args(["--features", "freestanding", "--profile", "launcher", "--", "-D", "warnings"])
            .run()
    })?;
    report.step("dependencies", "cargo deny: bans, licences, sources", || {
        let folder = tools::DENY.folder()?;
        Shell::cargo()?
            .args(["deny", "--log-level", "error", "check", "bans", "licenses", "sources"])
            .path_first(&folder)?
            .run()
    })?;
    let engines = report.step("engines", "Docker and Podman of their own", Engines::start)?;
    let mcp = report.step("mcp", "the conformance suite, real clients and servers", mcp::folder)?;
    let mcp = mcp.to_str().context("the checkout's path is not Unicode")?;
    let minilm = report.step("minilm", "a real sentence encoder", minilm::folder)?;
    let minilm = minilm.to_str().context("the checkout's path is not Unicode")?;
    let schemathesis = report.step("schemathesis", "a client of described APIs", schemathesis::installed)?;
    let schemathesis = schemathesis.to_str().context("the checkout's path is not Unicode")?;
    let postgres = report.step("postgres", "a PostgreSQL of its own, with pgvector", Postgres::start)?;
    let mut tally = Tally::default();
    report.step("tests", "every suite, fuzz corpora replayed among them", || {
        let variables = [
            (containers::VARIABLE, engines.folder()),
            (mcp::VARIABLE, mcp),
            (minilm::VARIABLE, minilm),
            (schemathesis::VARIABLE, schemathesis),
            (postgres::VARIABLE, postgres.url()),
        ];
        workspace(&mut tally, &variables)
    })?;
    drop(engines);
    drop(postgres);
    report.step("doc tests", "cargo test --doc", || {
        Shell::cargo()?
            .args(["test", "--quiet", "--workspace", "--doc"])
            .env("KIWI_XTASK", "1")
            .watch(|line| tally.see(line))
    })?;
    report.summary();
    if tally.passed == 0 {
        bail!("no test ran");
    }
    println!("\nmachine: {}", machine::describe());
    println!("tests: {tally}");
    Ok(())
}

/// Every test of the workspace but the doc tests, with `extra` variables set.
pub fn workspace(tally: &mut Tally, extra: &[(&str, &str)]) -> Result<()> {
    let mut shell = Shell::cargo()?;
    shell = if find("cargo-nextest").is_some() {
        shell.args([
            "nextest",
            "run",
            "--workspace",
            "--no-fail-fast",
            "--status-level",
            "fail",
            "--final-status-level",
            "skip",
            "--test-threads",
            &at_once().to_string(),
        ])
    } else {
        println!("   cargo-nextest is not here: `cargo test` runs the same tests, one program after another");
        shell.args(["test", "--workspace", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"])
    };
    for (name, value) in extra.iter().chain(&[("KIWI_XTASK", "1")]) {
        shell = shell.env(name, *value);
    }
    shell.watch(|line| tally.see(line))
}

/// How many tests run at once: a third of their time is waiting.
fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores + cores.div_ceil(2)
}
