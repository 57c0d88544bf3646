//! What one rule may use up. Time is counted in ticks of the tracker itself, never by a clock, so that a rule runs out
//! at the same place everywhere.

use serde::{Deserialize, Serialize};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAxis {
    /// Operators applied, functions called, rounds of `decay`, and pieces of long strings looked at.
    IntegerOperations,
    /// Calls inside calls.
    CallDepth,
    /// Arguments of one call.
    Arguments,
    /// Parts of the rule.
    AstNodes,
}

impl BudgetAxis {
    /// Every axis.
    pub const ALL: [Self; 4] = [Self::IntegerOperations, Self::CallDepth, Self::Arguments, Self::AstNodes];

    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IntegerOperations => "integer_operations",
            Self::CallDepth => "call_depth",
            Self::Arguments => "arguments",
            Self::AstNodes => "ast_nodes",
        }
    }

    /// As a person would say it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::IntegerOperations => "integer operations",
            Self::CallDepth => "levels of calls",
            Self::Arguments => "arguments",
            Self::AstNodes => "nodes",
        }
    }
}

impl std::fmt::Display for BudgetAxis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much of each a rule may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the axes")]
pub struct Limits {
    pub integer_operations: u64,
    pub call_depth: u64,
    pub arguments: u64,
    pub ast_nodes: u64,
}

impl Limits {
    /// The limits of every rule.
    pub const RULE: Self =
        Self { integer_operations: 10_000, call_depth: 16, arguments: 8, ast_nodes: 10_000 };

    /// The limit on one axis.
    pub const fn of(&self, axis: BudgetAxis) -> u64 {
        match axis {
            BudgetAxis::IntegerOperations => self.integer_operations,
            BudgetAxis::CallDepth => self.call_depth,
            BudgetAxis::Arguments => self.arguments,
            BudgetAxis::AstNodes => self.ast_nodes,
        }
    }
}

/// How much of each has been used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields are the axes")]
pub struct BudgetSnapshot {
    pub integer_operations: u64,
    pub call_depth: u64,
    pub arguments: u64,
    pub ast_nodes: u64,
}

/// One entry in the tracker's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetTick {
    /// What was used.
    pub axis: BudgetAxis,
    /// When, in ticks from 1.
    pub at: u64,
    /// What had been used by then.
    pub snapshot: BudgetSnapshot,
}

/// More was used than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("used {used} of {limit} {}", axis.words())]
pub struct Exceeded {
    /// Of what.
    pub axis: BudgetAxis,
    /// How much there is.
    pub limit: u64,
    /// How much was used.
    pub used: u64,
}

/// Counts what a rule uses.
#[derive(Debug, Clone)]
pub struct BudgetTracker {
    limits: Limits,
    used: BudgetSnapshot,
    at: u64,
}

impl BudgetTracker {
    /// A tracker that has counted nothing.
    pub fn new(limits: Limits) -> Self {
        Self { limits, used: BudgetSnapshot::default(), at: 0 }
    }

    /// Uses up an amount. What was used stays used, also when it was too much.
    pub fn spend(&mut self, axis: BudgetAxis, amount: u64) -> Result<BudgetTick, Exceeded> {
        let count = self.count(axis);
        *count = count.saturating_add(amount);
        self.tick(axis)
    }

    /// Notes that a level was reached; only the highest counts.
    pub fn reach(&mut self, axis: BudgetAxis, level: u64) -> Result<BudgetTick, Exceeded> {
        let count = self.count(axis);
        *count = level.max(*count);
        self.tick(axis)
    }

    /// What has been used so far.
    pub fn snapshot(&self) -> BudgetSnapshot {
        self.used
    }

    fn count(&mut self, axis: BudgetAxis) -> &mut u64 {
        match axis {
            BudgetAxis::IntegerOperations => &mut self.used.integer_operations,
            BudgetAxis::CallDepth => &mut self.used.call_depth,
            BudgetAxis::Arguments => &mut self.used.arguments,
            BudgetAxis::AstNodes => &mut self.used.ast_nodes,
        }
    }

    fn tick(&mut self, axis: BudgetAxis) -> Result<BudgetTick, Exceeded> {
        self.at = self.at.saturating_add(1);
        let (limit, used) = (self.limits.of(axis), *self.count(axis));
        if used > limit {
            return Err(Exceeded { axis, limit, used });
        }
        Ok(BudgetTick { axis, at: self.at, snapshot: self.used })
    }
}
