//! The rule language κ: whether a call may happen, as a pure function of the request and the rules.
//!
//! **Owns** the language from its text to its answer: lexer → parser → checker → evaluator with budgets → registry with
//! a version hash → admission; the eight reasons for a denial; and the examples that rule files carry.
//!
//! **Deliberately absent**: files, clock, environment, randomness, floats, loops that a rule could write, and any way
//! to fail open. Whatever goes wrong while a rule is judged is a denial with a typed reason.
//!
//! Read first: [`RuleRegistry`] (what goes in once), [`AdmissionRequest`] (what goes in each time),
//! [`evaluate_admission`] and [`AdmissionResult`] (what comes out).

mod admission;
mod budget;
mod check;
mod denial;
mod error;
mod evaluate;
mod example;
mod glob;
mod lexer;
mod parser;
mod problem;
mod registry;
mod request;
mod rule;
mod state;
mod syntax;
mod token;
mod value;

pub use admission::{AdmissionResult, Answer, Asked, Decision, RuleAnswer, Verdict, evaluate_admission};
pub use budget::{BudgetAxis, BudgetSnapshot, BudgetTick, BudgetTracker, Exceeded, Limits};
pub use denial::{AxiomId, DenialReason};
pub use error::LoadError;
pub use lexer::lex;
pub use parser::{MAX_NESTING, MAX_PROBLEMS, parse};
pub use problem::{Problem, Span};
pub use registry::{ENGINE_VERSION, MAX_BYTES, RuleFile, RuleRegistry, RuleSummary};
pub use request::{AdmissionRequest, Mode, Permission, RecordedRequest};
pub use state::{Broken, Mutation, Scalar};
pub use token::{Lexeme, Token};
