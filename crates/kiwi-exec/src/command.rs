//! A command inside a tool: the helper behind `shell.run` starts it where it stands, within whatever holds the helper.
#![expect(clippy::disallowed_methods, reason = "starts what a caller asked the helper to run")]

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use crate::error::ExecError;

/// How a command ended, and what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; 128 and the number for one that a signal ended.
    pub code: i32,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it printed beside that.
    pub stderr: Vec<u8>,
}

/// Runs a program with arguments and waits for it. It reads nothing, and belongs to the process group of the caller, so
/// that whatever ends the helper ends it.
pub fn run_to_end(program: &str, args: &[String]) -> Result<Ended, ExecError> {
    let run = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = run.map_err(ExecError::io(format!("start `{program}`")))?;
    let signal = output.status.signal().map(|signal| 128 + signal);
    let code = output.status.code().or(signal).unwrap_or(1);
    Ok(Ended { code, stdout: output.stdout, stderr: output.stderr })
}
