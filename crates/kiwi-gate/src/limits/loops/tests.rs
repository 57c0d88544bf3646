use super::*;
use serde_json::json;

/// Plays a row of calls: a letter is a call, `!` behind it a failure. Gives `.`, `n`otice or `D`enied for each.
fn play(calls: &[(&str, Value, bool, Option<&str>)]) -> String {
    let brake = LoopBrake::new(LoopConfig::default());
    let session = Session::start();
    let mut out = String::new();
    for (number, (tool, params, mutates, failure)) in calls.iter().enumerate() {
        let judged = brake.judge(session, tool, params.as_object().unwrap(), *mutates);
        out.push(match judged.verdict {
            LoopVerdict::Clear => '.',
            LoopVerdict::Notice(_) => 'n',
            LoopVerdict::Denied(_) => 'D',
        });
        if out.ends_with('D') {
            continue;
        }
        let ending = match failure {
            Some(message) => Ending::failed(&Fault::new(ErrorKind::ToolFailed, *message)),
            None => Ending::gave(Digest::of(number.to_string().as_bytes())),
        };
        brake.ended(session, judged.turn, ending);
    }
    out
}

/// Letters are calls with nothing in common.
#[track_caller]
fn check(row: &str, expect: &str) {
    let call = |letter: char| {
        let words = ["apple", "bridge", "candle", "dragon", "engine"];
        let at = usize::try_from(u32::from(letter) - u32::from('a')).unwrap();
        ("t", json!({"name": words[at]}), false, None)
    };
    assert_eq!(play(&row.chars().map(call).collect::<Vec<_>>()), expect, "{row}");
}

/// The sentence of a refused call, and what it says to do.
fn refusal(verdict: LoopVerdict) -> (String, String) {
    let LoopVerdict::Denied(objection) = verdict else { panic!("it is not refused: {verdict:?}") };
    (objection.sentence(), objection.hint.unwrap())
}

#[test]
fn a_refusal_says_what_ends_it() {
    let brake = LoopBrake::new(LoopConfig::default());
    let session = Session::start();
    let call = |tool: &str, name: &str| {
        let Value::Object(params) = json!({"name": name}) else { panic!("parameters are an object") };
        let judged = brake.judge(session, tool, &params, false);
        let failed = Ending::failed(&Fault::new(ErrorKind::ToolFailed, "it is closed"));
        if !matches!(judged.verdict, LoopVerdict::Denied(_)) {
            brake.ended(session, judged.turn, failed);
        }
        judged.verdict
    };
    for name in ["apple", "bridge", "candle", "dragon"] {
        call("t", name);
    }
    let (why, hint) = refusal(call("t", "engine"));
    assert!(why.contains("the same failure"), "{why}");
    assert!(hint.starts_with("a call of another tool ends it"), "{hint}");
    assert!(hint.contains("waiting does not") && hint.contains(SUGGESTION), "{hint}");
    // And it does.
    assert_eq!(call("other", "x"), LoopVerdict::Clear);
    assert_eq!(call("t", "engine"), LoopVerdict::Clear);
    // The same call, and it failed: another one of that tool would be denied as well.
    for _ in 0..3 {
        call("same", "apple");
    }
    let (why, hint) = refusal(call("same", "apple"));
    assert!(why.contains("the same call") && hint.contains("unless these have failed"), "{why} {hint}");
    refusal(call("same", "a quite different thing"));
    assert_eq!(call("t", "apple"), LoopVerdict::Clear);
}

#[test]
fn repeats_and_circles() {
    check("aa", "..");
    check("aaa", "..n");
    check("aaaaa", "..nDD");
    check("aabaaba", ".......");
    // Something else in between, and it begins anew.
    check("aaaabaa", "..nD...");
    check("aaaabaaa", "..nD...n");
    check("abab", "...n");
    check("ababab", "...nDD");
    check("ababcab", "...n...");
    check("abcabc", "......");
    check("abcabcabc", "........n");
    check("abcabcabca", "........nD");
    check("abcdeabcde", "..........");
    // No two of five calls in any other order are a circle.
    for row in ["abcba", "abacad", "aabbaabb", "abba"] {
        check(row, &".".repeat(row.len()));
    }
}

#[test]
fn every_row_of_two_calls_is_told_apart() {
    // Enumerated: a notice exactly where three in a row, or two in turn twice, end.
    for length in 1..=8_u32 {
        for bits in 0..2_u32.pow(length) {
            let row: String = (0..length).map(|at| if bits >> at & 1 == 1 { 'b' } else { 'a' }).collect();
            let hits = |row: &str| {
                let tail = |count: usize| row.get(row.len().wrapping_sub(count)..).unwrap_or_default();
                ["aaa", "bbb"].contains(&tail(3)) || ["abab", "baba"].contains(&tail(4))
            };
            let mut expect = String::new();
            for end in 1..=row.len() {
                let was_warned = !matches!(expect.chars().last(), None | Some('.'));
                let is_hit = hits(row.get(..end).unwrap());
                expect.push(if !is_hit {
                    '.'
                } else if was_warned {
                    'D'
                } else {
                    'n'
                });
            }
            check(&row, &expect);
        }
    }
}

#[test]
fn nearly_the_same_is_a_loop_and_pages_are_not() {
    let ask = |text: &str| ("search", json!({"query": text}), false, None);
    let reworded = [
        ask("how to fix the linker error on arm"),
        ask("how to fix the linker errors on arm"),
        ask("how to fix the linker errors on arm?"),
        ask("how to fix this linker errors on arm?"),
        ask("something else entirely, about tests"),
    ];
    assert_eq!(play(&reworded), "..nD.");
    let pages: Vec<_> =
        (1..=12).map(|page| ("search", json!({"query": "open bugs", "page": page}), false, None)).collect();
    assert_eq!(play(&pages), ".".repeat(12));
    let things = [5, 3, 9, 2, 40, 7].map(|number| ("get", json!({"issue_number": number}), false, None));
    assert_eq!(play(&things), "......");
    let forth_and_back = [5, 3, 5, 3].map(|number| ("get", json!({"issue_number": number}), false, None));
    assert_eq!(play(&forth_and_back), "..nD");
    let offsets: Vec<_> = (0..12)
        .map(|page| {
            ("get", json!({"url": format!("https://h.test/items?from={}&n=50", page * 50)}), false, None)
        })
        .collect();
    assert_eq!(play(&offsets), ".".repeat(12));
    let files: Vec<_> = ["alpha", "beta", "gamma", "delta", "omega", "kappa"]
        .map(|name| {
            ("read", json!({"path": format!("/srv/checkout/crates/some/deep/folder/{name}.rs")}), false, None)
        })
        .to_vec();
    assert_eq!(play(&files), "......");
    // The same tweak to another tool is another call.
    let tools: Vec<_> = ["one", "two", "three", "four"]
        .map(|tool| (tool, json!({"query": "the very same words"}), false, None))
        .to_vec();
    assert_eq!(play(&tools), "....");
}

#[test]
fn the_same_failure_again_and_again() {
    let words = ["apple", "bridge", "candle", "dragon", "engine", "forest", "garden"];
    let call = |at: usize, failure| ("t", json!({"name": words[at]}), false, failure);
    let fails = Some("connection refused");
    let row: Vec<_> = (0..7).map(|at| call(at, fails)).collect();
    assert_eq!(play(&row), "...nDDD");
    let other = |at: usize| ("u", json!({"name": words[at]}), false, None);
    let broken = [call(0, fails), call(1, fails), other(0), call(2, fails), call(3, fails)];
    assert_eq!(play(&broken), ".....");
    let different =
        [call(0, fails), call(1, fails), call(2, Some("no such host")), call(3, fails), call(4, None)];
    assert_eq!(play(&different), ".....");
    let after = [
        call(0, fails),
        call(1, fails),
        call(2, fails),
        call(3, fails),
        call(4, fails),
        other(0),
        call(5, fails),
    ];
    assert_eq!(play(&after), "...nD..");
}

#[test]
fn changes_that_grow_and_grow() {
    let words = ["apple", "bridge", "candle", "dragon", "engine", "forest", "garden"];
    let write = |at: usize, size: usize| {
        ("write", json!({"name": words[at], "content": words[at].repeat(size)}), true, None)
    };
    let row: Vec<_> = (0..7).map(|at| write(at, 10 << at)).collect();
    assert_eq!(play(&row), "....nDD");
    let even: Vec<_> = (0..7).map(|at| write(at, 10)).collect();
    assert_eq!(play(&even), ".......");
    let reading: Vec<_> =
        row.iter().map(|(tool, params, _, end)| (*tool, params.clone(), false, *end)).collect();
    assert_eq!(play(&reading), ".......");
}

#[test]
fn a_notice_and_a_denial_say_what_to_do() {
    let brake = LoopBrake::new(LoopConfig::default());
    let session = Session::start();
    let params = json!({"a": 1});
    let judge = || brake.judge(session, "t", params.as_object().unwrap(), false);
    judge();
    judge();
    let LoopVerdict::Notice(notice) = judge().verdict else { panic!("no notice") };
    assert_eq!(
        serde_json::to_value(&notice).unwrap(),
        json!({"pattern": "exact_repeat", "calls": 3, "suggestion": "help(action=\"stuck\")"})
    );
    let LoopVerdict::Denied(denial) = judge().verdict else { panic!("no denial") };
    assert_eq!((denial.judge, denial.kind), (Judge::LoopBrake, ErrorKind::LoopDetected));
    assert!(denial.hint.unwrap().contains("help(action=\"stuck\")"));
    // Other sessions are not concerned, and waiting for a person is no loop.
    assert_eq!(
        brake.judge(Session::start(), "t", params.as_object().unwrap(), false).verdict,
        LoopVerdict::Clear
    );
    let patient = Session::start();
    for _ in 0..20 {
        let judged = brake.judge(patient, "t", params.as_object().unwrap(), false);
        assert_eq!(judged.verdict, LoopVerdict::Clear);
        brake.withdrawn(patient, judged.turn);
    }
}
