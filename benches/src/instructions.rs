//! Instruction counts by callgrind: the same on a busy machine as on an idle one. Told where valgrind is, never judged.
//!
//! Valgrind offers no SHA instructions, so hashing counts for more here than it costs.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

use crate::cold::find;
use crate::fixture::Project;
use crate::plan::Planner;

const FEW: u64 = 100;
const MANY: u64 = 600;

/// Instructions of one warm plan, and of one cold dry run. `None` without valgrind.
pub fn count(kiwi: &Path, project: &Project) -> Result<Option<(u64, u64)>> {
    let Ok(valgrind) = find("valgrind") else { return Ok(None) };
    let own = std::env::current_exe()?;
    let plans = |turns: u64| {
        let mut command = project.command(&valgrind);
        callgrind(command.args(OPTIONS).arg(&own).arg("plans").arg(project.folder()).arg(turns.to_string()))
    };
    // The difference of two runs leaves out what both do once.
    let warm = plans(MANY)?.saturating_sub(plans(FEW)?) / (MANY - FEW);
    let mut command = project.command(&valgrind);
    let cold = callgrind(command.args(OPTIONS).arg(kiwi).args([
        "run",
        "data_processor",
        "--dry-run",
        "input=x.csv",
    ]))?;
    Ok(Some((warm, cold)))
}

/// What valgrind runs: so many plans in one process.
pub fn plans(folder: &Path, turns: u64) -> Result<()> {
    let planner = Planner::open(&Project::open(folder.to_owned()))?;
    (0..turns).try_for_each(|_| planner.once())
}

const OPTIONS: [&str; 2] = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];

/// Reads `==42== Collected : 11189825`.
fn callgrind(command: &mut Command) -> Result<u64> {
    let output = command.output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let count = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    count.with_context(|| format!("valgrind counted nothing: {said}"))
}
