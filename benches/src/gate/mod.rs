//! The bars of the gate: rules, the whole path, records.

mod path;
mod policy;
mod records;

use anyhow::{Result, bail};
use serde_json::json;

use crate::Setup;
use crate::report::{Report, say};
use crate::row::Unit;
use crate::stats::{Samples, Side, rotate, side};
use policy::{Kappa, Question};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const TURNS: usize = 2_000;

/// Measures everything; tells whether every bar holds.
pub fn run(setup: &Setup) -> Result<bool> {
    let mut report = Report::new("gate");
    path::measure(&mut report, &setup.kiwi)?;
    records::measure(&mut report)?;
    rules(&mut report)?;
    peers(&mut report)?;
    report.finish(&setup.out)
}

/// A turn: every question once, so that no single one decides.
fn ask(kappa: &Kappa, questions: &[Question]) -> usize {
    questions.iter().filter(|question| kappa.allows(question)).count()
}

fn rules(report: &mut Report) -> Result<()> {
    say("admissions by 10, 100, 1,000 and 10,000 rules");
    let policies = SIZES
        .iter()
        .map(|size| Ok((Kappa::new(*size)?, Question::about(*size))))
        .collect::<Result<Vec<_>>>()?;
    let mut sides: Vec<Side<'_>> = policies
        .iter()
        .map(|(kappa, questions)| {
            side(move || {
                std::hint::black_box(ask(kappa, questions));
                Ok(())
            })
        })
        .collect();
    let samples = rotate(TURNS, &mut sides)?;
    #[expect(clippy::cast_precision_loss, reason = "a handful of questions")]
    let each = |samples: &Samples| samples.p50() / Question::about(10).len() as f64;
    for (size, samples) in SIZES.iter().zip(&samples) {
        let what = format!("admission by {size} rules, p50");
        report.tell(&what, each(samples), Unit::Microseconds, json!({"turns": samples.count()}));
    }
    let (Some(few), Some(many)) = (samples.first(), samples.last()) else { bail!("nothing was measured") };
    report.judge(
        "admission by 10,000 rules : by 10",
        each(many) / each(few),
        Unit::Times,
        3.0,
        json!({"many_us": each(many), "few_us": each(few)}),
    );
    Ok(())
}

#[cfg(not(feature = "peers"))]
fn peers(_: &mut Report) -> Result<()> {
    bail!("other policy engines are not built in; `cargo xtask bench gate` does that")
}

/// The same decisions by other engines, in one run.
#[cfg(feature = "peers")]
fn peers(report: &mut Report) -> Result<()> {
    use policy::{Cedar, Rego};
    const PEER_TURNS: usize = 30;
    for size in [10, 1_000] {
        say(&format!("the same decisions by regorus and cedar-policy, {size} rules"));
        let questions = Question::about(size);
        let (kappa, cedar, mut rego) = (Kappa::new(size)?, Cedar::new(size)?, Rego::new(size)?);
        for question in &questions {
            let answers = (kappa.allows(question), cedar.allows(question)?, rego.allows(question)?);
            if answers.0 != answers.1 || answers.0 != answers.2 {
                bail!("the engines do not agree about `{}`: {answers:?}", question.tool);
            }
        }
        let mut sides: Vec<Side<'_>> = vec![
            side(|| {
                std::hint::black_box(ask(&kappa, &questions));
                Ok(())
            }),
            side(|| questions.iter().try_for_each(|question| cedar.allows(question).map(drop))),
            side(|| questions.iter().try_for_each(|question| rego.allows(question).map(drop))),
        ];
        let samples = rotate(PEER_TURNS, &mut sides)?;
        let [ours, cedar, rego] = samples.as_slice() else { bail!("nothing was measured") };
        for (name, theirs) in [("cedar-policy", cedar), ("regorus", rego)] {
            report.judge(
                &format!("admission by {size} rules : the same by {name}"),
                ours.p50() / theirs.p50(),
                Unit::Part,
                1.0,
                json!({"kiwi_us": ours.p50(), "peer_us": theirs.p50(), "questions": questions.len()}),
            );
        }
    }
    Ok(())
}
