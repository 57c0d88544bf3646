//! A process of its own that opens an index and asks: its memory is that of searching alone.

use anyhow::{Context, Result, bail};
use kiwi_search::{Index, Mode, StaticEmbedder};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::quality::ask;
use crate::stats::Samples;

/// The word by which this program is started as one that asks.
pub const WORD: &str = "asker";
/// Questions before those that count.
const WARM_UP: usize = 50;
const SHOWN: usize = 10;

/// What was measured there.
pub struct Answers {
    /// Until the index was open and the first question was answered.
    pub first: Duration,
    pub hybrid: Samples,
    pub text: Samples,
    pub vector: Samples,
    /// Memory after all, in MiB: everything that is resident, and the part of it that is not a file's.
    pub resident: f64,
    pub anonymous: f64,
}

/// Starts the other process and takes down what it says.
pub fn start(folder: &Path, questions: &Path) -> Result<Answers> {
    let output = Command::new(std::env::current_exe()?)
        .arg(WORD)
        .args([folder, questions])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the process that asks failed: {}", output.status);
    }
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let figure = |name: &str| said.get(name).and_then(Value::as_f64).with_context(|| format!("no `{name}`"));
    let samples = |name: &str| -> Result<Samples> {
        let times = said.get(name).and_then(Value::as_array).with_context(|| format!("no `{name}`"))?;
        let mut samples = Samples::default();
        for time in times.iter().filter_map(Value::as_f64) {
            samples.push(Duration::from_secs_f64(time / 1e6));
        }
        Ok(samples)
    };
    Ok(Answers {
        first: Duration::from_secs_f64(figure("first")? / 1e6),
        hybrid: samples("hybrid")?,
        text: samples("text")?,
        vector: samples("vector")?,
        resident: figure("resident_kib")? / 1024.0,
        anonymous: figure("anonymous_kib")? / 1024.0,
    })
}

/// What the other process does.
pub fn run(folder: &Path, questions: &Path) -> Result<()> {
    let text = std::fs::read_to_string(questions)?;
    let questions: Vec<&str> = text.lines().collect();
    let since = Instant::now();
    let (index, _) = Index::open(folder, Arc::new(StaticEmbedder::new()))?;
    let view = index.view()?;
    ask(&[&view], questions.first().copied().unwrap_or_default(), Mode::Hybrid, SHOWN)?;
    let first = micros(since.elapsed());
    let all = |mode: Mode| -> Result<Vec<f64>> {
        for question in questions.iter().take(WARM_UP) {
            ask(&[&view], question, mode, SHOWN)?;
        }
        let one = |question: &&str| {
            let since = Instant::now();
            ask(&[&view], question, mode, SHOWN)?;
            Ok(micros(since.elapsed()))
        };
        questions.iter().map(one).collect()
    };
    let hybrid = all(Mode::Hybrid)?;
    let (resident, anonymous) = (memory("VmRSS")?, memory("RssAnon")?);
    let said = json!({
        "first": first, "hybrid": hybrid, "text": all(Mode::Text)?, "vector": all(Mode::Vector)?,
        "resident_kib": resident, "anonymous_kib": anonymous,
    });
    println!("{said}");
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A figure of this process's memory, in KiB.
fn memory(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.with_context(|| format!("no {name}"))?.parse().context("no number")
}
