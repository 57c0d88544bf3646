//! A million items: building, asking, memory, and whether names and neighbours are still found.
//!
//! Embedding and indexing are measured here; reading items from disk is part of the whole command (`cold`).

use anyhow::{Context, Result};
use kiwi_search::{Mode, View};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::asker;
use super::build::{Built, bytes};
use super::chance::Chance;
use super::exact::{Nearest, dot, vector};
use super::items::{Items, slip};
use super::quality::ask;
use super::sets::Set;
use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, time};

/// How many questions are asked, and how many of them are names.
const QUESTIONS: usize = 500;
const NAMES: usize = 100;
/// Questions whose neighbours are looked for without any shortcut.
const COMPARED: usize = 200;
/// Names that are looked up.
const LOOKED_UP: usize = 1000;
const SHOWN: usize = 10;
/// Places in which a name with a slip must be.
const FIRST: usize = 3;

/// Measures an index of `count` items.
pub fn measure(
    report: &mut Report,
    sets: &[Set],
    items: &Items,
    count: usize,
    scratch: &Path,
) -> Result<Built> {
    let folder = scratch.join("index");
    say(&format!("building an index of {count} items"));
    let built = Built::make(&folder, items, count)?;
    let seconds = built.took.as_secs_f64();
    let sizes = bytes(&folder)?;
    report.tell(&format!("building an index of {count} items"), seconds, Unit::Seconds, Value::Null);
    report.tell("  items", number(count) / seconds, Unit::PerSecond, Value::Null);
    report.tell("  on disk", mebibytes(sizes.values().sum()), Unit::Mebibytes, json!(sizes));
    report.tell("  segments", number(built.segments()?), Unit::Count, Value::Null);

    say("asking, in a process of its own");
    let questions = questions(sets, items, count);
    let answers = asker::start(&folder, &write_lines(&questions, &scratch.join("questions"))?)?;
    let hybrid = &answers.hybrid;
    report.judge("a question, median", milliseconds(hybrid.p50()), Unit::Milliseconds, 15.0, figures(hybrid));
    let slow = milliseconds(hybrid.quantile(0.99));
    report.judge("a question, 99 of 100", slow, Unit::Milliseconds, 40.0, Value::Null);
    for (leg, samples) in [("text", &answers.text), ("vector", &answers.vector)] {
        let what = format!("  {leg} alone, median");
        report.tell(&what, milliseconds(samples.p50()), Unit::Milliseconds, figures(samples));
        let slow = milliseconds(samples.quantile(0.99));
        report.tell(&format!("  {leg} alone, 99 of 100"), slow, Unit::Milliseconds, Value::Null);
    }
    let first = answers.first.as_secs_f64() * 1e3;
    report.tell("  opening the index and the first answer", first, Unit::Milliseconds, Value::Null);
    report.judge("memory after all questions", answers.resident, Unit::Mebibytes, 1024.0, Value::Null);
    report.tell("  of that, not files", answers.anonymous, Unit::Mebibytes, Value::Null);

    let view = built.index.view()?;
    neighbours(report, sets, items, count, &view)?;
    names(report, items, count, &view)?;
    Ok(built)
}

/// What people ask, evenly from every set, and names.
pub fn questions(sets: &[Set], items: &Items, count: usize) -> Vec<String> {
    let mut questions = asked(sets, QUESTIONS - NAMES);
    let mut chance = Chance::of("names that are asked for");
    questions.extend((0..NAMES).map(|_| items.name(chance.pick(count))));
    questions
}

/// So many questions, evenly from every set.
pub fn asked(sets: &[Set], count: usize) -> Vec<String> {
    let each = count.div_ceil(sets.len().max(1));
    let of = |set: &Set| {
        let step = (set.questions.len() / each).max(1);
        let lines = set.questions.iter().step_by(step).take(each);
        lines
            .map(|question| question.text.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    sets.iter().flat_map(of).take(count).collect()
}

/// Writes one text a line.
pub fn write_lines(lines: &[String], file: &Path) -> Result<PathBuf> {
    let mut text = String::new();
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file.to_owned())
}

/// Whether the vector leg finds the nearest.
fn neighbours(report: &mut Report, sets: &[Set], items: &Items, count: usize, view: &View) -> Result<()> {
    say("the nearest of all vectors, without any shortcut");
    let questions = asked(sets, COMPARED);
    let vectors: Vec<Vec<f32>> = questions.iter().map(|text| vector(text)).collect();
    let of = |number: usize| vector(&items.item(number).embedded_text());
    let nearest = Nearest::find(&vectors, count, SHOWN, &of);
    let mut found = Vec::new();
    for (question, own) in questions.iter().zip(&vectors) {
        let hits = ask(&[view], question, Mode::Vector, SHOWN)?;
        found.push(hits.iter().map(|hit| dot(own, &vector(&hit.item.embedded_text()))).collect());
    }
    let recall = nearest.recall(&found);
    let from = json!({"questions": questions.len(), "recall_at_10": recall});
    report.judge("of the ten nearest vectors, not found", 1.0 - recall, Unit::Share, 0.02, from);
    Ok(())
}

/// Whether items are found by their names, and by names with a slip.
fn names(report: &mut Report, items: &Items, count: usize, view: &View) -> Result<()> {
    say("names, and names with a slip");
    let mut chance = Chance::of("names that are looked up");
    let (mut exact, mut slipped) = (Samples::default(), Samples::default());
    let (mut missed, mut lost, mut excused) = (0, 0, 0);
    let mut examples = Vec::new();
    for _ in 0..LOOKED_UP {
        let name = items.name(chance.pick(count));
        let (took, hits) = time(|| ask(&[view], &name, Mode::Hybrid, FIRST))?;
        exact.push(took);
        missed += usize::from(hits.first().is_none_or(|hit| hit.item.id != name));
        let wrong = slip(&name, &mut chance);
        let (took, hits) = time(|| ask(&[view], &wrong, Mode::Hybrid, FIRST))?;
        slipped.push(took);
        if hits.iter().any(|hit| hit.item.id == name) {
            continue;
        }
        // Whoever is as near to what was written is as right.
        let distance = |name: &str| strsim::osa_distance(&flat(name), &flat(&wrong));
        if hits.iter().all(|hit| distance(&hit.item.id) <= distance(&name)) && hits.len() == FIRST {
            excused += 1;
        } else {
            lost += 1;
            examples.push(json!({"name": name, "asked": wrong, "found": hits.iter().map(|hit| &hit.item.id).collect::<Vec<_>>()}));
        }
    }
    let share = |count: usize| number(count) / number(LOOKED_UP);
    report.judge("names that are not first", share(missed), Unit::Share, 0.0, figures(&exact));
    report.tell("  a name, median", milliseconds(exact.p50()), Unit::Milliseconds, Value::Null);
    examples.truncate(10);
    let from = json!({"times": figures(&slipped), "lost": examples});
    report.judge(
        "names with a slip that are not among the first three",
        share(lost),
        Unit::Share,
        0.01,
        from,
    );
    report.tell("  others were as near", share(excused), Unit::Share, Value::Null);
    report.tell("  a name with a slip, median", milliseconds(slipped.p50()), Unit::Milliseconds, Value::Null);
    let slow = milliseconds(slipped.quantile(0.99));
    report.tell("  a name with a slip, 99 of 100", slow, Unit::Milliseconds, Value::Null);
    Ok(())
}

fn flat(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn milliseconds(microseconds: f64) -> f64 {
    microseconds / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "a figure")]
fn number(count: usize) -> f64 {
    count as f64
}
