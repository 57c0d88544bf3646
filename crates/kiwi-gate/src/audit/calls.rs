//! Calls, put together from their lines.

use kiwi_model::record::{Event, Line};
use serde::Serialize;
use std::collections::HashMap;

use super::read::AuditLine;

/// How far a call is known to have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It ran, and succeeded.
    Succeeded,
    /// It ran, or tried to, and failed.
    Failed,
    /// It was refused.
    Denied,
    /// It could not be planned.
    Unplanned,
    /// It began. Whether it ended, and how, nobody wrote down.
    Unknown,
}

impl CallState {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Unplanned => "unplanned",
            Self::Unknown => "unknown",
        }
    }
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditCall {
    /// Its first line: `enter`, `denied` or `request`.
    pub first: AuditLine,
    /// Its last, where it has two.
    pub exit: Option<AuditLine>,
}

impl AuditCall {
    /// The line it began with.
    pub fn line(&self) -> &Line {
        &self.first.line
    }

    /// How far it came.
    pub fn state(&self) -> CallState {
        match (self.line().record.event, &self.exit) {
            (Event::Denied, _) => CallState::Denied,
            (Event::Request, _) => CallState::Unplanned,
            (_, None) => CallState::Unknown,
            (_, Some(exit)) if exit.line.record.result.as_ref().is_some_and(|result| result.ok) => {
                CallState::Succeeded
            }
            (_, Some(_)) => CallState::Failed,
        }
    }

    /// Its name: the call's own id, else the hash of its line.
    pub fn id(&self) -> String {
        self.line().record.call.clone().unwrap_or_else(|| self.line().hash.hex())
    }
}

/// The calls that these lines tell of, in the order of their first lines.
pub(super) fn of(lines: &[AuditLine]) -> Vec<AuditCall> {
    let mut calls: Vec<AuditCall> = Vec::new();
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for line in lines {
        match line.line.record.event {
            Event::Exit => {
                // Where calls have no id of their own, the oldest one like it is meant.
                let waiting = open.get_mut(&key(&line.line)).filter(|waiting| !waiting.is_empty());
                let call = waiting.map(|waiting| waiting.remove(0)).and_then(|at| calls.get_mut(at));
                if let Some(call) = call {
                    call.exit = Some(line.clone());
                }
            }
            event => {
                if event == Event::Enter {
                    open.entry(key(&line.line)).or_default().push(calls.len());
                }
                calls.push(AuditCall { first: line.clone(), exit: None });
            }
        }
    }
    calls
}

fn key(line: &Line) -> String {
    let record = &line.record;
    match &record.call {
        Some(call) => format!("{} {call}", record.session),
        None => {
            format!("{} {} {:?} {:?}", record.session, record.tool, record.chain_hash, record.params_hash)
        }
    }
}
