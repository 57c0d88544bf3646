//! What must hold for any bytes given to κ. One function per target; each panics when it does not hold.
//!
//! Apart from the other bodies, since those are also compiled by the room of the model, which knows no rules.

use kiwi_model::canonical;
use kiwi_rules::{
    DenialReason, LoadError, MAX_PROBLEMS, Problem, RecordedRequest, RuleFile, RuleRegistry,
    evaluate_admission, lex, parse,
};

/// Tokens stand in the text, in order, and do not overlap; complaints have places inside it.
pub fn lexer(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (lexemes, problems) = lex("fuzz.kappa", &text);
    let mut end = 0;
    for lexeme in &lexemes {
        assert!(end <= lexeme.span.start && lexeme.span.start < lexeme.span.end, "{lexeme:?} after {end}");
        assert!(text.get(lexeme.span.start..lexeme.span.end).is_some(), "{lexeme:?} is no piece of the text");
        end = lexeme.span.end;
    }
    assert!(end <= text.len());
    within(&problems, &text);
    assert_eq!(lex("fuzz.kappa", &text), (lexemes, problems), "read once, read twice");
}

/// A file is read, or refused with problems that have places.
pub fn parser(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let problems = parse("fuzz.kappa", &text);
    within(&problems, &text);
    assert_eq!(parse("fuzz.kappa", &text), problems, "read once, read twice");
}

/// Rules, a line `%%`, and a request: whatever they are, there is one answer, and the same one twice.
pub fn evaluator(bytes: &[u8]) {
    let at = bytes.windows(4).position(|window| window == b"\n%%\n");
    let (rules, request) = at.map_or((bytes, &b"{}"[..]), |at| (&bytes[..at], &bytes[at + 4..]));
    let recorded: RecordedRequest = serde_json::from_slice(request).unwrap_or_default();
    let load = || RuleRegistry::load(&[RuleFile { name: "fuzz.kappa", bytes: rules }]);
    let registry = match load() {
        Ok(registry) => registry,
        Err(error) => {
            assert!(!error.problems().is_empty() && !error.to_string().is_empty());
            if let LoadError::Invalid { problems } = &error {
                within(problems, &String::from_utf8_lossy(rules));
            }
            RuleRegistry::refusing(error.denial())
        }
    };
    let result = evaluate_admission(&recorded.request(), &registry);
    assert_eq!(evaluate_admission(&recorded.request(), &registry), result, "a second run differs");
    if let Ok(again) = load() {
        assert_eq!(again.version_hash(), registry.version_hash());
    } else {
        assert!(result.denial().is_some(), "rules that do not load let nothing through");
    }
    if let Some(reason) = result.denial() {
        let text = reason.serialise();
        assert_eq!(DenialReason::parse(&text).expect("a denial can be read back").serialise(), text);
        assert!(!reason.render().is_empty());
    }
    let value = serde_json::to_value(&result.verdicts).expect("verdicts can be written down");
    canonical(&value).expect("and hashed");
}

fn within(problems: &[Problem], text: &str) {
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(problems.len() <= MAX_PROBLEMS, "{} problems in one file", problems.len());
    for problem in problems {
        let line = lines.get(problem.line.wrapping_sub(1)).expect("a line of the text");
        assert!(
            (1..=line.chars().count() + 1).contains(&problem.column),
            "column {} of `{line}`",
            problem.column
        );
        assert!(!problem.message.is_empty() && problem.snippet.lines().count() == 2, "{problem:?}");
    }
}
