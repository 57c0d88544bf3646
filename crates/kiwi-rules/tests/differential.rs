//! The crate against a second evaluator that shares nothing with it, on generated rulesets and requests.
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

use kiwi_rules::{
    AdmissionResult, Decision, LoadError, RecordedRequest, RuleFile, RuleRegistry, evaluate_admission,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::generate::Generator;
use support::naive::Naive;
use support::tree::RuleTree;

/// Requests for each ruleset.
const REQUESTS: usize = 10;

fn pairs() -> usize {
    if std::env::var_os("KIWI_SOAK").is_some() { 1_000_000 } else { 20_000 }
}

/// A result in the form that the second evaluator gives.
fn told(result: &AdmissionResult) -> Value {
    let spent: serde_json::Map<String, Value> =
        result.verdicts.iter().map(|verdict| (verdict.rule.clone(), verdict.operations.into())).collect();
    match &result.decision {
        Decision::Admit { effect_mutations } => {
            json!({"answer": "allow", "spent": spent, "mutations": effect_mutations})
        }
        Decision::Ask { asked, effect_mutations } => {
            json!({"answer": "ask", "spent": spent, "asked": asked, "mutations": effect_mutations})
        }
        Decision::Deny { reason, further } => {
            let all: Vec<_> = std::iter::once(reason).chain(further).collect();
            json!({"answer": "deny", "spent": spent, "reasons": all})
        }
    }
}

/// One file for each rule, in some order.
fn load(rules: &[RuleTree], order: &[usize]) -> Result<RuleRegistry, LoadError> {
    let texts: Vec<(String, String)> =
        order.iter().map(|at| (format!("{}.kappa", rules[*at].name), rules[*at].source())).collect();
    let files: Vec<RuleFile<'_>> =
        texts.iter().map(|(name, text)| RuleFile { name, bytes: text.as_bytes() }).collect();
    RuleRegistry::load(&files)
}

#[test]
fn both_evaluators_agree_on_every_pair() {
    let mut generator = Generator::new(0x6b_6170_7061);
    let (mut compared, mut ambiguous) = (0, 0);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    while compared < pairs() {
        let rules = generator.ruleset();
        let forward: Vec<usize> = (0..rules.len()).collect();
        let backward: Vec<usize> = forward.iter().rev().copied().collect();
        let registry = match load(&rules, &forward) {
            Ok(registry) => registry,
            Err(LoadError::Ambiguous { rules: named, .. }) => {
                assert!(clash(&rules), "{named:?} are said to be ambiguous");
                ambiguous += 1;
                continue;
            }
            Err(error) => panic!("{error}\n{}", source(&rules)),
        };
        assert!(!clash(&rules), "ambiguous, but loaded:\n{}", source(&rules));
        let shuffled = load(&rules, &backward).expect("it loads in any order");
        assert_eq!(registry.version_hash(), shuffled.version_hash());
        for _ in 0..REQUESTS {
            let request = generator.request();
            let recorded: RecordedRequest = serde_json::from_value(request.clone()).expect("a request");
            let result = evaluate_admission(&recorded.request(), &registry);
            let expected = Naive { request: &request }.judge(&rules);
            let found = told(&result);
            assert_eq!(found, expected, "{request}\n{}", source(&rules));
            assert_eq!(
                result,
                evaluate_admission(&recorded.request(), &shuffled),
                "order changed the answer"
            );
            assert_eq!(result, evaluate_admission(&recorded.request(), &registry), "a second run differs");
            *seen.entry(category(&found)).or_default() += 1;
            compared += 1;
        }
    }
    eprintln!("{compared} pairs compared, {ambiguous} rulesets ambiguous, {seen:#?}");
    // A generator that stopped producing a kind of answer would let the comparison pass for nothing.
    for kind in [
        "allow",
        "ask",
        "no_rule_matched",
        "budget integer_operations",
        "budget arguments",
        "budget call_depth",
        "effect_invariant_violated",
        "axiom_violation AX-01",
        "axiom_violation AX-02",
        "axiom_violation AX-03",
        "rule_rejected integer overflow",
        "rule_rejected division by zero",
        "rule_rejected type mismatch",
    ] {
        assert!(seen.get(kind).is_some_and(|count| *count > 5), "`{kind}` hardly ever happened: {seen:#?}");
    }
    assert!(ambiguous > 5, "no ambiguous rulesets");
}

fn source(rules: &[RuleTree]) -> String {
    rules.iter().map(RuleTree::source).collect()
}

/// Whether two rules have the same conditions and other answers, told from their texts.
fn clash(rules: &[RuleTree]) -> bool {
    let form = |rule: &RuleTree| -> (Vec<String>, Vec<std::mem::Discriminant<_>>) {
        let condition = |tree: &Option<support::tree::Tree>| {
            tree.as_ref().map_or("true".to_owned(), support::tree::Tree::source)
        };
        rule.guards.iter().map(|(tree, then)| (condition(tree), std::mem::discriminant(then))).unzip()
    };
    rules.iter().enumerate().any(|(at, a)| {
        rules[..at].iter().any(|b| {
            let (a, b) = (form(a), form(b));
            a.0 == b.0 && a.1 != b.1
        })
    })
}

fn category(told: &Value) -> String {
    let reason = &told["reasons"][0];
    let Some(kind) = reason["kind"].as_str() else { return told["answer"].as_str().unwrap().to_owned() };
    let more = match kind {
        "budget" => reason["axis"].as_str().unwrap(),
        "axiom_violation" => reason["axiom"].as_str().unwrap(),
        "rule_rejected" => match reason["rule_reason"].as_str().unwrap() {
            text @ ("integer overflow" | "division by zero") => text,
            text if text.starts_with("type mismatch") => "type mismatch",
            text if text.starts_with("`$") => "path",
            _ => "by its own words",
        },
        _ => "",
    };
    format!("{kind} {more}").trim_end().to_owned()
}
