//! Effects: known names, the right number of arguments. Whether a write is allowed is judged with the request, since
//! breaking an invariant or an axiom is a denial that is recorded.

use super::Checker;
use super::names::{EFFECTS, suggestion};
use crate::rule::{Effect, Target};
use crate::syntax::{CallSyntax, Node, NodeKind};

impl Checker {
    pub(super) fn effect(&mut self, call: &CallSyntax) -> Option<Effect> {
        let name = call.name.text.as_str();
        if self.is_forbidden(call) {
            return None;
        }
        let most = match name {
            "set" | "apply" => Some(2),
            "emit" => None,
            _ => {
                let hint = suggestion(name, EFFECTS.into_iter(), "");
                return self.wrong(call.name.span, format!("there is no effect `{name}`"), &hint);
            }
        };
        self.count_arguments(call, most.unwrap_or(1), most)?;
        self.weights.ast_nodes += 1;
        self.inside_call(call, |checker| match (name, call.arguments.as_slice()) {
            ("set", [target, value]) => {
                let (target, value) = (checker.target(target), checker.expression(value));
                Some(Effect::Set { target: target?, value: value? })
            }
            ("apply", [target, delta]) => {
                let (target, delta) = (checker.target(target), checker.expression(delta));
                Some(Effect::Apply { target: target?, delta: delta? })
            }
            (_, [name, values @ ..]) => {
                let (name, values) = (checker.expression(name), checker.all(values));
                Some(Effect::Emit { name: name?, values: values? })
            }
            _ => None,
        })
    }

    /// `$state.calls` names what is written; it is not read, so it need not be in scope.
    fn target(&mut self, node: &Node) -> Option<Target> {
        if let NodeKind::Variable(path) = &node.kind {
            self.weights.ast_nodes += 1;
            return Some(Target::Path(path.join(".")));
        }
        Some(Target::Named(self.expression(node)?))
    }
}
