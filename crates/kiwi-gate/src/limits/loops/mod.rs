//! The loop brake: a session that goes round in circles is told so, and stopped when it goes on.

mod likeness;
mod pattern;
mod seen;

use kiwi_model::limit::LoopConfig;
use kiwi_model::{Digest, ErrorKind, Fault};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;

pub use pattern::Pattern;
pub use seen::Ending;

use self::pattern::{Hit, find};
use self::seen::Seen;
use super::sessions::Sessions;
use crate::admission::{Judge, Objection};
use crate::request::Session;

/// The policy a denial names.
const POLICY: &str = "loop_brake";
/// What to do about it.
const SUGGESTION: &str = "help(action=\"stuck\")";
/// Sessions whose calls are remembered, each a window of at most 8 KiB a call.
const MOST_SESSIONS: usize = 512;

/// Watches the last calls of every session.
#[derive(Debug)]
pub struct LoopBrake {
    config: LoopConfig,
    sessions: Sessions<Window>,
}

/// The last calls of one session.
#[derive(Debug, Default)]
struct Window {
    calls: VecDeque<Seen>,
    /// How many calls there were before.
    turns: u64,
    /// Whether the session was told that it goes in circles, and has done nothing else since.
    is_warned: bool,
}

/// What the brake says to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopVerdict {
    /// Nothing.
    Clear,
    /// It may happen; its result carries this.
    Notice(LoopNotice),
    /// It may not.
    Denied(Objection),
}

/// A verdict, and the number of the call, to say later how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What the brake says.
    pub verdict: LoopVerdict,
    /// Which call of the session it was.
    pub turn: u64,
}

/// What the result of a call carries that looks like the beginning of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopNotice {
    /// What it looks like.
    pub pattern: Pattern,
    /// How many calls make it up.
    pub calls: usize,
    /// What to do.
    pub suggestion: &'static str,
}

impl LoopBrake {
    /// A brake with these thresholds.
    pub fn new(config: LoopConfig) -> Self {
        Self { config, sessions: Sessions::new(MOST_SESSIONS) }
    }

    /// Judges a call that is about to happen, and remembers it.
    pub fn judge(&self, session: Session, tool: &str, params: &Map<String, Value>, mutates: bool) -> Judged {
        let seen = Seen::new(tool, params, mutates);
        self.sessions.with(session, |window| window.judge(&self.config, seen))
    }

    /// Notes how a call ended.
    pub fn ended(&self, session: Session, turn: u64, ending: Ending) {
        self.sessions.with(session, |window| {
            if let Some(seen) = window.calls.iter_mut().find(|seen| seen.turn == turn) {
                seen.ending = Some(ending);
            }
        });
    }

    /// Forgets a call that waits for a person: asking again whether they have answered is no loop.
    pub fn withdrawn(&self, session: Session, turn: u64) {
        self.sessions.with(session, |window| window.calls.retain(|seen| seen.turn != turn));
    }
}

impl Window {
    fn judge(&mut self, config: &LoopConfig, mut seen: Seen) -> Judged {
        self.turns += 1;
        let turn = self.turns;
        seen.turn = turn;
        self.calls.push_back(seen);
        while self.calls.len() > config.window() {
            self.calls.pop_front();
        }
        let hit = find(self.calls.make_contiguous(), config);
        let verdict = match hit {
            None => LoopVerdict::Clear,
            Some(hit) if !self.is_warned => LoopVerdict::Notice(hit.notice()),
            Some(hit) => {
                // It stays in the window: trying again and again is still the same loop.
                if let Some(seen) = self.calls.back_mut() {
                    seen.is_denied = true;
                }
                LoopVerdict::Denied(hit.denial())
            }
        };
        self.is_warned = verdict != LoopVerdict::Clear;
        Judged { verdict, turn }
    }
}

impl Hit {
    fn notice(&self) -> LoopNotice {
        LoopNotice { pattern: self.pattern, calls: self.calls, suggestion: SUGGESTION }
    }

    fn denial(&self) -> Objection {
        let why =
            format!("the session goes round in circles: {} ({} calls)", self.pattern.words(), self.calls);
        Objection::policy(Judge::LoopBrake, POLICY, why)
            .of_kind(ErrorKind::LoopDetected)
            .with_hint(format!(
                "{}, and so does a new session; waiting does not. Or ask for help: {SUGGESTION}",
                self.pattern.way_out()
            ))
            .with("pattern", self.pattern.as_str())
            .with("calls", self.calls)
            .with("suggestion", SUGGESTION)
    }
}

impl Ending {
    /// A call that gave this output.
    pub fn gave(output: Digest) -> Self {
        Self(Ok(output))
    }

    /// A call that failed so.
    pub fn failed(fault: &Fault) -> Self {
        Self(Err(Digest::of(format!("{}\0{}", fault.kind, fault.message).as_bytes())))
    }
}

#[cfg(test)]
mod tests;
