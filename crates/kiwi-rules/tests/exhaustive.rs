//! Every ruleset of a small scope against every request of a small scope: nothing is left to chance.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    reason = "a test fails by panicking"
)]

mod support;

use kiwi_rules::{Answer, Decision, LoadError, RecordedRequest, RuleFile, RuleRegistry, evaluate_admission};
use serde_json::{Value, json};
use support::naive::Naive;
use support::tree::{RuleTree, Then, Tree};

fn var(name: &'static str) -> Tree {
    Tree::Var(name)
}

fn op(sign: &'static str, left: Tree, right: Tree) -> Tree {
    Tree::Op(sign, Box::new(left), Box::new(right))
}

/// Conditions that hold, do not hold, or cannot be judged, with and without a tool to begin with.
fn conditions() -> Vec<Option<Tree>> {
    let tool = || op("==", var("tool"), Tree::Str("a".into()));
    let over_zero = || op("==", op("/", Tree::Int(1), var("args.n")), Tree::Int(1));
    vec![
        None,
        Some(tool()),
        Some(op("and", tool(), var("mutates"))),
        Some(op("or", tool(), op("and", Tree::Bool(true), var("mutates")))),
        Some(over_zero()),
        Some(op("and", tool(), over_zero())),
        Some(Tree::Call("matches", vec![var("tool"), Tree::Str("b*".into())])),
        Some(Tree::Call("has", vec![var("args.n")])),
    ]
}

fn rules() -> Vec<RuleTree> {
    let answers = [Then::Admit, Then::Ask("why".into()), Then::Reject("no".into())];
    let effects: [Vec<(&'static str, Vec<Tree>)>; 2] =
        [vec![], vec![("apply", vec![Tree::Str("state.c".into()), Tree::Int(-1)])]];
    let mut rules = Vec::new();
    for condition in conditions() {
        for answer in &answers {
            for effects in &effects {
                let guards = vec![(condition.clone(), answer.clone())];
                rules.push(RuleTree { name: String::new(), guards, effects: effects.clone() });
            }
        }
    }
    rules
}

fn requests() -> Vec<Value> {
    let mut requests = Vec::new();
    for tool in ["a", "b", "bc", ""] {
        for args in [json!({}), json!({"n": 0}), json!({"n": 1}), json!({"n": "x"})] {
            for mutates in [false, true] {
                for count in [0, 1, 2] {
                    requests.push(json!({
                        "caller": "c", "tool": tool, "mode": "normal", "args": args, "tool_type": "script",
                        "space": "project", "mutates": mutates, "state": {"c": count}, "interactive": false,
                        "permission": {"allowed": true, "answer": "allow"},
                    }));
                }
            }
        }
    }
    requests
}

#[test]
fn every_pair_of_rules_for_every_request() {
    let (rules, requests) = (rules(), requests());
    let recorded: Vec<RecordedRequest> =
        requests.iter().map(|request| serde_json::from_value(request.clone()).unwrap()).collect();
    let (mut judged, mut refused) = (0, 0);
    for first in &rules {
        for second in &rules {
            let pair = [
                RuleTree { name: "one".into(), ..first.clone() },
                RuleTree { name: "two".into(), ..second.clone() },
            ];
            let text: String = pair.iter().map(RuleTree::source).collect();
            let files = [RuleFile { name: "pair.kappa", bytes: text.as_bytes() }];
            let registry = match RuleRegistry::load(&files) {
                Ok(registry) => registry,
                Err(LoadError::Ambiguous { .. }) => {
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            for (request, recorded) in requests.iter().zip(&recorded) {
                let result = evaluate_admission(&recorded.request(), &registry);
                let expected = Naive { request }.judge(&pair);
                assert_eq!(result.answer().as_str(), expected["answer"], "{request}\n{text}");
                match &result.decision {
                    Decision::Admit { effect_mutations } | Decision::Ask { effect_mutations, .. } => {
                        assert_eq!(json!(effect_mutations), expected["mutations"], "{request}\n{text}");
                    }
                    Decision::Deny { reason, further } => {
                        let all: Vec<_> = std::iter::once(reason).chain(further).collect();
                        assert_eq!(json!(all), expected["reasons"], "{request}\n{text}");
                    }
                }
                judged += 1;
            }
        }
    }
    // 8 conditions × 3 answers × 2 effects, all pairs, less those that hold one condition to mean two things.
    assert_eq!((rules.len(), refused), (48, 8 * (6 * 6 - 3 * 2 * 2)));
    assert_eq!(judged, (48 * 48 - refused) * requests.len());
}

#[test]
fn the_strictest_answer_wins_whatever_the_order() {
    let line = |answer: usize| ["admit", "ask \"w\"", "reject \"n\""][answer];
    for a in 0..3 {
        for b in 0..3 {
            for c in 0..3 {
                // Conditions differ in their spelling only, so that the set is not ambiguous.
                let rule = |at: usize, answer: usize| {
                    format!("rule r{at} {{ guards {{ {at} == {at} -> {} }} effects {{ }} }}\n", line(answer))
                };
                let text = [rule(0, a), rule(1, b), rule(2, c)].concat();
                let strictest = [Answer::Allow, Answer::Ask, Answer::Deny][a.max(b).max(c)];
                assert_eq!(support::admit(&text, json!({"tool": "t"})).answer(), strictest, "{text}");
            }
        }
    }
}
