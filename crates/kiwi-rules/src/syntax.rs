//! What the parser makes of a text: names as they were written, every part with its place.

use serde_json::{Map, Value};

use crate::Span;

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FileSyntax {
    pub rules: Vec<RuleSyntax>,
    pub examples: Vec<ExampleSyntax>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleSyntax {
    /// From `rule` to the closing brace.
    pub span: Span,
    pub name: Name,
    pub guards: Vec<ClauseSyntax>,
    pub effects: Vec<CallSyntax>,
    pub examples: Vec<ExampleSyntax>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClauseSyntax {
    /// `None` is `else`.
    pub condition: Option<Node>,
    pub action: Action,
    pub span: Span,
}

/// What a guard answers.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Admit,
    Ask(String),
    Reject(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallSyntax {
    pub name: Name,
    pub arguments: Vec<Node>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub span: Span,
}

/// Chains are flat, as in the grammar: a sum of a thousand terms is one node, and nesting is what parentheses nest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    Integer(i64),
    Bool(bool),
    Text(String),
    Variable(Vec<String>),
    Call(CallSyntax),
    Not(Box<Node>),
    Negate(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Chain { first: Box<Node>, rest: Vec<(Operator, Node)> },
}

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) enum Operator {
    #[serde(rename = "==")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = "<=")]
    LessEqual,
    #[serde(rename = ">=")]
    GreaterEqual,
    #[serde(rename = "+")]
    Add,
    #[serde(rename = "-")]
    Subtract,
    #[serde(rename = "*")]
    Multiply,
    #[serde(rename = "/")]
    Divide,
    #[serde(rename = "%")]
    Remainder,
}

impl Operator {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessEqual => "<=",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// What an example says about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Admits,
    Asks,
    Rejects,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admits => "admits",
            Self::Asks => "asks",
            Self::Rejects => "rejects",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExampleSyntax {
    pub verb: Verb,
    pub request: Map<String, Value>,
    pub span: Span,
}
