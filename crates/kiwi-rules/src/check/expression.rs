//! Expressions: every name known, every call with as many arguments as it takes.

use super::Checker;
use super::names::{EFFECTS, FORBIDDEN, FUNCTIONS, ROOTS, function, suggestion};
use crate::Span;
use crate::glob::Glob;
use crate::problem::Complaint;
use crate::rule::{Expr, Root, Variable};
use crate::syntax::{CallSyntax, Node, NodeKind};

impl Checker {
    /// The meaning of an expression; `None` when something in it is wrong, which has been written down.
    pub(super) fn expression(&mut self, node: &Node) -> Option<Expr> {
        self.weights.ast_nodes += 1;
        Some(match &node.kind {
            NodeKind::Integer(integer) => Expr::Integer(*integer),
            NodeKind::Bool(truth) => Expr::Bool(*truth),
            NodeKind::Text(text) => Expr::Text(text.clone()),
            NodeKind::Variable(path) => Expr::Variable(self.variable(path, node.span)?),
            NodeKind::Call(call) => self.function_call(call)?,
            NodeKind::Not(inner) => Expr::Not(Box::new(self.expression(inner)?)),
            NodeKind::Negate(inner) => Expr::Negate(Box::new(self.expression(inner)?)),
            NodeKind::All(parts) => Expr::All(self.parts(parts)?),
            NodeKind::Any(parts) => Expr::Any(self.parts(parts)?),
            NodeKind::Chain { first, rest } => {
                // One node for each operator; the first was counted above.
                self.weights.ast_nodes += (rest.len() as u64).saturating_sub(1);
                let first = self.expression(first);
                let rest: Vec<_> = rest.iter().map(|(sign, part)| (*sign, self.expression(part))).collect();
                let rest = rest.into_iter().map(|(sign, part)| Some((sign, part?))).collect::<Option<_>>()?;
                Expr::Chain { first: Box::new(first?), rest }
            }
        })
    }

    fn parts(&mut self, parts: &[Node]) -> Option<Vec<Expr>> {
        self.weights.ast_nodes += (parts.len() as u64).saturating_sub(2);
        self.all(parts)
    }

    /// All of some expressions, each examined even if one before it is wrong.
    pub(super) fn all(&mut self, nodes: &[Node]) -> Option<Vec<Expr>> {
        let found: Vec<Option<Expr>> = nodes.iter().map(|node| self.expression(node)).collect();
        found.into_iter().collect()
    }

    fn variable(&mut self, path: &[String], span: Span) -> Option<Variable> {
        let (name, fields) = path.split_first()?;
        if name == "permission" {
            let root = match fields {
                [field] if field == "allowed" => Root::PermissionAllowed,
                [field] if field == "answer" => Root::PermissionAnswer,
                _ => {
                    let hint = "there are `$permission.allowed` and `$permission.answer`";
                    return self.wrong(span, "`$permission` has no such field".into(), hint);
                }
            };
            return Some(Variable { root, path: Vec::new() });
        }
        let Some((root, open)) = ROOTS.iter().find(|(root, _)| root.as_str() == name) else {
            let known = ROOTS.iter().map(|(root, _)| root.as_str()).chain(["permission"]);
            return self.wrong(span, format!("there is no `${name}`"), &suggestion(name, known, "$"));
        };
        if !open && !fields.is_empty() {
            return self.wrong(span, format!("`${name}` has no fields"), &format!("write `${name}`"));
        }
        Some(Variable { root: *root, path: fields.to_vec() })
    }

    fn function_call(&mut self, call: &CallSyntax) -> Option<Expr> {
        let name = call.name.text.as_str();
        let Some((_, fewest, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return self.unknown_function(call);
        };
        self.count_arguments(call, *fewest, *most)?;
        self.inside_call(call, |checker| match (name, call.arguments.as_slice()) {
            ("has", [argument]) => match &argument.kind {
                NodeKind::Variable(path) => {
                    checker.weights.ast_nodes += 1;
                    Some(Expr::Has(checker.variable(path, argument.span)?))
                }
                _ => checker.wrong(argument.span, "`has` takes a variable".into(), "write `has($args.path)`"),
            },
            ("matches", [text, pattern]) => {
                let text = checker.expression(text);
                let glob = checker.glob(pattern);
                Some(Expr::Matches { text: Box::new(text?), glob: glob? })
            }
            (_, arguments) => {
                let arguments = checker.all(arguments)?;
                Some(Expr::Call { function: function(name)?, arguments })
            }
        })
    }

    fn glob(&mut self, node: &Node) -> Option<Glob> {
        self.weights.ast_nodes += 1;
        // A pattern from the request would let the caller choose what it is held against.
        let NodeKind::Text(pattern) = &node.kind else {
            let hint = "write the pattern out: `matches($tool, \"filesystem.*\")`";
            return self.wrong(node.span, "a pattern must stand in the rule itself".into(), hint);
        };
        match Glob::new(pattern) {
            Ok(glob) => Some(glob),
            Err(why) => self.wrong(node.span, format!("this pattern cannot be read: {why}"), ""),
        }
    }

    fn unknown_function(&mut self, call: &CallSyntax) -> Option<Expr> {
        let name = call.name.text.as_str();
        if self.is_forbidden(call) {
            return None;
        }
        if EFFECTS.contains(&name) {
            let hint = "effects stand in `effects { … }`, and happen only if the call is admitted";
            return self.wrong(call.name.span, format!("`{name}` is an effect, not a function"), hint);
        }
        let known = FUNCTIONS.iter().map(|(known, ..)| *known);
        self.wrong(call.name.span, format!("there is no function `{name}`"), &suggestion(name, known, ""))
    }

    /// Complains about a name that no rule may use.
    pub(super) fn is_forbidden(&mut self, call: &CallSyntax) -> bool {
        let name = call.name.text.as_str();
        let forbidden = FORBIDDEN.contains(&name);
        if forbidden {
            let hint = "rules see the request and the state snapshot only, so that an answer can be repeated";
            self.wrong::<()>(call.name.span, format!("`{name}` is forbidden in rules"), hint);
        }
        forbidden
    }

    pub(super) fn count_arguments(
        &mut self,
        call: &CallSyntax,
        fewest: usize,
        most: Option<usize>,
    ) -> Option<()> {
        let given = call.arguments.len();
        if given >= fewest && most.is_none_or(|most| given <= most) {
            return Some(());
        }
        let wanted = match most {
            Some(most) if most == fewest => fewest.to_string(),
            _ => format!("at least {fewest}"),
        };
        let noun = if fewest == 1 { "argument" } else { "arguments" };
        self.wrong(call.span, format!("`{}` takes {wanted} {noun}, not {given}", call.name.text), "")
    }

    /// Examines the arguments of a call, and weighs the call.
    pub(super) fn inside_call<T>(&mut self, call: &CallSyntax, examine: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        self.weights.call_depth = self.weights.call_depth.max(self.depth);
        self.weights.arguments = self.weights.arguments.max(call.arguments.len() as u64);
        let result = examine(self);
        self.depth -= 1;
        result
    }

    pub(super) fn wrong<T>(&mut self, span: Span, message: String, hint: &str) -> Option<T> {
        let complaint = Complaint::new(span, message);
        self.complaints.push(if hint.is_empty() { complaint } else { complaint.with_hint(hint) });
        None
    }
}
