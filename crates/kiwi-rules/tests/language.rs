//! The language itself: what values mean, and what is told about a text that makes no sense.
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
use kiwi_rules::{Answer, DenialReason, LoadError, MAX_NESTING, MAX_PROBLEMS};
use serde_json::{Value, json};
use support::{admit, load, when};

/// A condition holds, does not hold, or cannot be judged for a reason.
#[track_caller]
fn check(condition: &str, expect: Result<bool, &str>) {
    check_with(condition, json!({}), expect);
}

#[track_caller]
fn check_with(condition: &str, request: Value, expect: Result<bool, &str>) {
    let result = admit(&when(condition), request);
    let found = match result.denial() {
        None => Ok(true),
        Some(DenialReason::NoRuleMatched { .. }) => Ok(false),
        Some(DenialReason::RuleRejected { rule_reason, .. }) => Err(rule_reason.as_str()),
        Some(other) => panic!("{condition}: {other}"),
    };
    assert_eq!(found, expect, "{condition}");
}

#[test]
fn numbers_never_wrap_and_division_truncates_toward_zero() {
    for (condition, expect) in [
        ("7 / 2 == 3", Ok(true)),
        ("-7 / 2 == -3", Ok(true)),
        ("7 / -2 == -3", Ok(true)),
        ("-7 % 2 == -1", Ok(true)),
        ("7 % -2 == 1", Ok(true)),
        ("1 / 0 == 1", Err("division by zero")),
        ("1 % 0 == 1", Err("division by zero")),
        ("9223372036854775807 + 1 > 0", Err("integer overflow")),
        ("-9223372036854775807 - 2 < 0", Err("integer overflow")),
        ("4611686018427387904 * 2 > 0", Err("integer overflow")),
        ("-(-9223372036854775807 - 1) > 0", Err("integer overflow")),
        ("(-9223372036854775807 - 1) / -1 > 0", Err("integer overflow")),
        ("(-9223372036854775807 - 1) % -1 == 0", Err("integer overflow")),
        ("1 + 2 * 3 == 7 and (1 + 2) * 3 == 9", Ok(true)),
        ("10 - 3 - 2 == 5 and 100 / 10 / 5 == 2", Ok(true)),
        ("bps_mul(200, 2500) == 50 and bps_div(50, 200) == 2500", Ok(true)),
        ("bps_mul(-1, 9999) == 0", Ok(true)),
        ("bps_div(1, 0) == 0", Err("division by zero")),
        ("bps_mul(9223372036854775807, 10000) > 0", Err("integer overflow")),
        ("decay(1000, 1000, 2) == 810 and decay(5, 1, 0) == 5", Ok(true)),
        ("decay(1, 1, -1) == 1", Err("`decay` cannot run a negative number of times")),
        ("min(3, 1, 2) == 1 and max(3, 1, 2) == 3", Ok(true)),
    ] {
        check(condition, expect);
    }
}

#[test]
fn types_do_not_mix() {
    for (condition, expect) in [
        ("1 == true", Err("type mismatch: `==` compares an integer with a boolean")),
        ("\"1\" != 1", Err("type mismatch: `!=` compares a string with an integer")),
        ("\"a\" < \"b\"", Err("type mismatch: `<` takes an integer, not a string")),
        ("1 + \"a\" == 1", Err("type mismatch: `+` takes an integer, not a string")),
        ("1 and true", Err("type mismatch: `and` takes a boolean, not an integer")),
        ("not 1", Err("type mismatch: `not` takes a boolean, not an integer")),
        ("-true == 1", Err("type mismatch: `-` takes an integer, not a boolean")),
        ("len(5) == 1", Err("type mismatch: `len` takes a string, not an integer")),
        ("1", Err("type mismatch: a guard takes a boolean, not an integer")),
        ("1 < 2 < 3", Err("type mismatch: `<` takes an integer, not a boolean")),
        ("1 < 2 == true", Ok(true)),
        ("not 1 == 2", Ok(true)),
    ] {
        check(condition, expect);
    }
}

#[test]
fn a_path_without_a_value_is_an_error_unless_it_is_tested() {
    let request = json!({"args": {
        "s": "x", "n": 3, "b": true, "null": null, "f": 1.0, "list": [1], "o": {"k": 1}, "big": u64::MAX,
    }});
    for (name, why) in [
        ("nothing", "absent"),
        ("null", "null"),
        ("f", "a float"),
        ("list", "a list"),
        ("o", "an object"),
        ("big", "outside the range of integers"),
        ("s.below", "absent"),
    ] {
        let told = format!("`$args.{name}` is {why}; test it with `has($args.{name})` first");
        check_with(&format!("$args.{name} == 1"), request.clone(), Err(&told));
        check_with(&format!("has($args.{name}) and $args.{name} == 1"), request.clone(), Ok(false));
        check_with(&format!("not has($args.{name}) or $args.{name} == 1"), request.clone(), Ok(true));
    }
    check_with(
        "has($args.s) and has($args.n) and has($args.b) and has($args.o.k)",
        request.clone(),
        Ok(true),
    );
    check_with("$args.s == \"x\" and $args.n == 3 and $args.b and $args.o.k == 1", request, Ok(true));
}

#[test]
fn everything_in_scope_can_be_read() {
    let request = json!({
        "caller": "c", "tool": "t.u", "mode": "readonly", "tool_type": "api", "space": "user", "mutates": true,
        "interactive": true, "permission": {"allowed": true, "answer": "ask"}, "state": {"epoch": 7},
    });
    check_with(
        "$caller == \"c\" and $tool == \"t.u\" and $mode == \"readonly\" and $tool_type == \"api\" and $space == \"user\"
         and $mutates and $interactive and $permission.allowed and $permission.answer == \"ask\" and $state.epoch == 7",
        request,
        Ok(true),
    );
    let rules = "matches($tool, \"fs.*\") and starts_with($tool, \"fs\") and contains($tool, \".r\") and len($tool) == 7";
    check_with(rules, json!({"tool": "fs.read"}), Ok(true));
    check_with("len($args.s) == 2", json!({"args": {"s": "é😀"}}), Ok(true));
    check("\"a\\\"\\\\\\n\\t\\r\" == \"a\\\"\\\\\\n\\t\\r\" # a comment\n and true", Ok(true));
}

#[test]
fn what_is_settled_is_not_looked_at_further() {
    check("false and 1 / 0 == 1", Ok(false));
    check("true or 1 / 0 == 1", Ok(true));
    check("1 / 0 == 1 or true", Err("division by zero"));
    let text = "rule r { guards { true -> admit 1 / 0 == 1 -> reject \"never\" } effects { } }";
    assert_eq!(admit(text, json!({})).answer(), Answer::Allow);
}

/// Line, column, message and hint of everything wrong with a text.
fn problems(text: &str) -> Vec<(usize, usize, String, String)> {
    let Err(error) = load(text) else { panic!("`{text}` loads") };
    let told =
        |p: &kiwi_rules::Problem| (p.line, p.column, p.message.clone(), p.hint.clone().unwrap_or_default());
    error.problems().iter().map(told).collect()
}

#[track_caller]
fn wrong(text: &str, line: usize, column: usize, message: &str, hint: &str) {
    let found = problems(text);
    assert_eq!(found, [(line, column, message.to_owned(), hint.to_owned())], "{text}");
}

#[test]
fn an_error_points_at_its_place() {
    let error =
        load("rule a {\n  guards {\n    $tol == \"x\" -> admit\n  }\n  effects { }\n}\n").unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(problem.to_string(), "test.kappa:3:5: there is no `$tol`");
    assert_eq!(problem.hint.as_deref(), Some("did you mean `$tool`?"));
    assert_eq!(problem.snippet, "3 |     $tol == \"x\" -> admit\n  |     ^^^^");
    assert_eq!((error.kind(), error.kind().exit_code()), (ErrorKind::InvalidManifest, 2));
    assert_eq!(error.details()["problems"][0]["column"], 5);
    assert_eq!(error.hint().as_deref(), Some("did you mean `$tool`?"));
}

#[test]
fn each_error_is_told_with_what_to_write_instead() {
    let guard = |condition: &str| format!("rule r {{ guards {{ {condition} -> admit }} effects {{ }} }}");
    let effect = |effect: &str| format!("rule r {{ guards {{ }} effects {{ {effect} }} }}");
    for (text, column, message, hint) in [
        (guard("$a = 1"), 22, "`=` does not belong here", "equality is written `==`"),
        (
            guard("1.5 < 2"),
            19,
            "this is not a whole number",
            "κ has no floats: write a whole number, or basis points with `bps_mul` and `bps_div`",
        ),
        (
            guard("99999999999999999999 > 1"),
            19,
            "this integer is too large",
            "the largest is 9223372036854775807",
        ),
        (
            guard("nwo() == 1"),
            19,
            "there is no function `nwo`",
            "known are `matches`, `has`, `starts_with`, `contains`, `len`, `min`, `max`, `bps_mul`, `bps_div`, `decay`",
        ),
        (guard("lne($tool) == 1"), 19, "there is no function `lne`", "did you mean `len`?"),
        (
            guard("emit(\"x\")"),
            19,
            "`emit` is an effect, not a function",
            "effects stand in `effects { … }`, and happen only if the call is admitted",
        ),
        (guard("len() == 1"), 19, "`len` takes 1 argument, not 0", ""),
        (guard("min(1) == 1"), 19, "`min` takes at least 2 arguments, not 1", ""),
        (guard("has(1)"), 23, "`has` takes a variable", "write `has($args.path)`"),
        (
            guard("matches($tool, $args.p)"),
            34,
            "a pattern must stand in the rule itself",
            "write the pattern out: `matches($tool, \"filesystem.*\")`",
        ),
        (guard("matches($tool, \"a[\")"), 34, "this pattern cannot be read: a `[` has no `]`", ""),
        (guard("$caller.name == \"x\""), 19, "`$caller` has no fields", "write `$caller`"),
        (
            guard("$permission.all"),
            19,
            "`$permission` has no such field",
            "there are `$permission.allowed` and `$permission.answer`",
        ),
        (
            guard("tool == \"x\""),
            24,
            "expected `(`, found `==`",
            "a call is written `tool(…)`; a variable is written `$tool`",
        ),
        (
            guard("else -> admit true"),
            33,
            "this guard can never be reached",
            "`else` comes last: guards are tried from the top",
        ),
        (effect("write(\"x\")"), 31, "there is no effect `write`", "known are `set`, `apply`, `emit`"),
        (effect("set(\"state.x\")"), 31, "`set` takes 2 arguments, not 1", ""),
        (
            "rule r { effects { } }".into(),
            10,
            "expected `guards`, found `effects`",
            "a rule begins with `guards { CONDITION -> ANSWER }`",
        ),
        (
            "rule r { guards { } }".into(),
            21,
            "expected `effects`, found `}`",
            "a rule without effects says so: `effects { }`",
        ),
        ("rule guards { }".into(), 6, "`guards` is a word of the language", "choose another name"),
        (
            "rule r { guards { true -> reject } effects { } }".into(),
            34,
            "expected the reason, found `}`",
            "write `reject \"why\"`: whoever is stopped reads it",
        ),
        (
            "hello".into(),
            1,
            "expected `rule` or `examples`, found `hello`",
            "a rule file is a list of `rule NAME { … }`",
        ),
    ] {
        let found = problems(&text);
        let expected = (1, column, message.to_owned(), hint.to_owned());
        assert_eq!(found.first(), Some(&expected), "{text}");
    }
}

#[test]
fn forbidden_names_do_not_load() {
    let hint = "rules see the request and the state snapshot only, so that an answer can be repeated";
    for name in ["time", "now", "random", "read_file", "http_get"] {
        wrong(&when(&format!("{name}() == 1")), 1, 19, &format!("`{name}` is forbidden in rules"), hint);
        let effect = format!("rule r {{ guards {{ }} effects {{ {name}() }} }}");
        wrong(&effect, 1, 31, &format!("`{name}` is forbidden in rules"), hint);
    }
    // As the name of an argument they are the request's own business.
    assert!(load(&when("has($args.now)")).is_ok());
}

#[test]
fn several_errors_are_told_at_once_and_the_parser_finds_its_feet() {
    let text = "rule a { guards { == 1 -> admit true -> allow } effects { set( } }
rule b { guards { $tool == \"x\" -> admit } effects { } }
rule { guards { } effects { } }
rule c { guards { (1 -> admit } effects { } }";
    let found: Vec<(usize, usize)> = problems(text).iter().map(|p| (p.0, p.1)).collect();
    assert_eq!(found, [(1, 19), (1, 41), (1, 64), (3, 6), (4, 22)]);
    let many = "rule a { guards { @ @ @ @ @ @ @ @ } effects { } }\n".repeat(3);
    assert_eq!(problems(&many).len(), MAX_PROBLEMS);
}

#[test]
fn depth_is_limited_and_length_is_not() {
    let nested = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(admit(&when(&nested(MAX_NESTING - 1)), json!({})).answer(), Answer::Allow);
    assert!(problems(&when(&nested(MAX_NESTING)))[0].2.contains("nested more than 64 levels"));
    // A hundred thousand of anything neither overflows a stack nor is admitted.
    for text in ["(".repeat(100_000), "min(".repeat(100_000), "rule ".repeat(100_000), "{".repeat(100_000)] {
        assert!(load(&text).is_err());
        assert!(load(&when(&text)).is_err());
    }
    let chain = when(&format!("true{}", " and true".repeat(100_000)));
    let reason = admit(&chain, json!({})).denial().cloned();
    assert!(matches!(reason, Some(DenialReason::Budget { .. })), "{reason:?}");
}

#[test]
fn bytes_that_are_no_text_do_not_load() {
    let file = |bytes| kiwi_rules::RuleRegistry::load(&[kiwi_rules::RuleFile { name: "x.kappa", bytes }]);
    let Err(LoadError::Invalid { problems }) = file(b"rule r {\n  \xff") else { panic!("loads") };
    assert_eq!(problems[0].to_string(), "x.kappa:2:3: the file is not UTF-8");
    assert!(file(&vec![b' '; (1 << 20) + 1]).is_err());
}
