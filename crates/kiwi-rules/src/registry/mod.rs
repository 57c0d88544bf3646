//! The rules that are active, in their order, with the version that names exactly this set.

mod ambiguity;
mod index;
mod load;
mod reads;

use kiwi_model::{Digest, canonical};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use self::index::Index;
use crate::evaluate::Evaluator;
use crate::rule::Rule;
use crate::{BudgetAxis, DenialReason, Limits, LoadError};

/// The version of the language; it is part of every version hash, so a change of meaning is a change of version.
pub const ENGINE_VERSION: &str = "kappa/1";
/// A rule file larger than this is not a rule file.
pub const MAX_BYTES: usize = 1 << 20;

/// One rule file as it was read.
#[derive(Debug, Clone, Copy)]
pub struct RuleFile<'a> {
    /// What people call it.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// What there is to know about a rule without running it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RuleSummary {
    /// Its name.
    pub name: String,
    /// The file it stands in.
    pub file: String,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// How many examples it carries.
    pub examples: usize,
    /// The largest number of top-level conjuncts among its guards.
    pub specificity: usize,
    /// How many guards it has.
    pub guards: usize,
    /// How many effects it has.
    pub effects: usize,
    /// The budget that it exceeds before it begins: such a rule denies every call.
    pub over_budget: Option<BudgetAxis>,
}

/// A ruleset. It is loaded once and shared; evaluating never changes it.
#[derive(Debug, Clone)]
pub struct RuleRegistry {
    /// In the order of evaluation.
    rules: Vec<Rule>,
    /// What each of them reads of the state.
    state: Vec<BTreeSet<String>>,
    examples: usize,
    index: Index,
    version: Digest,
    refusal: Option<DenialReason>,
}

impl RuleRegistry {
    /// Reads a ruleset from the union of some files, whose order does not matter.
    pub fn load(files: &[RuleFile<'_>]) -> Result<Self, LoadError> {
        let (mut rules, examples) = load::load(files)?;
        rules.sort_by(|a, b| b.specificity.cmp(&a.specificity).then_with(|| a.name.cmp(&b.name)));
        let (index, version) = (Index::new(&rules), version(&rules));
        let of_state = |rule| {
            let mut reads = reads::reads(std::iter::once(rule));
            reads.retain(|path| path.starts_with("state"));
            reads
        };
        let state = rules.iter().map(of_state).collect();
        Ok(Self { rules, state, examples, index, version, refusal: None })
    }

    /// The ruleset that stands in for one that did not load: it denies every call and says why.
    pub fn refusing(reason: DenialReason) -> Self {
        let version = Digest::of(format!("{ENGINE_VERSION} refuses: {}", reason.serialise()).as_bytes());
        Self {
            rules: Vec::new(),
            state: Vec::new(),
            examples: 0,
            index: Index::default(),
            version,
            refusal: Some(reason),
        }
    }

    /// `sha256:` and 64 digits over what the rules mean: the same for any order and layout of files.
    pub fn version_hash(&self) -> Digest {
        self.version
    }

    /// Why every call is denied, if it is.
    pub fn refusal(&self) -> Option<&DenialReason> {
        self.refusal.as_ref()
    }

    /// The rules in the order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = RuleSummary> + '_ {
        self.rules.iter().map(|rule| RuleSummary {
            name: rule.name.clone(),
            file: rule.file.clone(),
            line: rule.line,
            text: rule.text.clone(),
            examples: rule.examples,
            specificity: rule.specificity,
            guards: rule.guards.len(),
            effects: rule.effects.len(),
            over_budget: Evaluator::over_budget(rule).map(|exceeded| exceeded.axis),
        })
    }

    /// How many examples were held against the rules when they were loaded.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule at all; then every call is denied.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What the rules that concern a tool look at: `tool`, `args.path`, `state.calls`, … A recorded call that lacks one of
    /// these cannot be replayed with certainty.
    pub fn reads(&self, tool: &str) -> BTreeSet<String> {
        reads::reads(self.concerning(tool))
    }

    /// What of the state they look at, as it was found out when they were loaded: every call asks.
    pub fn reads_of_state(&self, tool: &str) -> BTreeSet<&str> {
        let read = self.index.candidates(tool).into_iter().filter_map(|at| self.state.get(at));
        read.flatten().map(String::as_str).collect()
    }

    /// The rules that could say anything about a tool, in the order of evaluation.
    pub(crate) fn concerning(&self, tool: &str) -> impl Iterator<Item = &Rule> {
        self.index.candidates(tool).into_iter().filter_map(|at| self.rules.get(at))
    }
}

fn version(rules: &[Rule]) -> Digest {
    let mut sorted: Vec<&Rule> = rules.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let meaning = |rule: &Rule| json!({"name": rule.name, "guards": rule.guards, "effects": rule.effects});
    let rules: Vec<Value> = sorted.into_iter().map(meaning).collect();
    let text = canonical(&json!({"engine": ENGINE_VERSION, "rules": rules}));
    // Literals are within the range of canonical JSON, so there always is a text; and an empty one would match nothing.
    Digest::of(text.unwrap_or_default().as_bytes())
}

/// What a rule may spend while the index says that it has no answer.
const OPERATIONS: u64 = Limits::RULE.integer_operations;
