//! `cargo xtask soak`: minutes of fuzzing per target and the storms at full count, with the result written down.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

use crate::containers::{self, Engines};
use crate::postgres::{self, Postgres};
use crate::report::Report;
use crate::shell::{Shell, cache, root};
use crate::tally::Tally;
use crate::{components, mcp, minilm, test, tools};

const TARGETS: [&str; 12] = [
    "manifest",
    "yaml",
    "canonical",
    "lockfile",
    "kappa_lexer",
    "kappa_parser",
    "kappa_evaluator",
    "audit_line",
    "shell_command",
    "mcp_frames",
    "mcp_definition",
    "embed_text",
];
const HEADER: &str = "\
# Soak results

Each row is one `cargo xtask soak`: every fuzz target for the minutes shown, then all suites with their storms at full
count (`KIWI_SOAK=1`). The command appends the row itself, also when something failed.

| date | commit | minutes per target | fuzz executions | storms | verdict |
|---|---|---|---|---|---|
";

/// Fuzzes each target for `minutes`, then runs the storms.
pub fn run(minutes: u64) -> Result<()> {
    let mut report = Report::default();
    report.step("components", "real programs", || {
        components::for_tests()?;
        components::for_fuzzing()
    })?;
    let folder = report.step("cargo-fuzz", "pinned", || tools::FUZZ.folder())?;
    let mut executions = Vec::new();
    let mut tally = Tally::default();
    let outcome = fuzz(&mut report, &folder, minutes, &mut executions).and_then(|()| {
        report.step("storms", "every suite with full counts", || {
            let engines = Engines::start()?;
            let mcp = mcp::folder()?;
            let mcp = mcp.to_str().context("the checkout's path is not Unicode")?;
            let minilm = minilm::folder()?;
            let minilm = minilm.to_str().context("the checkout's path is not Unicode")?;
            let postgres = Postgres::start()?;
            let variables = [
                ("KIWI_SOAK", "1"),
                (containers::VARIABLE, engines.folder()),
                (mcp::VARIABLE, mcp),
                (minilm::VARIABLE, minilm),
                (postgres::VARIABLE, postgres.url()),
            ];
            test::workspace(&mut tally, &variables)
        })
    });
    report.summary();
    let fuzzed: Vec<String> = executions.iter().map(|(target, count)| format!("{target} {count}")).collect();
    let verdict = if outcome.is_ok() { "holds" } else { "FAILS" };
    write_down(&[&minutes.to_string(), &fuzzed.join(", "), &tally.to_string(), verdict])?;
    outcome
}

fn fuzz(report: &mut Report, folder: &Path, minutes: u64, executions: &mut Vec<(&str, u64)>) -> Result<()> {
    for target in TARGETS {
        let what = format!("fuzzing for {minutes} min");
        let count = report.step(target, &what, || {
            // New inputs go to a folder of their own: the committed corpus grows by hand.
            let grown = cache()?.join("fuzz").join(target);
            std::fs::create_dir_all(&grown)?;
            let mut count = 0;
            Shell::cargo()?
                .args(["fuzz", "run", target])
                .args([grown, root()?.join("fuzz/corpus").join(target)])
                .args([
                    "--",
                    &format!("-max_total_time={}", minutes * 60),
                    "-max_len=65536",
                    "-timeout=10",
                    "-rss_limit_mb=2048",
                    "-verbosity=0",
                    "-print_final_stats=1",
                ])
                .env("RUSTC_BOOTSTRAP", "1")
                .path_first(folder)?
                .watch(|line| count = executed(line).unwrap_or(count))?;
            Ok(count)
        })?;
        executions.push((target, count));
    }
    Ok(())
}

/// Reads `stat::number_of_executed_units: 12345`.
fn executed(line: &str) -> Option<u64> {
    line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
}

fn write_down(cells: &[&str]) -> Result<()> {
    let date = Shell::new("date")?.args(["-u", "+%Y-%m-%d"]).read()?;
    let commit =
        Shell::new("git")?.args(["describe", "--always", "--dirty"]).read().unwrap_or_else(|_| "none".into());
    let file = root()?.join("docs/src/soak.md");
    let mut text = std::fs::read_to_string(&file).unwrap_or_else(|_| HEADER.to_owned());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    writeln!(text, "| {} | {} | {} |", date.trim(), commit.trim(), cells.join(" | "))?;
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("\nwritten down in docs/src/soak.md");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::executed;

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        assert_eq!(executed("stat::number_of_executed_units: 12345\n"), Some(12345));
        assert_eq!(executed("Done 12345 runs in 61 second(s)\n"), None);
    }
}
