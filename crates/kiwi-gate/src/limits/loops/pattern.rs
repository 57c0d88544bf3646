//! What a loop looks like: a pure function of the last calls.

use kiwi_model::limit::LoopConfig;
use serde::Serialize;

use super::likeness::{is_near, progresses};
use super::seen::{Ending, Seen};

/// The shapes of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The same call in a row.
    ExactRepeat,
    /// Two or three calls in turn.
    Cycle,
    /// Nearly the same call in a row.
    NearDuplicate,
    /// One tool fails in the same way in a row.
    RepeatedError,
    /// One tool changes more and more.
    Amplification,
}

impl Pattern {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExactRepeat => "exact_repeat",
            Self::Cycle => "cycle",
            Self::NearDuplicate => "near_duplicate",
            Self::RepeatedError => "repeated_error",
            Self::Amplification => "amplification",
        }
    }

    /// As a person would say it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::ExactRepeat => "the same call again and again",
            Self::Cycle => "the same calls in turn",
            Self::NearDuplicate => "nearly the same call again and again",
            Self::RepeatedError => "the same failure again and again",
            Self::Amplification => "one tool that changes more with every call",
        }
    }
}

impl Pattern {
    /// What ends it.
    pub(super) const fn way_out(self) -> &'static str {
        match self {
            Self::ExactRepeat | Self::NearDuplicate => {
                "a call of another tool ends it, and unless these have failed, one of this tool that is clearly another"
            }
            Self::Cycle => "a call of a tool that is none of these ends it",
            Self::RepeatedError => {
                "a call of another tool ends it; this one is let through after that, with any parameters"
            }
            Self::Amplification => {
                "a call of another tool ends it, or one that is no larger than the one before"
            }
        }
    }
}

/// A loop that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub pattern: Pattern,
    pub calls: usize,
}

/// The loop that the last call is part of; the plainest first.
pub(super) fn find(calls: &[Seen], config: &LoopConfig) -> Option<Hit> {
    let hit = |pattern, calls: Option<usize>| calls.map(|calls| Hit { pattern, calls });
    hit(Pattern::ExactRepeat, repeats(calls, config))
        .or_else(|| hit(Pattern::Cycle, cycle(calls, config)))
        .or_else(|| hit(Pattern::NearDuplicate, near(calls, config)))
        .or_else(|| hit(Pattern::RepeatedError, errors(calls, config)))
        .or_else(|| hit(Pattern::Amplification, growth(calls, config)))
}

fn repeats(calls: &[Seen], config: &LoopConfig) -> Option<usize> {
    let last = calls.last()?;
    let count = calls.iter().rev().take_while(|seen| seen.digest == last.digest).count();
    (count >= config.repeats()).then_some(count)
}

/// Two calls in turn, or three, which must come round once more: doing three things twice is not yet a circle.
fn cycle(calls: &[Seen], config: &LoopConfig) -> Option<usize> {
    [(2, config.cycles()), (3, config.cycles() + 1)].into_iter().find_map(|(period, rounds)| {
        let back = calls.iter().rev();
        let matching = back.clone().zip(back.clone().skip(period));
        let count = matching.take_while(|(one, other)| one.digest == other.digest).count() + period;
        let mut turn = back.take(period);
        let first = turn.next()?;
        (count >= period * rounds && turn.any(|seen| seen.digest != first.digest)).then_some(count)
    })
}

fn near(calls: &[Seen], config: &LoopConfig) -> Option<usize> {
    let threshold = config.similarity();
    let alike = |(later, earlier): &(&Seen, &Seen)| {
        later.digest == earlier.digest || is_near(earlier, later, threshold)
    };
    let row =
        |calls: &[Seen]| calls.iter().rev().zip(calls.iter().rev().skip(1)).take_while(alike).count() + 1;
    // How long the row is matters only once it is one.
    let run = calls.get(calls.len().checked_sub(config.repeats())?..)?;
    (row(run) == run.len() && !progresses(run)).then(|| row(calls))
}

/// The calls before this one, of the same tool, that failed alike. What the brake itself denied says nothing.
fn errors(calls: &[Seen], config: &LoopConfig) -> Option<usize> {
    let (last, before) = calls.split_last()?;
    let mut ended = before.iter().rev().filter(|seen| !seen.is_denied || seen.tool != last.tool);
    let newest = ended.next().filter(|seen| seen.tool == last.tool)?.ending?;
    let Ending(Err(_)) = newest else { return None };
    let count = ended.take_while(|seen| seen.tool == last.tool && seen.ending == Some(newest)).count() + 1;
    (count >= config.errors()).then_some(count)
}

/// Changing calls of one tool, each larger than the one before, the last at least twice as large as the first.
fn growth(calls: &[Seen], config: &LoopConfig) -> Option<usize> {
    let last = calls.last().filter(|seen| seen.mutates)?;
    let pairs = calls.iter().rev().zip(calls.iter().rev().skip(1));
    let grows = |(later, earlier): &(&Seen, &Seen)| {
        earlier.mutates && earlier.tool == last.tool && later.size > earlier.size
    };
    let count = pairs.take_while(grows).count() + 1;
    let first = calls.get(calls.len().checked_sub(count)?)?;
    (count >= config.growth() && last.size >= first.size.saturating_mul(2)).then_some(count)
}
