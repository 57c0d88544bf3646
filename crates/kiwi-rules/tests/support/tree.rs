//! The suites' own picture of rules, and how it is written down. It shares nothing with the crate but the language.

use std::fmt::Write as _;

#[derive(Debug, Clone)]
pub enum Tree {
    Int(i64),
    Bool(bool),
    Str(String),
    Var(&'static str),
    Not(Box<Tree>),
    Neg(Box<Tree>),
    Op(&'static str, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

#[derive(Debug, Clone)]
pub enum Then {
    Admit,
    Ask(String),
    Reject(String),
}

#[derive(Debug, Clone)]
pub struct RuleTree {
    pub name: String,
    /// `None` is `else`.
    pub guards: Vec<(Option<Tree>, Then)>,
    pub effects: Vec<(&'static str, Vec<Tree>)>,
}

/// How tightly an operator binds.
fn level(operator: &str) -> u8 {
    match operator {
        "or" => 1,
        "and" => 2,
        "==" | "!=" | "<" | ">" | "<=" | ">=" => 4,
        "+" | "-" => 5,
        _ => 6,
    }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}

impl Tree {
    /// As source, with parentheses only where the grammar needs them.
    pub fn source(&self) -> String {
        self.at(0)
    }

    fn at(&self, around: u8) -> String {
        let (own, text) = match self {
            // A negative number is written with the sign of the grammar, which is an operator.
            Self::Int(integer) => (if *integer < 0 { 7 } else { 9 }, integer.to_string()),
            Self::Bool(truth) => (9, truth.to_string()),
            Self::Str(text) => (9, quote(text)),
            Self::Var(name) => (9, format!("${name}")),
            Self::Not(inner) => (3, format!("not {}", inner.at(4))),
            Self::Neg(inner) => (7, format!("-{}", inner.at(8))),
            Self::Op(operator, left, right) => {
                let own = level(operator);
                // From left to right: a right operand of the same level needs its parentheses.
                (own, format!("{} {operator} {}", left.at(own), right.at(own + 1)))
            }
            Self::Call(name, arguments) => {
                let list: Vec<String> = arguments.iter().map(Tree::source).collect();
                (9, format!("{name}({})", list.join(", ")))
            }
        };
        if own < around { format!("({text})") } else { text }
    }
}

impl RuleTree {
    pub fn source(&self) -> String {
        let mut text = format!("rule {} {{\n  guards {{\n", self.name);
        for (condition, then) in &self.guards {
            let condition = condition.as_ref().map_or("else".to_owned(), Tree::source);
            let then = match then {
                Then::Admit => "admit".to_owned(),
                Then::Ask(why) => format!("ask {}", quote(why)),
                Then::Reject(why) => format!("reject {}", quote(why)),
            };
            writeln!(text, "    {condition} -> {then}").expect("a string takes all");
        }
        text.push_str("  }\n  effects {");
        for (name, arguments) in &self.effects {
            let list: Vec<String> = arguments.iter().map(Tree::source).collect();
            write!(text, " {name}({})", list.join(", ")).expect("a string takes all");
        }
        text + " }\n}\n"
    }
}
