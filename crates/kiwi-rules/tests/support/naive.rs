//! A second evaluator, written from the specification alone: it walks the suites' own trees, keeps whole copies of
//! everything, calculates in 128 bits, matches globs by trying, and looks at every rule.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

use super::tree::{RuleTree, Then, Tree};

/// A value while it is worked with.
#[derive(Debug, Clone, PartialEq)]
enum Thing {
    I(i64),
    B(bool),
    S(String),
}

/// Why a rule stopped, as the JSON of its denial without the rule's name.
type Stop = Value;

pub struct Naive<'a> {
    /// The request as one JSON object, keyed like the roots.
    pub request: &'a Value,
}

struct Run<'a> {
    request: &'a Value,
    operations: u64,
}

fn reject(reason: &str) -> Stop {
    serde_json::json!({"kind": "rule_rejected", "rule_reason": reason})
}

fn kind(thing: &Thing) -> &'static str {
    match thing {
        Thing::I(_) => "an integer",
        Thing::B(_) => "a boolean",
        Thing::S(_) => "a string",
    }
}

fn wrong(taker: &str, wanted: &str, found: &Thing) -> Stop {
    reject(&format!("type mismatch: {taker} takes {wanted}, not {}", kind(found)))
}

impl Naive<'_> {
    /// `{"answer", "spent", "reasons" | "asked", "mutations"}` of a whole ruleset.
    pub fn judge(&self, rules: &[RuleTree]) -> Value {
        let mut order: Vec<&RuleTree> = rules.iter().collect();
        order.sort_by_key(|rule| (std::cmp::Reverse(specificity(rule)), rule.name.clone()));
        let mut spoken: Vec<(&RuleTree, Result<Then, Stop>, u64)> = Vec::new();
        for rule in order {
            let mut run = Run { request: self.request, operations: 0 };
            match run.rule(rule) {
                Ok(None) => {}
                Ok(Some(Then::Reject(why))) => spoken.push((rule, Err(reject(&why)), run.operations)),
                Ok(Some(then)) => spoken.push((rule, Ok(then), run.operations)),
                Err(stop) => spoken.push((rule, Err(stop), run.operations)),
            }
        }
        let mut mutations = Vec::new();
        if spoken.iter().all(|(_, answer, _)| answer.is_ok()) {
            let mut state = self.request["state"].clone();
            for (rule, answer, operations) in &mut spoken {
                let mut run = Run { request: self.request, operations: *operations };
                match run.effects(rule, &mut state) {
                    Ok(found) => mutations.extend(found),
                    Err(stop) => *answer = Err(stop),
                }
                *operations = run.operations;
            }
        }
        let spent: Map<String, Value> =
            spoken.iter().map(|(rule, _, operations)| (rule.name.clone(), (*operations).into())).collect();
        let denials: Vec<Value> = spoken
            .iter()
            .filter_map(|(rule, answer, _)| {
                let mut stop = answer.as_ref().err()?.clone();
                if stop["kind"] != "axiom_violation" {
                    stop["rule"] = rule.name.clone().into();
                }
                Some(stop)
            })
            .collect();
        if !denials.is_empty() {
            return serde_json::json!({"answer": "deny", "spent": spent, "reasons": denials});
        }
        if spoken.is_empty() {
            let reason = serde_json::json!({"kind": "no_rule_matched", "tool": self.request["tool"]});
            return serde_json::json!({"answer": "deny", "spent": spent, "reasons": [reason]});
        }
        let asked: Vec<Value> = spoken
            .iter()
            .filter_map(|(rule, answer, _)| match answer {
                Ok(Then::Ask(why)) => Some(serde_json::json!({"rule": rule.name, "reason": why})),
                _ => None,
            })
            .collect();
        if asked.is_empty() {
            serde_json::json!({"answer": "allow", "spent": spent, "mutations": mutations})
        } else {
            serde_json::json!({"answer": "ask", "spent": spent, "asked": asked, "mutations": mutations})
        }
    }
}

fn specificity(rule: &RuleTree) -> usize {
    // `a and b and c` leans to the left; what parentheses hold on the right is one conjunct.
    fn conjuncts(tree: &Tree) -> usize {
        if let Tree::Op("and", left, _) = tree { conjuncts(left) + 1 } else { 1 }
    }
    rule.guards.iter().map(|(condition, _)| condition.as_ref().map_or(0, conjuncts)).max().unwrap_or(0)
}

/// Parts, nesting of calls and the largest number of arguments.
fn weigh(tree: &Tree) -> (u64, u64, u64) {
    match tree {
        Tree::Int(integer) if *integer < 0 => (2, 0, 0),
        Tree::Int(_) | Tree::Bool(_) | Tree::Str(_) | Tree::Var(_) => (1, 0, 0),
        Tree::Not(inner) | Tree::Neg(inner) => {
            let (parts, depth, arguments) = weigh(inner);
            (parts + 1, depth, arguments)
        }
        Tree::Op(_, left, right) => {
            let (a, b) = (weigh(left), weigh(right));
            (a.0 + b.0 + 1, a.1.max(b.1), a.2.max(b.2))
        }
        Tree::Call(_, list) => weigh_call(list),
    }
}

fn weigh_call(list: &[Tree]) -> (u64, u64, u64) {
    let inner: Vec<_> = list.iter().map(weigh).collect();
    (
        1 + inner.iter().map(|w| w.0).sum::<u64>(),
        1 + inner.iter().map(|w| w.1).max().unwrap_or(0),
        inner.iter().map(|w| w.2).max().unwrap_or(0).max(list.len() as u64),
    )
}

impl Run<'_> {
    fn rule(&mut self, rule: &RuleTree) -> Result<Option<Then>, Stop> {
        let mut total = (1 + rule.guards.len() as u64, 0, 0);
        let guards = rule.guards.iter().filter_map(|(condition, _)| condition.as_ref()).map(weigh);
        for (parts, depth, arguments) in guards.chain(rule.effects.iter().map(|(_, list)| weigh_call(list))) {
            total = (total.0 + parts, total.1.max(depth), total.2.max(arguments));
        }
        for (axis, limit, used) in
            [("ast_nodes", 10_000, total.0), ("arguments", 8, total.2), ("call_depth", 16, total.1)]
        {
            if used > limit {
                return Err(
                    serde_json::json!({"kind": "budget", "axis": axis, "limit": limit, "used": used}),
                );
            }
        }
        for (condition, then) in &rule.guards {
            let Some(condition) = condition else { return Ok(Some(then.clone())) };
            match self.eval(condition)? {
                Thing::B(true) => return Ok(Some(then.clone())),
                Thing::B(false) => {}
                other => return Err(wrong("a guard", "a boolean", &other)),
            }
        }
        Ok(None)
    }

    fn pay(&mut self, amount: u64) -> Result<(), Stop> {
        self.operations += amount;
        if self.operations > 10_000 {
            return Err(serde_json::json!({
                "kind": "budget", "axis": "integer_operations", "limit": 10_000, "used": self.operations,
            }));
        }
        Ok(())
    }

    fn look(&self, name: &str) -> Result<Thing, &'static str> {
        let mut here = self.request;
        for part in name.split('.') {
            here = here.get(part).ok_or("absent")?;
        }
        match here {
            Value::Null => Err("null"),
            Value::Array(_) => Err("a list"),
            Value::Object(_) => Err("an object"),
            Value::Bool(truth) => Ok(Thing::B(*truth)),
            Value::String(text) => Ok(Thing::S(text.clone())),
            Value::Number(number) if number.is_i64() => Ok(Thing::I(number.as_i64().expect("an i64"))),
            Value::Number(number) if number.is_u64() => Err("outside the range of integers"),
            Value::Number(_) => Err("a float"),
        }
    }

    fn eval(&mut self, tree: &Tree) -> Result<Thing, Stop> {
        match tree {
            Tree::Int(integer) if *integer < 0 => {
                self.pay(1)?;
                Ok(Thing::I(*integer))
            }
            Tree::Int(integer) => Ok(Thing::I(*integer)),
            Tree::Bool(truth) => Ok(Thing::B(*truth)),
            Tree::Str(text) => Ok(Thing::S(text.clone())),
            Tree::Var(name) => self
                .look(name)
                .map_err(|why| reject(&format!("`${name}` is {why}; test it with `has(${name})` first"))),
            Tree::Not(inner) => {
                let value = self.eval(inner)?;
                self.pay(1)?;
                match value {
                    Thing::B(truth) => Ok(Thing::B(!truth)),
                    other => Err(wrong("`not`", "a boolean", &other)),
                }
            }
            Tree::Neg(inner) => {
                let value = self.eval(inner)?;
                self.pay(1)?;
                match value {
                    Thing::I(integer) => narrow(-i128::from(integer)).map(Thing::I),
                    other => Err(wrong("`-`", "an integer", &other)),
                }
            }
            Tree::Op(word @ ("and" | "or"), left, right) => {
                let taker = format!("`{word}`");
                let Thing::B(first) = self.truth(left, &taker)? else { unreachable!() };
                if first == (*word == "or") {
                    return Ok(Thing::B(first));
                }
                self.pay(1)?;
                self.truth(right, &taker)
            }
            Tree::Op(sign, left, right) => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                let pieces = match (&left, &right) {
                    (Thing::S(a), Thing::S(b)) => a.len().min(b.len()) as u64 / 1024,
                    _ => 0,
                };
                self.pay(1 + pieces)?;
                operate(sign, &left, &right)
            }
            Tree::Call(name, list) => self.call(name, list),
        }
    }

    fn truth(&mut self, tree: &Tree, taker: &str) -> Result<Thing, Stop> {
        match self.eval(tree)? {
            Thing::B(truth) => Ok(Thing::B(truth)),
            other => Err(wrong(taker, "a boolean", &other)),
        }
    }

    fn call(&mut self, name: &str, list: &[Tree]) -> Result<Thing, Stop> {
        if let ("has", [Tree::Var(path)]) = (name, list) {
            self.pay(1)?;
            return Ok(Thing::B(self.look(path).is_ok()));
        }
        let values = list.iter().map(|tree| self.eval(tree)).collect::<Result<Vec<_>, _>>()?;
        let length = if let Some(Thing::S(text)) = values.first() { text.len() as u64 } else { 0 };
        let taker = format!("`{name}`");
        if let ("matches", [subject, Thing::S(glob)]) = (name, values.as_slice()) {
            // None of the generated patterns has classes, escapes or folders, whose parts are counted differently.
            let parts = glob.replace("**", "*").chars().count() as u64;
            self.pay(1 + length * parts / 1024)?;
            let Thing::S(subject) = subject else { return Err(wrong(&taker, "a string", subject)) };
            let (glob, subject): (Vec<char>, Vec<char>) = (glob.chars().collect(), subject.chars().collect());
            return Ok(Thing::B(fits(&glob, &subject)));
        }
        self.pay(1 + length / 1024)?;
        if ["starts_with", "contains", "len"].contains(&name) {
            let texts = values
                .iter()
                .map(|value| match value {
                    Thing::S(text) => Ok(text.as_str()),
                    other => Err(wrong(&taker, "a string", other)),
                })
                .collect::<Result<Vec<_>, _>>()?;
            return Ok(match (name, texts.as_slice()) {
                ("starts_with", [text, start]) => {
                    Thing::B(text.len() >= start.len() && text.as_bytes()[..start.len()] == *start.as_bytes())
                }
                ("contains", [text, part]) => Thing::B(
                    part.is_empty() || text.as_bytes().windows(part.len()).any(|at| at == part.as_bytes()),
                ),
                (_, [text]) => Thing::I(text.chars().fold(0, |count, _| count + 1)),
                _ => unreachable!("{name}"),
            });
        }
        let numbers = values
            .iter()
            .map(|value| match value {
                Thing::I(integer) => Ok(i128::from(*integer)),
                other => Err(wrong(&taker, "an integer", other)),
            })
            .collect::<Result<Vec<_>, _>>()?;
        self.numbers(name, &numbers).map(Thing::I)
    }

    fn numbers(&mut self, name: &str, numbers: &[i128]) -> Result<i64, Stop> {
        match (name, numbers) {
            ("min", numbers) => narrow(numbers.iter().fold(i128::MAX, |a, b| a.min(*b))),
            ("max", numbers) => narrow(numbers.iter().fold(i128::MIN, |a, b| a.max(*b))),
            ("bps_mul", [a, b]) => divide(narrow(a * b)?.into(), 10_000),
            ("bps_div", [a, b]) => divide(narrow(a * 10_000)?.into(), *b),
            ("decay", [value, rate, rounds]) => {
                if *rounds < 0 {
                    return Err(reject("`decay` cannot run a negative number of times"));
                }
                let (mut value, mut left) = (*value, *rounds);
                while left > 0 {
                    self.pay(1)?;
                    let kept = narrow(10_000 - rate)?;
                    value = divide(narrow(value * i128::from(kept))?.into(), 10_000)?.into();
                    left -= 1;
                }
                narrow(value)
            }
            _ => unreachable!("{name}"),
        }
    }

    fn effects(&mut self, rule: &RuleTree, state: &mut Value) -> Result<Vec<Value>, Stop> {
        let mut mutations = Vec::new();
        for (effect, list) in &rule.effects {
            let mut values = Vec::new();
            for (number, tree) in list.iter().enumerate() {
                let value = match tree {
                    Tree::Var(path) if number == 0 && *effect != "emit" => Thing::S((*path).to_owned()),
                    tree => self.eval(tree)?,
                };
                if number == 0 && !matches!(value, Thing::S(_)) {
                    return Err(wrong(&format!("`{effect}`"), "a string", &value));
                }
                if number > 0 && *effect == "emit" && value == Thing::I(i64::MIN) {
                    return Err(reject("integer overflow"));
                }
                values.push(value);
            }
            self.pay(1)?;
            let Some(Thing::S(mut subject)) = values.first().cloned() else { unreachable!() };
            let plain = !["audit", "permission", "mode", "state", ""].contains(&subject.as_str());
            if *effect == "apply" && plain && !subject.contains('.') {
                subject = format!("state.{subject}");
            }
            if let (&"apply", other @ (Thing::B(_) | Thing::S(_))) = (effect, values.last().expect("two")) {
                return Err(wrong("`apply`", "an integer", other));
            }
            let what = format!("{effect} {subject}");
            let names: Vec<&str> = subject.split('.').collect();
            let axiom = match (names[0], names.get(1)) {
                ("audit", _) => Some("AX-01"),
                ("permission" | "mode", _) => Some("AX-03"),
                ("reputation", _) | ("state", Some(&"reputation")) if *effect == "set" => Some("AX-02"),
                _ => None,
            };
            if let Some(axiom) = axiom {
                let detail = format!("rule `{}` wants to `{what}`", rule.name);
                return Err(serde_json::json!({"kind": "axiom_violation", "axiom": axiom, "detail": detail}));
            }
            let rest: Vec<Value> = values[1..].iter().map(json).collect();
            if *effect == "emit" {
                let name = &rule.name;
                mutations.push(
                    serde_json::json!({"effect": "emit", "rule": name, "name": subject, "values": rest}),
                );
                continue;
            }
            let changed = change(state, &subject, &names, effect, &values[1]).map_err(|detail| {
                serde_json::json!({"kind": "effect_invariant_violated", "effect": what, "detail": detail})
            })?;
            *state = changed;
            let key = if *effect == "set" { "value" } else { "delta" };
            mutations.push(
                serde_json::json!({"effect": effect, "rule": rule.name, "path": subject, key: rest[0]}),
            );
        }
        Ok(mutations)
    }
}

fn json(thing: &Thing) -> Value {
    match thing {
        Thing::I(integer) => (*integer).into(),
        Thing::B(truth) => (*truth).into(),
        Thing::S(text) => text.clone().into(),
    }
}

/// The state after an effect, rebuilt from the leaf to the root.
fn change(state: &Value, path: &str, names: &[&str], effect: &str, value: &Thing) -> Result<Value, String> {
    if names.len() < 2 || names[0] != "state" {
        return Err(format!("only `state.*` is written, not `{path}`"));
    }
    rebuilt(Some(state), &names[1..], path, effect, value)
}

fn rebuilt(
    here: Option<&Value>,
    names: &[&str],
    path: &str,
    effect: &str,
    value: &Thing,
) -> Result<Value, String> {
    if let Some((first, rest)) = names.split_first() {
        let mut map = match here {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(format!("`{path}` lies below a value")),
        };
        let inner = rebuilt(map.get(*first), rest, path, effect, value)?;
        map.insert((*first).to_owned(), inner);
        return Ok(Value::Object(map));
    }
    let new = match (effect, here, value) {
        ("set", Some(Value::Array(_) | Value::Object(_)), _) => {
            return Err(format!("`{path}` holds more than one value"));
        }
        ("set", _, value) => json(value),
        (_, None | Some(Value::Null), Thing::I(delta)) => (*delta).into(),
        (_, Some(Value::Number(number)), Thing::I(delta)) if number.is_i64() => {
            let sum = i128::from(number.as_i64().expect("an i64")) + i128::from(*delta);
            let outside = |_| format!("`{path}` would leave the range of integers");
            i64::try_from(sum).map_err(outside)?.into()
        }
        _ => return Err(format!("`{path}` is not a counter")),
    };
    if new.as_i64().is_some_and(|integer| integer < 0) {
        return Err(format!("`{path}` would fall below zero"));
    }
    Ok(new)
}

fn narrow(wide: i128) -> Result<i64, Stop> {
    i64::try_from(wide).map_err(|_| reject("integer overflow"))
}

fn divide(a: i128, b: i128) -> Result<i64, Stop> {
    if b == 0 {
        return Err(reject("division by zero"));
    }
    let magnitude = a.abs() / b.abs();
    narrow(if (a < 0) == (b < 0) { magnitude } else { -magnitude })
}

fn operate(sign: &str, left: &Thing, right: &Thing) -> Result<Thing, Stop> {
    if sign == "==" || sign == "!=" {
        if kind(left) != kind(right) {
            let told = format!("type mismatch: `{sign}` compares {} with {}", kind(left), kind(right));
            return Err(reject(&told));
        }
        return Ok(Thing::B((left == right) == (sign == "==")));
    }
    let taker = format!("`{sign}`");
    let Thing::I(a) = left else { return Err(wrong(&taker, "an integer", left)) };
    let Thing::I(b) = right else { return Err(wrong(&taker, "an integer", right)) };
    let (a, b) = (i128::from(*a), i128::from(*b));
    match sign {
        "<" => Ok(Thing::B(a < b)),
        ">" => Ok(Thing::B(a > b)),
        "<=" => Ok(Thing::B(a <= b)),
        ">=" => Ok(Thing::B(a >= b)),
        "+" => narrow(a + b).map(Thing::I),
        "-" => narrow(a - b).map(Thing::I),
        "*" => narrow(a * b).map(Thing::I),
        "/" => divide(a, b).map(Thing::I),
        _ => {
            // What division leaves over; where the quotient does not fit, neither is defined.
            let quotient = divide(a, b)?;
            narrow(a - i128::from(quotient) * b).map(Thing::I)
        }
    }
}

/// Globs by trying: every way in which a star could be used. Equal situations are tried once.
fn fits(glob: &[char], text: &[char]) -> bool {
    fn from(glob: &[char], text: &[char], dead: &mut BTreeSet<(usize, usize)>) -> bool {
        if dead.contains(&(glob.len(), text.len())) {
            return false;
        }
        let found = match glob {
            [] => text.is_empty(),
            ['*', '*', rest @ ..] => (0..=text.len()).any(|n| from(rest, &text[n..], dead)),
            ['*', rest @ ..] => (0..=text.len())
                .take_while(|n| !text[..*n].contains(&'/'))
                .any(|n| from(rest, &text[n..], dead)),
            ['?', rest @ ..] => text.first().is_some_and(|c| *c != '/') && from(rest, &text[1..], dead),
            [c, rest @ ..] => text.first() == Some(c) && from(rest, &text[1..], dead),
        };
        if !found {
            dead.insert((glob.len(), text.len()));
        }
        found
    }
    from(glob, text, &mut BTreeSet::new())
}
