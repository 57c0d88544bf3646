//! A rule as it is evaluated: names resolved, patterns read, positions gone. Its canonical form is what is hashed.

use serde::Serialize;

use crate::glob::Glob;
use crate::syntax::{Action, Operator};

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub name: String,
    /// Where it stands, for people; no part of what it means.
    pub file: String,
    pub line: usize,
    pub text: String,
    /// How many examples it carries.
    pub examples: usize,
    pub guards: Vec<Guard>,
    pub effects: Vec<Effect>,
    /// The largest number of top-level conjuncts among its guards.
    pub specificity: usize,
    pub weights: Weights,
}

/// What can be counted without running the rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    pub ast_nodes: u64,
    pub call_depth: u64,
    pub arguments: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Guard {
    /// `None` is `else`.
    pub when: Option<Expr>,
    pub then: Action,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expr {
    Integer(i64),
    Bool(bool),
    Text(String),
    Variable(Variable),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Chain { first: Box<Expr>, rest: Vec<(Operator, Expr)> },
    Has(Variable),
    Matches { text: Box<Expr>, glob: Glob },
    Call { function: Function, arguments: Vec<Expr> },
}

/// Functions whose arguments are values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Function {
    StartsWith,
    Contains,
    Len,
    Min,
    Max,
    BpsMul,
    BpsDiv,
    Decay,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Variable {
    pub root: Root,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Root {
    Caller,
    Tool,
    Mode,
    Args,
    ToolType,
    Space,
    Mutates,
    State,
    Interactive,
    PermissionAllowed,
    PermissionAnswer,
}

impl Root {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Tool => "tool",
            Self::Mode => "mode",
            Self::Args => "args",
            Self::ToolType => "tool_type",
            Self::Space => "space",
            Self::Mutates => "mutates",
            Self::State => "state",
            Self::Interactive => "interactive",
            Self::PermissionAllowed => "permission.allowed",
            Self::PermissionAnswer => "permission.answer",
        }
    }
}

impl std::fmt::Display for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "${}", self.root.as_str())?;
        self.path.iter().try_for_each(|part| write!(f, ".{part}"))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    Set { target: Target, value: Expr },
    Apply { target: Target, delta: Expr },
    Emit { name: Expr, values: Vec<Expr> },
}

impl Effect {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Set { .. } => "set",
            Self::Apply { .. } => "apply",
            Self::Emit { .. } => "emit",
        }
    }
}

/// What an effect writes: named by a variable, which is not read, or by a string.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    Path(String),
    Named(Expr),
}
