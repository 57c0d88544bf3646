//! Document 003 and the gate page, as far as they are this crate's: what is admitted, asked, denied, and why.
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
    AdmissionRequest, Answer, AxiomId, BudgetAxis, Decision, DenialReason, Mutation, RuleRegistry, Scalar,
    evaluate_admission,
};
use serde_json::{Value, json};
use support::{admit, load, registry, request, when};

#[track_caller]
fn denied(text: &str, value: Value) -> DenialReason {
    admit(text, value).denial().expect("a denial").clone()
}

#[track_caller]
fn effects(effects: &str, value: Value) -> Decision {
    admit(&format!("rule r {{ guards {{ true -> admit }} effects {{ {effects} }} }}"), value).decision
}

#[test]
fn a_rule_that_admits_admits() {
    let result = admit("rule R { guards { true -> admit } effects { } }", json!({"tool": "t"}));
    assert_eq!(result.decision, Decision::Admit { effect_mutations: vec![] });
    assert_eq!(
        result.rule_version,
        registry("rule R { guards { true -> admit } effects { } }").version_hash()
    );
}

#[test]
fn no_matching_rule_denies() {
    let expected = DenialReason::NoRuleMatched { tool: "t".into() };
    assert_eq!(denied("rule R { guards { false -> admit } effects { } }", json!({"tool": "t"})), expected);
    assert_eq!(denied("", json!({"tool": "t"})), expected);
    assert_eq!(denied("rule R { guards { } effects { } }", json!({"tool": "t"})), expected);
}

#[test]
fn an_explicit_reject_denies_with_its_words() {
    let text = "rule R { guards { true -> reject \"not today\" } effects { } } rule A { guards { 1 == 1 -> admit } effects { } }";
    let expected = DenialReason::RuleRejected { rule: "R".into(), rule_reason: "not today".into() };
    assert_eq!(denied(text, json!({})), expected);
}

#[test]
fn an_ask_is_an_admission_that_a_person_must_confirm() {
    let result = admit(
        "rule R { guards { $mutates -> ask \"sure?\" else -> admit } effects { } }",
        json!({"mutates": true}),
    );
    assert_eq!(result.answer(), Answer::Ask);
    let Decision::Ask { asked, .. } = result.decision else { panic!("asked") };
    assert_eq!((asked[0].rule.as_str(), asked[0].reason.as_str()), ("R", "sure?"));
}

#[test]
fn a_version_that_is_attested_must_be_the_active_one() {
    let registry = registry("rule R { guards { true -> admit } effects { } }");
    let recorded = request(json!({"tool": "t"}));
    let with = |version: Option<&str>| {
        evaluate_admission(&AdmissionRequest { rule_version: version, ..recorded.request() }, &registry)
    };
    let actual = registry.version_hash().to_string();
    // Attested, and defaulted: no version relies on whatever is active.
    assert_eq!(with(Some(&actual)).answer(), Answer::Allow);
    assert_eq!(with(None).answer(), Answer::Allow);
    for other in ["", "sha256:00", &actual.to_uppercase(), &"sha256:".repeat(1000)] {
        let result = with(Some(other));
        let expected: String = other.chars().take(80).collect();
        let reason = DenialReason::RuleVersionMismatch { expected, actual: actual.clone() };
        assert_eq!(result.denial(), Some(&reason));
        assert!(result.verdicts.is_empty(), "rules are not consulted");
    }
}

#[test]
fn every_kind_of_denial_can_be_reached_and_told() {
    let over = "rule r { guards { decay(1, 1, 20000) == 0 -> admit } effects { } }";
    let ambiguous = load(
        "rule a { guards { true -> admit } effects { } } rule b { guards { true -> reject \"x\" } effects { } }",
    );
    let unreadable = load("rule");
    let refused = |error: kiwi_rules::LoadError| {
        let registry = RuleRegistry::refusing(error.denial());
        evaluate_admission(&request(json!({"tool": "t"})).request(), &registry).denial().unwrap().clone()
    };
    let write = |effect: &str| format!("rule r {{ guards {{ true -> admit }} effects {{ {effect} }} }}");
    let attested = {
        let (registry, recorded) = (registry(""), request(json!({})));
        let request = AdmissionRequest { rule_version: Some("sha256:1"), ..recorded.request() };
        evaluate_admission(&request, &registry).denial().unwrap().clone()
    };
    let reasons = [
        ("no_rule_matched", denied("", json!({"tool": "t"})), "no rule admits `t`"),
        ("budget", denied(over, json!({})), "rule `r` used 10001 integer operations, and 10000 is the most"),
        (
            "effect_invariant_violated",
            denied(&write("set(\"args.x\", 1)"), json!({})),
            "rule `r` may not `set args.x`: only `state.*` is written, not `args.x`",
        ),
        (
            "axiom_violation",
            denied(&write("set(\"audit.x\", 1)"), json!({})),
            "AX-01 (history is append-only) forbids it: rule `r` wants to `set audit.x`",
        ),
        (
            "policy",
            refused(unreadable.unwrap_err()),
            "policy `ruleset`: test.kappa:1:5: expected the name of the rule, found the end of the file",
        ),
        ("rule_version_mismatch", attested, "the caller relies on ruleset `sha256:1`, but `sha256:"),
        (
            "ambiguous_ruleset",
            refused(ambiguous.unwrap_err()),
            "rules `a` and `b` answer the same conditions differently",
        ),
        ("rule_rejected", denied(&when("1 / 0 == 1"), json!({})), "rule `r` rejects it: division by zero"),
    ];
    for (kind, reason, told) in reasons {
        assert_eq!(reason.kind_str(), kind);
        assert!(reason.render().starts_with(told), "{}", reason.render());
        let text = reason.serialise();
        assert!(text.contains(&format!("\"kind\":\"{kind}\"")), "{text}");
        let back = DenialReason::parse(&text).expect("it can be read back");
        assert_eq!((&back, back.serialise()), (&reason, text));
        let fault = reason.fault();
        assert_eq!((fault.kind, fault.kind.exit_code()), (ErrorKind::Denied, 3));
        assert_eq!(fault.details["reason"]["kind"], kind);
    }
}

#[test]
fn the_words_of_a_denial_are_a_contract() {
    let reason = DenialReason::Budget { axis: BudgetAxis::CallDepth, limit: 16, used: 17, rule: "r".into() };
    assert_eq!(
        reason.serialise(),
        r#"{"axis":"call_depth","kind":"budget","limit":16,"rule":"r","used":17}"#
    );
    let reason = DenialReason::AxiomViolation { axiom: AxiomId::Authority, detail: "é".into() };
    assert_eq!(reason.serialise(), r#"{"axiom":"AX-03","detail":"\u00e9","kind":"axiom_violation"}"#);
    let reason =
        DenialReason::Budget { axis: BudgetAxis::Arguments, limit: 8, used: u64::MAX, rule: "r".into() };
    assert!(reason.serialise().contains("9223372036854775807"), "a count beyond JSON is the largest in it");
    assert!(DenialReason::parse(r#"{"kind":"no_rule_matched","tool":"t","more":1}"#).is_err());
    assert!(DenialReason::parse(r#"{"kind":"something_else"}"#).is_err());
}

#[test]
fn every_reason_is_kept_and_the_most_specific_comes_first() {
    let text = "rule z { guards { 1 == 1 and 2 == 2 -> reject \"two\" } effects { } }
                rule a { guards { true -> reject \"one\" } effects { } }
                rule b { guards { 3 == 3 -> admit } effects { } }";
    let result = admit(text, json!({}));
    let Decision::Deny { reason, further } = &result.decision else { panic!("denied") };
    assert_eq!(*reason, DenialReason::RuleRejected { rule: "z".into(), rule_reason: "two".into() });
    assert_eq!(further, &[DenialReason::RuleRejected { rule: "a".into(), rule_reason: "one".into() }]);
    assert_eq!(result.verdicts.iter().map(|v| v.rule.as_str()).collect::<Vec<_>>(), ["z", "a", "b"]);
}

#[test]
fn effects_are_returned_and_never_carried_out() {
    let recorded = request(json!({"tool": "t", "caller": "c", "state": {"calls": 1, "epoch": 3}}));
    let registry = registry(
        "rule r { guards { true -> admit } effects {
            apply(\"calls\", 1) apply($state.calls, $state.calls * 2) set(\"state.last\", $tool) emit(\"called\", $caller, true, -3)
        } }",
    );
    let Decision::Admit { effect_mutations } = evaluate_admission(&recorded.request(), &registry).decision
    else {
        panic!("admitted")
    };
    let rule = || "r".to_owned();
    assert_eq!(
        effect_mutations,
        [
            Mutation::Apply { rule: rule(), path: "state.calls".into(), delta: 1 },
            Mutation::Apply { rule: rule(), path: "state.calls".into(), delta: 2 },
            Mutation::Set { rule: rule(), path: "state.last".into(), value: Scalar::Text("t".into()) },
            Mutation::Emit {
                rule: rule(),
                name: "called".into(),
                values: vec![Scalar::Text("c".into()), Scalar::Bool(true), Scalar::Integer(-3)],
            },
        ]
    );
    let mut state = recorded.state.clone();
    assert_eq!(Value::Object(state.clone()), json!({"calls": 1, "epoch": 3}));
    for mutation in &effect_mutations {
        mutation.apply_to(&mut state).expect("allowed");
    }
    assert_eq!(Value::Object(state), json!({"calls": 4, "epoch": 3, "last": "t"}));
}

#[test]
fn a_denied_call_has_no_effects_and_effects_of_silent_rules_do_not_count() {
    let text = "rule a { guards { true -> admit } effects { emit(\"a\") } }
                rule b { guards { false -> admit } effects { set(\"audit.x\", 1) } }
                rule c { guards { $mutates -> reject \"no\" } effects { emit(\"c\") } }";
    let Decision::Admit { effect_mutations } = admit(text, json!({})).decision else { panic!("admitted") };
    assert_eq!(effect_mutations.len(), 1);
    assert!(matches!(admit(text, json!({"mutates": true})).decision, Decision::Deny { .. }));
}

#[test]
fn axioms_hold_for_every_effect() {
    for (effect, axiom) in [
        ("set(\"audit.log\", 1)", AxiomId::History),
        ("apply(\"audit\", 1)", AxiomId::History),
        ("apply($audit.lines, 1)", AxiomId::History),
        ("emit(\"audit.forged\")", AxiomId::History),
        ("set(\"state.reputation.alice\", 1)", AxiomId::Reputation),
        ("set($state.reputation, 1)", AxiomId::Reputation),
        ("set(\"mode\", \"admin\")", AxiomId::Authority),
        ("set(\"permission.allowed\", true)", AxiomId::Authority),
        ("apply(\"permission.x\", 1)", AxiomId::Authority),
    ] {
        let Decision::Deny { reason: DenialReason::AxiomViolation { axiom: found, .. }, .. } =
            effects(effect, json!({}))
        else {
            panic!("`{effect}` breaks no axiom")
        };
        assert_eq!(found, axiom, "{effect}");
    }
    let least = effects("emit(\"x\", -9223372036854775807 - 1)", json!({}));
    let Decision::Deny { reason, .. } = least else { panic!("an event that no record can hold") };
    assert_eq!(reason.render(), "rule `r` rejects it: integer overflow");
    // Reputation is derived: it may be applied to.
    let state = json!({"state": {"reputation": {"alice": 5}}});
    assert!(matches!(effects("apply(\"state.reputation.alice\", -5)", state), Decision::Admit { .. }));
}

#[test]
fn invariants_hold_over_all_effects_together() {
    let state = json!({"state": {"c": 2, "name": "x", "deep": {"n": 1}, "top": i64::MAX}});
    for (effect, detail) in [
        ("set(\"state\", 1)", "only `state.*` is written, not `state`"),
        ("set(\"args.path\", 1)", "only `state.*` is written, not `args.path`"),
        ("set(\"foo\", 1)", "only `state.*` is written, not `foo`"),
        ("set(\"state..x\", 1)", "`state..x` has an empty name"),
        ("set(\"state.c\", -1)", "`state.c` would fall below zero"),
        ("apply(\"c\", -3)", "`state.c` would fall below zero"),
        ("apply(\"c\", -1) apply(\"c\", -1) apply(\"c\", -1)", "`state.c` would fall below zero"),
        ("apply(\"top\", 1)", "`state.top` would leave the range of integers"),
        ("apply(\"name\", 1)", "`state.name` is not a counter"),
        ("set(\"state.deep\", 1)", "`state.deep` holds more than one value"),
        ("set(\"state.name.below\", 1)", "`state.name.below` lies below a value"),
        ("set(\"state.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\", 1)", "a path has at most 16 names"),
    ] {
        let Decision::Deny {
            reason: DenialReason::EffectInvariantViolated { rule, detail: found, .. }, ..
        } = effects(effect, state.clone())
        else {
            panic!("`{effect}` breaks no invariant")
        };
        assert_eq!((rule.as_str(), found.as_str()), ("r", detail), "{effect}");
    }
}

#[test]
fn a_rule_over_budget_denies_and_never_lets_through() {
    let list = |n: usize, item: &str, by: &str| vec![item; n].join(by);
    let deep = |n: usize| format!("{}1, 2){} == 1", "min(".repeat(n), ", 1)".repeat(n - 1));
    for (condition, axis, used) in [
        ("decay(1, 0, 10000) == 1".to_owned(), BudgetAxis::IntegerOperations, 10_001),
        ("decay(1, 0, 9223372036854775807) == 1".to_owned(), BudgetAxis::IntegerOperations, 10_001),
        (format!("min({}) == 1", list(9, "1", ", ")), BudgetAxis::Arguments, 9),
        (deep(17), BudgetAxis::CallDepth, 17),
        (format!("{} == 1", list(5_001, "1", " + ")), BudgetAxis::AstNodes, 10_005),
    ] {
        // Also where the rule is about another tool, and where another rule admits.
        for condition in [condition.clone(), format!("$tool == \"other\" and {condition}")] {
            let text = format!("{} rule ok {{ guards {{ true -> admit }} effects {{ }} }}", when(&condition));
            let result = admit(&text, json!({"tool": "t"}));
            match result.denial() {
                Some(DenialReason::Budget { axis: found, rule, limit, used: count }) => {
                    assert_eq!((*found, rule.as_str()), (axis, "r"));
                    assert!(count > limit && *count >= used);
                }
                // What the rule would have spent is spent only where it gets there.
                None if axis == BudgetAxis::IntegerOperations && condition.starts_with('$') => {}
                other => panic!("{axis}: {other:?}"),
            }
        }
    }
    // Exactly the limit is within it.
    for condition in
        ["decay(1, 0, 9998) == 1".to_owned(), format!("min({}) == 1", list(8, "1", ", ")), deep(16)]
    {
        assert_eq!(admit(&when(&condition), json!({})).answer(), Answer::Allow, "{condition}");
    }
    let long = "contains($args.s, \"z\") or true";
    let huge = json!({"args": {"s": "a".repeat(11 << 20)}});
    assert!(matches!(denied(&when(long), huge), DenialReason::Budget { .. }), "long strings are paid for");
    let emit = format!("emit({})", list(9, "\"x\"", ", "));
    let Decision::Deny { reason, .. } = effects(&emit, json!({})) else { panic!("denied") };
    assert!(matches!(reason, DenialReason::Budget { axis: BudgetAxis::Arguments, used: 9, .. }));
}
