//! The registry: one version for one meaning, examples that hold, and no two rules that contradict each other.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use kiwi_model::{ErrorKind, Explain};
use kiwi_rules::{
    Answer, BudgetAxis, BudgetTracker, DenialReason, Limits, LoadError, RuleFile, RuleRegistry,
    evaluate_admission,
};
use serde_json::json;
use support::{admit, load, registry, request, when};

fn rule(name: &str, guard: &str) -> String {
    format!("rule {name} {{ guards {{ {guard} }} effects {{ }} }}\n")
}

#[test]
fn the_version_is_the_same_for_any_order_and_layout_of_files() {
    let (a, b, c) =
        (rule("a", "$mutates -> admit"), rule("b", "1 == 1 -> admit"), rule("c", "else -> ask \"x\""));
    let load = |texts: &[&str]| {
        let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.kappa")).collect();
        let files: Vec<RuleFile<'_>> =
            names.iter().zip(texts).map(|(name, text)| RuleFile { name, bytes: text.as_bytes() }).collect();
        RuleRegistry::load(&files).expect("it loads")
    };
    let version = load(&[&a, &b, &c]).version_hash();
    assert!(version.to_string().starts_with("sha256:") && version.to_string().len() == 71);
    for order in [[&a, &c, &b], [&b, &a, &c], [&b, &c, &a], [&c, &a, &b], [&c, &b, &a]] {
        assert_eq!(load(&order.map(String::as_str)).version_hash(), version);
    }
    let one = format!("#a-comment\n{c}\n\n{a}{b}").replace(' ', "  \n");
    assert_eq!(load(&[&one]).version_hash(), version, "layout and comments mean nothing");
    assert_eq!(load(&[&a, &b, &c, "examples { }"]).version_hash(), version, "nor do examples");
    let parentheses = a.replace("$mutates", "($mutates)");
    assert_eq!(load(&[&parentheses, &b, &c]).version_hash(), version, "nor needless parentheses");
    for other in [
        a.replace("admit", "ask \"x\""),
        a.replace("rule a", "rule d"),
        a.replace("$mutates", "not $mutates"),
    ] {
        assert_ne!(load(&[&other, &b, &c]).version_hash(), version, "{other}");
    }
    assert_ne!(load(&[&a, &b]).version_hash(), version);
}

#[test]
fn the_version_of_a_ruleset_stays_what_it_is() {
    // Recorded calls carry versions. One that changes without `ENGINE_VERSION` would disown them.
    let version =
        registry(&rule("a", "$tool == \"x\" and has($args.y) -> reject \"no\" else -> admit")).version_hash();
    assert_eq!(
        version.to_string(),
        "sha256:d65a9c532929d21a6fda92a982b8fbf845eef3171777ce148b7109584cf5174e"
    );
}

#[test]
fn the_same_conditions_with_other_answers_do_not_load() {
    let ambiguous = |texts: [String; 2]| match load(&texts.concat()) {
        Err(LoadError::Ambiguous { rules, problems }) => Some((rules, problems)),
        Err(other) => panic!("{other}"),
        Ok(_) => None,
    };
    let (rules, problems) =
        ambiguous([rule("b", "$mutates -> admit"), rule("a", "$mutates -> reject \"x\"")])
            .expect("ambiguous");
    assert_eq!(rules, ["a", "b"]);
    assert_eq!(
        problems[0].to_string(),
        "test.kappa:2:6: rules `b` and `a` answer the same conditions differently"
    );
    assert!(ambiguous([rule("a", "true -> admit"), rule("b", "else -> ask \"x\"")]).is_some());
    assert!(ambiguous([rule("a", "true -> reject \"x\""), rule("b", "true -> reject \"y\"")]).is_none());
    assert!(ambiguous([rule("a", "true -> admit"), rule("b", "not false -> ask \"x\"")]).is_none());
    let error = load(&[rule("a", "true -> admit"), rule("b", "true -> ask \"x\"")].concat()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(error.denial(), DenialReason::AmbiguousRuleset { rules: vec!["a".into(), "b".into()] });
}

#[test]
fn a_name_belongs_to_one_rule() {
    let text = rule("a", "true -> admit");
    let files = ["2.kappa", "1.kappa"].map(|name| RuleFile { name, bytes: text.as_bytes() });
    let error = RuleRegistry::load(&files).unwrap_err();
    assert_eq!(error.to_string(), "2.kappa:1:6: there is already a rule `a`, at 1.kappa:1");
}

#[test]
fn rules_stand_in_the_order_of_specificity_and_name() {
    let text = [
        rule("b", "$mutates -> admit $interactive and $mutates and true -> admit"),
        rule("z", "(true or false) and 1 == 1 -> admit"),
        rule("a", "2 == 2 and 1 == 1 -> admit"),
        rule("e", "else -> admit"),
    ];
    let registry = registry(&text.concat());
    let order: Vec<(String, usize)> = registry.rules().map(|rule| (rule.name, rule.specificity)).collect();
    let expected = [("b", 3), ("a", 2), ("z", 2), ("e", 0)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!((order, registry.len()), (expected.to_vec(), 4));
}

#[test]
fn examples_are_checked_when_the_file_is_loaded() {
    let body = "guards { $mode == \"readonly\" -> reject \"no\" $mutates -> ask \"sure?\" else -> admit } effects { }";
    let holds = format!(
        "rule r {{ {body} examples {{
            admits {{\"tool\": \"a.b\", \"args\": {{\"deep\": [1, {{\"x\": \"}}\"}}]}}}}
            asks {{\"mutates\": true}} # a comment
            rejects {{\"mode\": \"readonly\"}}
        }} }}
        rule admits {{ guards {{ }} effects {{ }} }}
        examples {{ asks {{\"mutates\": true, \"caller\": \"x\"}} }}"
    );
    assert!(load(&holds).is_ok(), "{:?}", load(&holds).err());
    let told = |example: &str| {
        let text = format!("rule r {{ {body} examples {{ {example} }} }}");
        load(&text).unwrap_err().problems()[0].message.clone()
    };
    assert_eq!(
        told("admits {\"mode\": \"readonly\"}"),
        "the example says `admits`, but this request is rejected (rule `r` rejects it: no)"
    );
    assert_eq!(told("rejects {}"), "the example says `rejects`, but this request is admitted");
    assert_eq!(
        told("admits {\"mutates\": true}"),
        "the example says `admits`, but this request is asked about (rule `r`)"
    );
    assert!(told("admits {\"tol\": \"x\"}").starts_with("this is not a request: unknown field `tol`"));
    assert!(
        told("admits {\"mode\": \"other\"}").starts_with("this is not a request: unknown variant `other`")
    );
    assert_eq!(told("admits {\"tool\": }"), "not JSON: expected value");
    assert_eq!(told("admits 5"), "expected a JSON object, found `5`");
}

#[test]
fn examples_of_a_file_are_about_the_rules_of_that_file() {
    let one = format!("{} examples {{ admits {{}} }}", rule("a", "true -> admit"));
    let two = format!("{} examples {{ rejects {{}} }}", rule("b", "1 == 1 -> reject \"x\""));
    let files = [("1", &one), ("2", &two)].map(|(name, text)| RuleFile { name, bytes: text.as_bytes() });
    let registry = RuleRegistry::load(&files).expect("each file keeps its word");
    assert_eq!(evaluate_admission(&request(json!({})).request(), &registry).answer(), Answer::Deny);
}

#[test]
fn a_ruleset_that_did_not_load_denies_everything() {
    let error = load("rule").unwrap_err();
    let registry = RuleRegistry::refusing(error.denial());
    for tool in ["a", "filesystem.read", ""] {
        let result =
            evaluate_admission(&request(json!({"tool": tool, "mode": "admin"})).request(), &registry);
        assert_eq!(result.denial(), Some(&error.denial()));
    }
}

#[test]
fn a_rule_that_is_too_large_is_named_before_it_denies() {
    let registry =
        registry(&format!("{}{}", when("min(1, 2, 3, 4, 5, 6, 7, 8, 9) == 1"), rule("ok", "true -> admit")));
    let over: Vec<_> = registry.rules().map(|rule| (rule.name, rule.over_budget)).collect();
    assert_eq!(over, [("ok".into(), None), ("r".into(), Some(BudgetAxis::Arguments))]);
}

#[test]
fn ten_thousand_rules_for_other_tools_change_nothing() {
    let mut text = rule("zz", "$tool == \"tool.5\" -> admit");
    for at in 0..10_000 {
        let guard = match at % 3 {
            0 => format!("$tool == \"other.{at}\" and 1 / 0 == 1 -> reject \"x\""),
            1 => format!("matches($tool, \"team{at}.*\") and $args.x == 1 -> reject \"x\""),
            _ => format!("starts_with($tool, \"p{at}.\") or \"q{at}\" == $tool -> reject \"x\""),
        };
        text.push_str(&rule(&format!("r{at}"), &guard));
    }
    let registry = registry(&text);
    let ask = |tool: &str| evaluate_admission(&request(json!({"tool": tool})).request(), &registry);
    assert_eq!(ask("tool.5").answer(), Answer::Allow);
    for (tool, name) in [("other.3", "r3"), ("team4.x", "r4"), ("p5.x", "r5"), ("q8", "r8")] {
        let result = ask(tool);
        assert_eq!((result.answer(), result.verdicts[0].rule.as_str()), (Answer::Deny, name), "{tool}");
    }
    assert!(matches!(ask("other.30000").denial(), Some(DenialReason::NoRuleMatched { .. })));
    // An id too long to be looked up is held against every rule.
    assert!(matches!(ask(&"x".repeat(300)).denial(), Some(DenialReason::NoRuleMatched { .. })));
    assert_eq!(ask(&format!("p5.{}", "x".repeat(300))).verdicts[0].rule, "r5");
}

#[test]
fn the_tracker_counts_in_its_own_time() {
    let mut tracker = BudgetTracker::new(Limits::RULE);
    let first = tracker.spend(BudgetAxis::IntegerOperations, 9_999).expect("within");
    let second = tracker.reach(BudgetAxis::CallDepth, 3).expect("within");
    let third = tracker.reach(BudgetAxis::CallDepth, 2).expect("within");
    assert_eq!((first.at, second.at, third.at), (1, 2, 3));
    assert_eq!((third.snapshot.call_depth, third.snapshot.integer_operations), (3, 9_999));
    assert!(tracker.spend(BudgetAxis::IntegerOperations, 1).is_ok(), "the limit itself may be used");
    let exceeded = tracker.spend(BudgetAxis::IntegerOperations, u64::MAX).expect_err("beyond");
    assert_eq!(
        (exceeded.axis, exceeded.limit, exceeded.used),
        (BudgetAxis::IntegerOperations, 10_000, u64::MAX)
    );
    assert_eq!(tracker.snapshot().integer_operations, u64::MAX, "what was used stays used");
    assert!(tracker.spend(BudgetAxis::IntegerOperations, 0).is_err(), "and it stays exceeded");
    for axis in BudgetAxis::ALL {
        assert_eq!(serde_json::to_value(axis).unwrap(), axis.as_str());
    }
}

#[test]
fn what_rules_read_is_known_beforehand() {
    let text = format!(
        "{}rule w {{ guards {{ $tool == \"a\" and (has($args.p) or -len($args.q) < min(1, $state.n)) -> admit }}
            effects {{ apply(\"calls\", $state.epoch) set($state.last, $caller) emit(\"x\", $args.r) }} }}",
        rule("other", "$tool == \"b\" and $args.secret == 1 -> reject \"x\"")
    );
    let registry = registry(&text);
    let reads: Vec<String> = registry.reads("a").into_iter().collect();
    let expected = [
        "args.p",
        "args.q",
        "args.r",
        "caller",
        "state.calls",
        "state.epoch",
        "state.last",
        "state.n",
        "tool",
    ];
    assert_eq!(reads, expected);
    assert_eq!(registry.reads("b").into_iter().collect::<Vec<_>>(), ["args.secret", "tool"]);
    assert!(registry.reads("c").is_empty());
}

#[test]
fn a_request_that_says_little_is_permitted_little() {
    let recorded = request(json!({}));
    assert!(!recorded.permission.allowed && recorded.permission.answer == Answer::Deny);
    assert_eq!(admit(&when("$permission.allowed"), json!({"tool": "t"})).answer(), Answer::Deny);
}
