//! Cold calls: a whole process from start to end, as a person at a prompt has it.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fixture::Project;
use crate::stats::{Samples, interleave};

/// Runs of each side. Enough for a median that stays put.
const TURNS: usize = 300;

/// `kiwi run hello`, and the same script straight under bash.
pub fn against_bash(kiwi: &Path, project: &Project) -> Result<(Samples, Samples)> {
    let bash = find("bash")?;
    let script = project.root().join(".ai/tools/demo/hello.sh");
    interleave(
        TURNS,
        || call(kiwi, project, &["run", "hello"]),
        || once(Command::new(&bash).arg(&script).current_dir(project.root()), true),
    )
}

/// `kiwi run --dry-run` in a project with few tools, and in one with many.
pub fn few_and_many(kiwi: &Path, few: &Project, many: &Project) -> Result<(Samples, Samples)> {
    let ask = ["run", "data_processor", "--dry-run", "input=x.csv"];
    interleave(TURNS, || call(kiwi, few, &ask), || call(kiwi, many, &ask))
}

/// Starting nothing at all: the floor under every other figure here.
pub fn floor() -> Result<Samples> {
    let nothing = find("true")?;
    Ok(interleave(TURNS, || once(&mut Command::new(&nothing), false), || Ok(()))?.0)
}

fn call(kiwi: &Path, project: &Project, args: &[&str]) -> Result<()> {
    once(project.command(kiwi).args(args), true)
}

/// Runs a command to its end; its output goes down a pipe and is read, as a caller would.
pub fn once(command: &mut Command, speaks: bool) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("cannot start a command")?;
    if !output.status.success() || (speaks && output.stdout.is_empty()) {
        bail!("a measured command failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The program of that name; found once, so that the search is not measured.
pub fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .with_context(|| format!("`{program}` is not here"))
}
