//! Rate limits per caller and selector: so many calls a session, so many a minute over all sessions.

use jiff::Timestamp;
use kiwi_model::limit::{RateConfig, RateLimit, UPSTREAM};
use kiwi_model::{ErrorKind, Fault, ToolId};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::meter::{Counted, Meters, Refused};
use super::sessions::Sessions;
use crate::admission::{Judge, Objection};
use crate::approvals::lasting;
use crate::permission::glob::Glob;
use crate::request::{Caller, Session};

/// The policy a denial names.
const POLICY: &str = "rate_limit";
/// Sessions whose calls are remembered.
const MOST_SESSIONS: usize = 4096;

/// The rate limits in force.
#[derive(Debug, Clone)]
pub struct RateLimits(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Vec<Rule>,
    minutes: Meters,
    sessions: Sessions<HashMap<(String, usize), u64>>,
}

#[derive(Debug)]
struct Rule {
    selector: String,
    /// `None` for upstream tools.
    tools: Option<Glob>,
    limit: RateLimit,
}

/// Calls that were counted for one call about to happen. Dropped, they are given back.
#[derive(Debug)]
#[must_use = "dropped, it is given back at once"]
pub struct Reservation {
    limits: Arc<Inner>,
    session: Session,
    caller: String,
    /// By the number of the rule: the count of the session, and what the minute holds.
    taken: Vec<(usize, Option<Counted>)>,
}

impl RateLimits {
    /// The limits of a configuration; `folder` is where minutes are counted. A selector that is no wildcard refuses.
    pub fn new(config: &RateConfig, folder: Option<PathBuf>) -> Result<Self, Fault> {
        let rule = |(selector, limit): (String, RateLimit)| {
            let tools = if selector == UPSTREAM { None } else { Some(wildcard(&selector)?) };
            Ok(Rule { selector, tools, limit })
        };
        let rules = config.in_force().into_iter().map(rule).collect::<Result<_, Fault>>()?;
        let (minutes, sessions) = (Meters::new(folder), Sessions::new(MOST_SESSIONS));
        Ok(Self(Arc::new(Inner { rules, minutes, sessions })))
    }

    /// Counts a call against every limit that matches it. One that matches nothing costs nothing.
    pub fn reserve(
        &self,
        session: Session,
        caller: &Caller,
        tool: &ToolId,
        is_upstream: bool,
        now: Timestamp,
    ) -> Result<Reservation, Box<Objection>> {
        let limits = Arc::clone(&self.0);
        let caller = lasting(caller.as_str()).to_owned();
        let mut reservation = Reservation { limits, session, caller, taken: Vec::new() };
        for (number, rule) in self.0.rules.iter().enumerate() {
            let matches = rule.tools.as_ref().map_or(is_upstream, |tools| tools.matches(tool.as_str()));
            if matches {
                reservation.take(number, rule, now)?;
            }
        }
        Ok(reservation)
    }
}

impl Reservation {
    /// The call happened: it stays counted.
    pub fn keep(mut self) {
        self.taken.clear();
    }

    fn take(&mut self, number: usize, rule: &Rule, now: Timestamp) -> Result<(), Box<Objection>> {
        let key = (self.caller.clone(), number);
        let is_free = self.limits.sessions.with(self.session, |counts| {
            let count = counts.entry(key).or_default();
            let is_free = rule.limit.session.is_none_or(|limit| *count < limit);
            *count += u64::from(is_free);
            is_free
        });
        if !is_free {
            return Err(spent(rule).into());
        }
        // Noted before the minute is asked, so that a refusal there gives the session its call back.
        self.taken.push((number, None));
        let Some(limit) = rule.limit.minute else { return Ok(()) };
        match self.limits.minutes.count(&self.caller, &rule.selector, limit, now) {
            Ok(counted) => {
                if let Some((_, taken)) = self.taken.last_mut() {
                    *taken = Some(counted);
                }
                Ok(())
            }
            Err(Refused::TooMany(wait)) => Err(too_fast(rule, limit, wait).into()),
            Err(Refused::Nowhere) => {
                Err(uncounted("there is no user space to count calls in", "KIWI_USER_SPACE names one").into())
            }
            Err(Refused::Broken(file, why)) => {
                let why = format!("the calls counted in `{}` cannot be used: {why}", file.display());
                Err(uncounted(&why, "remove the file; counting begins anew")
                    .with("file", file.display().to_string())
                    .with("selector", rule.selector.as_str())
                    .into())
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for (number, minute) in std::mem::take(&mut self.taken) {
            self.limits.sessions.with(self.session, |counts| {
                if let Some(count) = counts.get_mut(&(self.caller.clone(), number)) {
                    *count = count.saturating_sub(1);
                }
            });
            if let (Some(counted), Some(rule)) = (minute, self.limits.rules.get(number)) {
                self.limits.minutes.give_back(&self.caller, &rule.selector, counted);
            }
        }
    }
}

fn wildcard(selector: &str) -> Result<Glob, Fault> {
    Glob::name(selector).map_err(|why| {
        Fault::new(ErrorKind::Usage, format!("`{selector}` is not a wildcard over tools: {why}"))
            .with_hint("a limit is for a tool id, a wildcard such as `filesystem.*`, or `@mcp`")
    })
}

fn spent(rule: &Rule) -> Objection {
    let limit = rule.limit.session.unwrap_or(0);
    let why = format!("`{}` may be called {limit} times a session, and was", rule.selector);
    limited(why, rule, limit, "session", Value::Null)
        .with_hint("waiting does not help in this session; `kiwi.toml` holds the limit")
}

fn too_fast(rule: &Rule, limit: u64, wait: i64) -> Objection {
    // Rounded up: who waits as long as they are told must get through.
    let millis = wait.saturating_add(999) / 1000;
    let why = format!("`{}` may be called {limit} times a minute", rule.selector);
    limited(why, rule, limit, "minute", millis.into()).with_hint(format!("try again in {millis} ms"))
}

fn limited(why: String, rule: &Rule, limit: u64, window: &str, retry_after_ms: Value) -> Objection {
    Objection::policy(Judge::RateLimit, POLICY, why)
        .of_kind(ErrorKind::RateLimited)
        .with("selector", rule.selector.as_str())
        .with("limit", limit)
        .with("window", window)
        .with("retry_after_ms", retry_after_ms)
}

/// What cannot be counted is not allowed.
fn uncounted(why: &str, hint: &str) -> Objection {
    Objection::policy(Judge::RateLimit, POLICY, why).with_hint(hint)
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
