//! How much and how often: the sections of `config/kiwi.toml` that bound a session.
//!
//! Each type is a section as it may be written. What is left out has the value that its method gives, so that a project
//! which says nothing about a limit does not tighten what its user set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The selector that stands for every tool of every upstream server.
pub const UPSTREAM: &str = "@mcp";

/// Rate limits by selector: a tool id, a wildcard over tool ids, or `@mcp` for all tools of upstream servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RateConfig(pub BTreeMap<String, RateLimit>);

/// How often a caller may use what a selector matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table with `session` and `minute`")]
pub struct RateLimit {
    /// Calls in one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// Calls in a minute, counted over all sessions and processes of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minute: Option<u64>,
}

impl RateConfig {
    /// What holds where nothing is written: selector, calls a session, calls a minute.
    pub const DEFAULTS: [(&'static str, u64, u64); 3] =
        [("filesystem.write", 100, 100), ("shell.run", 50, 50), (UPSTREAM, 200, 200)];

    /// The limits in force: what is written, completed with the defaults of the selectors that have some.
    pub fn in_force(&self) -> BTreeMap<String, RateLimit> {
        let mut all = self.0.clone();
        for (selector, session, minute) in Self::DEFAULTS {
            let limit = all.entry(selector.to_owned()).or_default();
            limit.session.get_or_insert(session);
            limit.minute.get_or_insert(minute);
        }
        all
    }

    /// This, tightened by what a project writes: the smaller number holds.
    #[must_use]
    pub fn tightened_by(&self, project: &Self) -> Self {
        let mut all = self.in_force();
        for (selector, theirs) in &project.0 {
            let limit = all.entry(selector.clone()).or_default();
            limit.session = smaller(limit.session, theirs.session);
            limit.minute = smaller(limit.minute, theirs.minute);
        }
        Self(all)
    }
}

/// When a session goes round in circles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct LoopConfig {
    /// How many calls back are looked at, from 4 to 100; 10 when left out.
    #[schemars(range(min = 4, max = 100))]
    pub window: Option<u64>,
    /// The same call so often in a row is a loop, and so is nearly the same; 3 when left out.
    pub repeats: Option<u64>,
    /// Two calls in turn so often are a loop; 2 when left out.
    pub cycles: Option<u64>,
    /// From which similarity of the parameters on calls are nearly the same, in hundredths; 90 when left out.
    #[schemars(range(min = 1, max = 100))]
    pub similarity: Option<u64>,
    /// The same failure of one tool so often in a row is a loop; 3 when left out.
    pub errors: Option<u64>,
    /// So many changing calls of one tool in a row, each larger than the one before, are a loop; 5 when left out.
    pub growth: Option<u64>,
}

impl LoopConfig {
    /// How many calls back are looked at.
    pub fn window(&self) -> usize {
        usize::try_from(self.window.unwrap_or(10)).unwrap_or(100).clamp(4, 100)
    }

    /// How often the same call is a loop.
    pub fn repeats(&self) -> usize {
        self.at_least_two(self.repeats, 3)
    }

    /// How often two calls in turn are a loop.
    pub fn cycles(&self) -> usize {
        self.at_least_two(self.cycles, 2)
    }

    /// From which similarity on calls are nearly the same.
    pub fn similarity(&self) -> f64 {
        f64::from(u8::try_from(self.similarity.unwrap_or(90).clamp(1, 100)).unwrap_or(90)) / 100.0
    }

    /// How often the same failure is a loop.
    pub fn errors(&self) -> usize {
        self.at_least_two(self.errors, 3)
    }

    /// How many growing changes in a row are a loop.
    pub fn growth(&self) -> usize {
        self.at_least_two(self.growth, 5)
    }

    /// A single call is no loop, and what the window cannot hold would never be seen.
    fn at_least_two(&self, written: Option<u64>, default: usize) -> usize {
        let number = written.map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX));
        number.clamp(2, self.window())
    }

    /// This, tightened by what a project writes: what notices a loop earlier holds.
    #[must_use]
    pub fn tightened_by(&self, project: &Self) -> Self {
        let tighter = |user: Option<u64>, default: u64, project: Option<u64>| {
            project.map_or(user, |project| Some(project.min(user.unwrap_or(default))))
        };
        Self {
            window: project.window.map_or(self.window, |window| Some(window.max(self.window.unwrap_or(10)))),
            repeats: tighter(self.repeats, 3, project.repeats),
            cycles: tighter(self.cycles, 2, project.cycles),
            similarity: tighter(self.similarity, 90, project.similarity),
            errors: tighter(self.errors, 3, project.errors),
            growth: tighter(self.growth, 5, project.growth),
        }
    }
}

/// How much a session may do in all; without numbers there is no such limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table with `calls` and `seconds`")]
pub struct BudgetConfig {
    /// Calls in one session.
    pub calls: Option<u64>,
    /// Seconds from a session's first call on.
    pub seconds: Option<u64>,
}

impl BudgetConfig {
    /// This, tightened by what a project writes.
    #[must_use]
    pub fn tightened_by(&self, project: &Self) -> Self {
        Self { calls: smaller(self.calls, project.calls), seconds: smaller(self.seconds, project.seconds) }
    }
}

/// Calls that wait for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table with `timeout`")]
pub struct ApprovalConfig {
    /// Seconds until a question that nobody answered is a no; 3600 when left out.
    #[schemars(range(min = 1))]
    pub timeout: Option<u64>,
}

impl ApprovalConfig {
    /// A year: more is a mistake.
    const LONGEST: u64 = 31_536_000;

    /// Seconds until a question that nobody answered is a no.
    pub fn timeout(&self) -> u64 {
        self.timeout.unwrap_or(3600).clamp(1, Self::LONGEST)
    }

    /// This, tightened by what a project writes.
    #[must_use]
    pub fn tightened_by(&self, project: &Self) -> Self {
        let timeout = project.timeout.map_or(self.timeout, |project| Some(project.min(self.timeout())));
        Self { timeout }
    }
}

/// The smaller of two limits, where one that is not there limits nothing.
fn smaller(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rate(value: serde_json::Value) -> RateConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_left_out_has_its_default_and_a_project_only_tightens() {
        let limit = |session, minute| RateLimit { session: Some(session), minute: Some(minute) };
        let all = RateConfig::default().in_force();
        assert_eq!(all["filesystem.write"], limit(100, 100));
        assert_eq!(all["shell.run"], limit(50, 50));
        assert_eq!(all["@mcp"], limit(200, 200));
        let user = rate(json!({"shell.run": {"session": 500}, "deploy.*": {"minute": 2}}));
        assert_eq!(user.in_force()["shell.run"], limit(500, 50));
        // A project that says nothing about a tool leaves the user's number alone.
        let project = rate(json!({"deploy.*": {"minute": 9, "session": 4}, "@mcp": {"session": 900}}));
        let both = user.tightened_by(&project).in_force();
        assert_eq!(both["shell.run"], limit(500, 50));
        assert_eq!(both["deploy.*"], limit(4, 2));
        assert_eq!(both["@mcp"], limit(200, 200));
        assert!(serde_json::from_value::<RateConfig>(json!({"x": {"hour": 3}})).is_err());
    }

    #[test]
    fn thresholds_stay_where_they_make_sense() {
        let config = LoopConfig::default();
        assert_eq!((config.window(), config.repeats(), config.cycles(), config.errors()), (10, 3, 2, 3));
        let odd: LoopConfig =
            serde_json::from_value(json!({"window": 0, "repeats": 0, "similarity": 900, "growth": 50}))
                .unwrap();
        assert_eq!((odd.window(), odd.repeats(), odd.growth()), (4, 2, 4));
        assert!((odd.similarity() - 1.0).abs() < 1e-9);
        let project = LoopConfig { repeats: Some(5), errors: Some(2), ..LoopConfig::default() };
        let both = LoopConfig::default().tightened_by(&project);
        assert_eq!((both.repeats(), both.errors(), both.growth()), (3, 2, 5));
        assert_eq!(ApprovalConfig::default().timeout(), 3600);
        let short = ApprovalConfig { timeout: Some(5) };
        assert_eq!(short.tightened_by(&ApprovalConfig { timeout: Some(99) }).timeout(), 5);
        let calls = |calls| BudgetConfig { calls, seconds: None };
        assert_eq!(calls(Some(5)).tightened_by(&calls(None)), calls(Some(5)));
        assert_eq!(calls(None).tightened_by(&calls(Some(7))), calls(Some(7)));
    }
}
