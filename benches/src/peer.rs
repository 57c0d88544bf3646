//! The Python peer: the same four-verb idea, and the same step as a plan (`execute` with `dry_run`).

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How the peer is started.
pub struct Program {
    /// The interpreter of its environment.
    pub python: PathBuf,
    /// The script that times it.
    pub script: PathBuf,
}

/// What the peer takes, in microseconds, and everything it said about itself.
pub struct Peer {
    /// Median of a call over stdio, request and response included.
    pub stdio: f64,
    /// Median of its own handler, without any transport.
    pub in_process: f64,
    /// As it was printed.
    pub said: Value,
}

/// Times the peer in a scratch folder.
pub fn measure(program: &Program, scratch: &Path, calls: usize) -> Result<Peer> {
    let output = Command::new(&program.python)
        .arg(&program.script)
        .arg("--scratch")
        .arg(scratch)
        .args(["--calls", &calls.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .context("the peer cannot be started")?;
    if !output.status.success() {
        bail!("the peer could not be timed: {}", output.status);
    }
    let said: Value = serde_json::from_slice(&output.stdout).context("the peer's figures are not JSON")?;
    let p50 = |side: &str| {
        said.pointer(&format!("/{side}/p50_us"))
            .and_then(Value::as_f64)
            .with_context(|| format!("no figure for {side}"))
    };
    Ok(Peer { stdio: p50("stdio")?, in_process: p50("in_process")?, said })
}
