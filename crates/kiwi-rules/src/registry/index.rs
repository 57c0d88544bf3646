//! Which rules a tool can concern, so that ten thousand rules cost about as much as the few that speak of this tool.
//!
//! A rule is left out only where evaluating it could do nothing but find no guard: each guard begins by asking for
//! another tool, which is answered `false` without an error and within the budget.

use std::collections::BTreeSet;

use super::OPERATIONS;
use crate::evaluate::{Evaluator, PIECE};
use crate::rule::{Expr, Function, Root, Rule, Variable};
use crate::syntax::Operator;

/// Tool ids beyond this are not looked up; comparing them could cost a rule its budget.
const MAX_TOOL: usize = 256;

/// A tree over the bytes of tool ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    nodes: Vec<Node>,
    /// Rules that may concern any tool.
    always: Vec<usize>,
    count: usize,
}

#[derive(Debug, Clone, Default)]
struct Node {
    /// Sorted by byte.
    children: Vec<(u8, usize)>,
    /// Rules for ids that end here.
    ending: Vec<usize>,
    /// Rules for ids that begin like this.
    beginning: Vec<usize>,
}

/// The ids that a condition can hold for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Reach {
    prefix: String,
    exact: bool,
}

impl Index {
    pub fn new(rules: &[Rule]) -> Self {
        let mut index = Self { nodes: vec![Node::default()], always: Vec::new(), count: rules.len() };
        for (at, rule) in rules.iter().enumerate() {
            match reaches(rule) {
                None => index.always.push(at),
                Some(reaches) => reaches.into_iter().for_each(|reach| index.insert(at, &reach)),
            }
        }
        index
    }

    fn insert(&mut self, rule: usize, reach: &Reach) {
        let mut here = 0;
        for byte in reach.prefix.bytes() {
            let fresh = self.nodes.len();
            let Some(node) = self.nodes.get_mut(here) else { return };
            here = match node.children.binary_search_by_key(&byte, |(byte, _)| *byte) {
                Ok(at) => node.children.get(at).map_or(0, |(_, child)| *child),
                Err(at) => {
                    node.children.insert(at, (byte, fresh));
                    self.nodes.push(Node::default());
                    fresh
                }
            };
        }
        if let Some(node) = self.nodes.get_mut(here) {
            let rules = if reach.exact { &mut node.ending } else { &mut node.beginning };
            rules.push(rule);
        }
    }

    /// The rules to evaluate for a tool, in their order.
    pub fn candidates(&self, tool: &str) -> Vec<usize> {
        if tool.len() > MAX_TOOL {
            return (0..self.count).collect();
        }
        let mut found = self.always.clone();
        let mut node = self.nodes.first();
        for byte in tool.bytes() {
            let Some(here) = node else { break };
            found.extend_from_slice(&here.beginning);
            let child = here.children.binary_search_by_key(&byte, |(byte, _)| *byte).ok();
            node = child.and_then(|at| here.children.get(at)).and_then(|(_, child)| self.nodes.get(*child));
        }
        if let Some(here) = node {
            found.extend_from_slice(&here.beginning);
            found.extend_from_slice(&here.ending);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The ids a rule can concern; `None` when that cannot be told.
fn reaches(rule: &Rule) -> Option<BTreeSet<Reach>> {
    if Evaluator::over_budget(rule).is_some() {
        return None;
    }
    let (mut found, mut cost) = (BTreeSet::new(), rule.weights.ast_nodes);
    for guard in &rule.guards {
        head(guard.when.as_ref()?, &mut found, &mut cost)?;
    }
    (cost <= OPERATIONS).then_some(found)
}

/// Adds the ids for which what is evaluated first can hold, and what it may cost to find that it does not.
fn head(condition: &Expr, found: &mut BTreeSet<Reach>, cost: &mut u64) -> Option<()> {
    match condition {
        Expr::All(parts) => head(parts.first()?, found, cost),
        Expr::Any(parts) => parts.iter().try_for_each(|part| head(part, found, cost)),
        Expr::Chain { first, rest } => match (first.as_ref(), rest.as_slice()) {
            (Expr::Variable(variable), [(Operator::Equal, Expr::Text(id))])
            | (Expr::Text(id), [(Operator::Equal, Expr::Variable(variable))]) => {
                is_tool(variable)?;
                found.insert(Reach { prefix: id.clone(), exact: true });
                Some(())
            }
            _ => None,
        },
        Expr::Matches { text, glob } => {
            let Expr::Variable(variable) = text.as_ref() else { return None };
            is_tool(variable)?;
            *cost = cost.saturating_add((MAX_TOOL * glob.weight() / PIECE) as u64);
            let (prefix, exact) = glob.prefix();
            found.insert(Reach { prefix, exact });
            Some(())
        }
        Expr::Call { function: Function::StartsWith, arguments } => match arguments.as_slice() {
            [Expr::Variable(variable), Expr::Text(prefix)] => {
                is_tool(variable)?;
                found.insert(Reach { prefix: prefix.clone(), exact: false });
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_tool(variable: &Variable) -> Option<()> {
    (variable.root == Root::Tool).then_some(())
}
