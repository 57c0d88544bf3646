//! How good the list is: each leg alone, both as other engines join them, and both as Kiwi does.

use anyhow::{Context, Result};
use kiwi_search::{Filter, Hit, Mode, Query, StaticEmbedder, View, search};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::regimes;
use super::sets::{Question, Set};
use crate::report::{Report, say};
use crate::row::Unit;

/// Places of the list that count.
const SHOWN: usize = 10;
/// What each leg brings where other ways to join them are tried.
const DEEP: usize = 100;
/// What vectors count in a fixed mix.
const MIX: f64 = 0.7;
/// The constant of reciprocal rank fusion.
const RANKS: f64 = 60.0;

/// The ways that are compared, the product's last.
const WAYS: [&str; 5] = ["text", "vector", "RRF 60", "convex .7", "hybrid"];

/// The mean over some questions.
#[derive(Clone, Copy, Default)]
struct Quality {
    ndcg: f64,
    recall: f64,
}

/// One kind of question: the quality of every way.
struct Column {
    set: &'static str,
    regime: &'static str,
    count: usize,
    ways: [Quality; WAYS.len()],
}

/// Measures every set.
pub fn measure(report: &mut Report, sets: &[Set]) -> Result<()> {
    let mut columns = Vec::new();
    for set in sets {
        say(&format!("how good the list is: {}, {} tools", set.name, set.tools.len()));
        let index = set.index(Arc::new(StaticEmbedder::new()))?;
        let view = index.view()?;
        for (regime, questions) in regimes::all(set) {
            columns.push(column(set, regime, &questions, &view)?);
        }
    }
    println!("\n{}", table(&columns));
    tell(report, &columns);
    Ok(())
}

fn column(set: &Set, regime: &'static str, questions: &[Question], view: &View) -> Result<Column> {
    let mut ways = [Quality::default(); WAYS.len()];
    for question in questions {
        for (sum, list) in ways.iter_mut().zip(lists(view, &question.text)?) {
            sum.ndcg += ndcg(&list, &question.answers);
            sum.recall += recall(&list, &question.answers);
        }
    }
    let count = number(questions.len()).max(1.0);
    for way in &mut ways {
        *way = Quality { ndcg: way.ndcg / count, recall: way.recall / count };
    }
    Ok(Column { set: set.name, regime, count: questions.len(), ways })
}

/// The list of each way, in their order.
fn lists(view: &View, text: &str) -> Result<[Vec<usize>; WAYS.len()]> {
    let by_text = scored(&ask(&[view], text, Mode::Text, DEEP)?, |hit| hit.weighed.text)?;
    let by_vector = scored(&ask(&[view], text, Mode::Vector, DEEP)?, |hit| hit.weighed.likeness)?;
    let hybrid = scored(&ask(&[view], text, Mode::Hybrid, SHOWN)?, |hit| hit.score)?;
    let only = |list: &[(usize, f64)]| list.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    Ok([
        only(&by_text),
        only(&by_vector),
        joined(&[ranks(&by_text), ranks(&by_vector)]),
        joined(&[mixed(&by_text, 1.0 - MIX, 0.0), mixed(&by_vector, MIX, least(&by_vector))]),
        only(&hybrid),
    ])
}

/// Asks as a user without history would.
pub fn ask(tiers: &[&View], text: &str, mode: Mode, limit: usize) -> Result<Vec<Hit>> {
    let query = Query { text, filter: &Filter::default(), limit, mode, may_see: &|_| true, usage: &|_| 0.0 };
    Ok(search(tiers, &query)?)
}

/// The numbers of the tools that were found, each with what was said for it.
fn scored(hits: &[Hit], score: fn(&Hit) -> f32) -> Result<Vec<(usize, f64)>> {
    hits.iter()
        .map(|hit| Ok((hit.key.parse().context("a key that is no number")?, f64::from(score(hit)))))
        .collect()
}

fn least(list: &[(usize, f64)]) -> f64 {
    list.iter().map(|(_, score)| *score).fold(f64::INFINITY, f64::min)
}

/// What a list says by its order alone.
fn ranks(list: &[(usize, f64)]) -> Vec<(usize, f64)> {
    list.iter().enumerate().map(|(at, (tool, _))| (*tool, 1.0 / (RANKS + number(at + 1)))).collect()
}

/// What a list says by its scores, from nothing at `zero` to `weight` for its best.
fn mixed(list: &[(usize, f64)], weight: f64, zero: f64) -> Vec<(usize, f64)> {
    let best = list.iter().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
    let range = if best > zero { best - zero } else { 1.0 };
    list.iter().map(|(tool, score)| (*tool, weight * (score - zero) / range)).collect()
}

/// Adds up what several lists say; who is missing in one gets nothing from it.
fn joined(lists: &[Vec<(usize, f64)>]) -> Vec<usize> {
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (tool, score) in lists.iter().flatten() {
        *sums.entry(*tool).or_default() += score;
    }
    let mut order: Vec<(usize, f64)> = sums.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    order.into_iter().map(|(tool, _)| tool).collect()
}

/// Discounted gain of the places that count, beside that of the best possible list.
fn ndcg(list: &[usize], answers: &[usize]) -> f64 {
    let gain = |at: usize| 1.0 / number(at + 2).log2();
    let found = list.iter().take(SHOWN).enumerate().filter(|(_, tool)| answers.contains(tool));
    let best: f64 = (0..answers.len().min(SHOWN)).map(gain).sum();
    if best > 0.0 { found.map(|(at, _)| gain(at)).sum::<f64>() / best } else { 0.0 }
}

/// Which share of the answers is in the places that count.
fn recall(list: &[usize], answers: &[usize]) -> f64 {
    let found = list.iter().take(SHOWN).filter(|tool| answers.contains(tool)).count();
    number(found) / number(answers.len()).max(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn number(count: usize) -> f64 {
    count as f64
}

fn mean(columns: &[Column], way: usize, of: fn(&Quality) -> f64) -> f64 {
    let sum: f64 = columns.iter().filter_map(|column| column.ways.get(way)).map(of).sum();
    sum / number(columns.len()).max(1.0)
}

/// Every way and every kind of question: nDCG@10, and below recall@10.
fn table(columns: &[Column]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for (title, of) in [("nDCG@10", (|it| it.ndcg) as fn(&Quality) -> f64), ("recall@10", |it| it.recall)] {
        let _ = write!(out, "| {title} |");
        for column in columns {
            let _ = write!(out, " {} {} ({}) |", column.set, column.regime, column.count);
        }
        let _ = writeln!(out, " mean |\n|---|{}", "---|".repeat(columns.len() + 1));
        for (way, name) in WAYS.iter().enumerate() {
            let _ = write!(out, "| {name} |");
            for column in columns {
                let _ = write!(out, " {:.3} |", column.ways.get(way).map_or(f64::NAN, of));
            }
            let _ = writeln!(out, " {:.3} |", mean(columns, way, of));
        }
        out.push('\n');
    }
    out
}

/// Kiwi's list must be better than that of either leg, and than what a fixed way of joining makes of them.
fn tell(report: &mut Report, columns: &[Column]) {
    for column in columns {
        let ways = WAYS.iter().zip(&column.ways);
        let from: HashMap<&str, Value> =
            ways.map(|(name, it)| (*name, json!({"ndcg": it.ndcg, "recall": it.recall}))).collect();
        let [others @ .., hybrid] = &column.ways;
        let what = format!("{} {}: nDCG@10 of the list", column.set, column.regime);
        report.tell(&what, hybrid.ndcg, Unit::Share, json!(from));
        let best = others.iter().map(|it| it.ndcg).fold(0.0, f64::max);
        let what = "  the best of the other ways beside it";
        if column.regime == "dev" {
            report.judge(what, best / hybrid.ndcg, Unit::Times, 1.0, Value::Null);
        } else {
            report.tell(what, best / hybrid.ndcg, Unit::Times, Value::Null);
        }
    }
    let hybrid = mean(columns, WAYS.len() - 1, |it| it.ndcg);
    report.tell("all kinds of questions: mean nDCG@10", hybrid, Unit::Share, json!({"kinds": columns.len()}));
    for (way, name) in WAYS.iter().enumerate().take(WAYS.len() - 1) {
        let other = mean(columns, way, |it| it.ndcg);
        report.judge(
            &format!("  {name} beside it"),
            other / hybrid,
            Unit::Times,
            1.0,
            json!({"ndcg": other}),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_as_good_as_its_answers_are_early() {
        assert!((ndcg(&[1, 2], &[1]) - 1.0).abs() < 1e-9);
        assert!((ndcg(&[2, 1], &[1]) - 1.0 / 3_f64.log2()).abs() < 1e-9);
        assert!((ndcg(&[1, 9, 2], &[1, 2]) - 1.5 / (1.0 + 1.0 / 3_f64.log2())).abs() < 1e-9);
        assert!(ndcg(&[], &[1]).abs() < 1e-9);
        assert!((recall(&[1, 9], &[1, 2]) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn lists_are_joined_by_rank_or_by_score() {
        let (text, vector) = ([(1, 8.0), (2, 4.0)], [(2, 0.9), (3, 0.5), (1, 0.1)]);
        assert_eq!(joined(&[ranks(&text), ranks(&vector)]), [2, 1, 3]);
        assert_eq!(joined(&[mixed(&text, 0.3, 0.0), mixed(&vector, 0.7, 0.1)]), [2, 3, 1]);
    }
}
