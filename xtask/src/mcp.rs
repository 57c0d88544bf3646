//! The other side of MCP: the official conformance suite, real clients and real servers, in pinned versions.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

use crate::shell::{Shell, cache, root};

/// The variable by which suites are told where they are.
pub const VARIABLE: &str = "KIWI_TEST_MCP";

/// Virtual environments, each with its own requirements: what they hold does not fit together.
const ENVIRONMENTS: [&str; 2] = ["venv", "old"];

/// Runs a command that is told where they are.
pub fn run(program: &str, words: &[&str]) -> Result<()> {
    Shell::new(program)?.args(words).env(VARIABLE, folder()?).run()
}

/// The folder that holds them: `node_modules/`, and a virtual environment for each set of Python packages.
pub fn folder() -> Result<PathBuf> {
    let (wanted, folder) = (root()?.join("xtask/mcp"), cache()?.join("mcp"));
    std::fs::create_dir_all(&folder)?;
    kept(&folder, "node_modules", &wanted.join("package.json"), || {
        println!("   installing the conformance suite, clients and servers (once; kept under target/xtask)");
        std::fs::copy(wanted.join("package.json"), folder.join("package.json"))?;
        Shell::new("npm")?
            .args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
            .args([&folder])
            .run()
    })?;
    for name in ENVIRONMENTS {
        environment(&folder.join(name), &wanted.join(format!("{name}.txt")))?;
    }
    println!("   mcp      {}", folder.display());
    Ok(folder)
}

/// A virtual environment that has exactly what a requirements file pins; made anew when that changes.
pub fn environment(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    let place = folder.parent().context("an environment lies in a folder")?;
    let name = folder.file_name().context("an environment has a name")?.to_string_lossy().into_owned();
    kept(place, &name, requirements, || {
        println!("   setting up the Python environment `{name}` (once; kept under target/xtask)");
        Shell::new("python3")?
            .args(["-m", "venv"])
            .args([folder])
            .run()
            .context("python3 cannot make a virtual environment (Debian: python3-venv)")?;
        Shell::new(&python)?
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .args([requirements])
            .run()
    })?;
    Ok(python)
}

/// Makes `name` in `place` anew unless it was made from exactly this list.
pub fn kept(place: &Path, name: &str, list: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = std::fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    let (target, stamp) = (place.join(name), place.join(format!("{name}.installed")));
    if target.is_dir() && std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    make()?;
    std::fs::write(&stamp, wanted)?;
    Ok(())
}
