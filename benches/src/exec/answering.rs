//! A process that stays and does one thing whenever it is asked: a line in, the microseconds it took out.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Such a process. It ends when nobody asks any more.
pub struct Answering {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Answering {
    /// Starts it.
    pub fn start(command: &mut Command) -> Result<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let answers = BufReader::new(child.stdout.take().context("it has no output")?);
        let ask = child.stdin.take();
        Ok(Self { child, ask, answers })
    }

    /// What one time took it, by its own clock.
    pub fn ask(&mut self, what: &str) -> Result<Duration> {
        let ask = self.ask.as_mut().context("it is not asked any more")?;
        ask.write_all(format!("{what}\n").as_bytes())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let took: f64 = line.trim().parse().with_context(|| format!("`{what}` failed"))?;
        Ok(Duration::from_secs_f64(took / 1e6))
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.ask = None;
        let _ = self.child.wait();
    }
}
