//! What a user would pick instead: the same items, the same questions, the same run.

use anyhow::{Context, Result, bail};
use kiwi_search::Mode;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::build::Built;
use super::exact::{Nearest, dot, vector};
use super::items::Items;
use super::million::{asked, questions};
use super::plain;
use super::quality::ask;
use super::sets::Set;
use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, time};

/// Vectors that vector stores are given.
const VECTORS: usize = 100_000;
/// Questions they are asked.
const ASKED: usize = 200;
const WARM_UP: usize = 20;
const SHOWN: usize = 10;

/// Where the peers are.
pub struct Peers {
    /// The interpreter of their environment.
    pub python: PathBuf,
    /// The script that measures them.
    pub script: PathBuf,
}

/// What one of them did.
struct Peer {
    build: f64,
    times: Samples,
    recall: Option<f64>,
    version: String,
}

/// Measures Kiwi and its peers on the items of `built`.
pub fn measure(
    report: &mut Report,
    sets: &[Set],
    items: &Items,
    (built, peers, scratch): (&Built, &Peers, &Path),
) -> Result<()> {
    let questions = questions(sets, items, built.count);
    say("plain tantivy");
    let (took, plain) = plain::measure(&scratch.join("plain"), items, built.count, &questions)?;
    let plain = Peer {
        build: took.as_secs_f64(),
        times: plain,
        recall: None,
        version: tantivy::version_string().to_owned(),
    };

    say("Kiwi's vector leg among 100,000");
    let vectors =
        vectors_alone(&scratch.join("vectors"), items, built.count.min(VECTORS), &asked(sets, ASKED))?;

    say("writing items and vectors for the peers");
    write_items(&scratch.join("items.jsonl"), items, built.count)?;
    let of = |number: usize| vector(&items.item(number).embedded_text());
    write_vectors(&scratch.join("vectors.f32"), (0..built.count.min(VECTORS)).map(of))?;
    write_vectors(&scratch.join("asked.f32"), asked(sets, ASKED).iter().map(|text| vector(text)))?;
    say("SQLite, usearch, ChromaDB");
    let said = said(peers, scratch)?;

    say("Kiwi again, in the same minutes");
    let view = built.index.view()?;
    let mut hybrid = Samples::default();
    let mut text = Samples::default();
    for question in &questions {
        hybrid.push(time(|| ask(&[&view], question, Mode::Hybrid, SHOWN))?.0);
        text.push(time(|| ask(&[&view], question, Mode::Text, SHOWN))?.0);
    }
    let sqlite = Peer::of(&said, "sqlite")?;
    let own = Peer { build: built.took.as_secs_f64(), times: hybrid, recall: None, version: String::new() };
    tell(report, "Kiwi, words and meaning", &own);
    let own = Peer { build: built.took.as_secs_f64(), times: text, recall: None, version: String::new() };
    tell(report, "Kiwi, words alone", &own);
    tell(report, "plain tantivy", &plain);
    tell(report, "SQLite FTS5", &sqlite);
    beside(report, "  Kiwi's words alone beside plain tantivy", &own, &plain);
    beside(report, "  Kiwi's words alone beside SQLite FTS5", &own, &sqlite);
    tell(report, "Kiwi's vector leg, 100,000 vectors", &vectors);
    for (name, key) in [("usearch", "usearch"), ("ChromaDB", "chromadb")] {
        let peer = Peer::of(&said, key)?;
        tell(report, &format!("{name}, 100,000 vectors"), &peer);
        beside(report, &format!("  Kiwi's vector leg beside {name}"), &vectors, &peer);
    }
    Ok(())
}

fn tell(report: &mut Report, name: &str, peer: &Peer) {
    let from = json!({"version": peer.version, "times": figures(&peer.times)});
    report.tell(&format!("{name}: a question, median"), peer.times.p50() / 1e3, Unit::Milliseconds, from);
    let slow = peer.times.quantile(0.99) / 1e3;
    report.tell("  99 of 100", slow, Unit::Milliseconds, Value::Null);
    report.tell("  building", peer.build, Unit::Seconds, Value::Null);
    if let Some(recall) = peer.recall {
        report.tell("  of the ten nearest, found", recall, Unit::Share, Value::Null);
    }
}

/// How many times the other's time ours is: below one, ours is faster.
fn beside(report: &mut Report, what: &str, own: &Peer, peer: &Peer) {
    let ratio = own.times.p50() / peer.times.p50();
    report.tell(what, ratio, Unit::Times, json!({"times_faster": 1.0 / ratio}));
}

/// Kiwi's vector leg on an index of its own. Making the question's vector is part of it; the peers are given theirs.
fn vectors_alone(folder: &Path, items: &Items, count: usize, questions: &[String]) -> Result<Peer> {
    let built = Built::make(folder, items, count)?;
    let view = built.index.view()?;
    for question in questions.iter().take(WARM_UP) {
        ask(&[&view], question, Mode::Vector, SHOWN)?;
    }
    let own: Vec<Vec<f32>> = questions.iter().map(|text| vector(text)).collect();
    let nearest = Nearest::find(&own, count, SHOWN, &|number| vector(&items.item(number).embedded_text()));
    let (mut times, mut found) = (Samples::default(), Vec::new());
    for (question, own) in questions.iter().zip(&own) {
        let (took, hits) = time(|| ask(&[&view], question, Mode::Vector, SHOWN))?;
        times.push(took);
        found.push(hits.iter().map(|hit| dot(own, &vector(&hit.item.embedded_text()))).collect());
    }
    let recall = Some(nearest.recall(&found));
    Ok(Peer { build: built.took.as_secs_f64(), times, recall, version: String::new() })
}

fn write_items(file: &Path, items: &Items, count: usize) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for number in 0..count {
        writeln!(out, "{}", json!({"text": items.item(number).embedded_text()}))?;
    }
    Ok(out.flush()?)
}

fn write_vectors(file: &Path, vectors: impl Iterator<Item = Vec<f32>>) -> Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for number in vectors.flatten() {
        out.write_all(&number.to_le_bytes())?;
    }
    Ok(out.flush()?)
}

/// Runs the script, and takes down what it says.
fn said(peers: &Peers, scratch: &Path) -> Result<Value> {
    let output = Command::new(&peers.python)
        .arg(&peers.script)
        .arg("--scratch")
        .arg(scratch)
        .stdin(Stdio::null())
        .output()
        .context("the peers do not start")?;
    if !output.status.success() {
        bail!("the peers failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("the peers said no JSON")
}

impl Peer {
    fn of(said: &Value, name: &str) -> Result<Self> {
        let peer = said.get(name).with_context(|| format!("the script says nothing of {name}"))?;
        let mut times = Samples::default();
        for micros in peer.get("times_us").and_then(Value::as_array).into_iter().flatten() {
            times.push(Duration::from_secs_f64(micros.as_f64().unwrap_or(f64::MAX) / 1e6));
        }
        let version = peer.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
        let build = peer.get("build_s").and_then(Value::as_f64).context("no time of building")?;
        Ok(Self { build, times, recall: peer.get("recall").and_then(Value::as_f64), version })
    }
}
