use super::*;

fn path(text: &str) -> Glob {
    Glob::path(text).unwrap()
}

#[test]
fn a_star_stays_in_its_part_and_two_do_not() {
    for (glob, matching, other) in [
        ("src/*", &["src/a", "src/.x"][..], &["src", "src/a/b", "other/a", "srcx"][..]),
        ("src/**", &["src", "src/a", "src/a/b"], &["srcx", "other", "xsrc/a", "sr"]),
        ("**/b.rs", &["b.rs", "a/b.rs", "a/c/b.rs"], &["ab.rs", "b.rs/a"]),
        ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "a/b/c"]),
        ("a/**/**", &["a", "a/b", "a/b/c"], &["ab"]),
        ("**", &["", "a", "a/b", "/a"], &[]),
        ("a**b", &["ab", "a/b", "axb", "a/x/b"], &["a", "b"]),
        ("x?z", &["xyz", "xéz"], &["xz", "x/z", "xyyz"]),
        ("[a-c]x", &["ax", "cx"], &["dx", "Ax", "/x"]),
        ("[!a-c]x", &["dx", "Ax"], &["ax", "/x"]),
        ("[]x]", &["]", "x"], &["a"]),
        ("a\\*", &["a*"], &["ab", "a\\*"]),
        ("*.csv", &["1.csv", ".csv"], &["1.CSV", "a/1.csv"]),
    ] {
        let glob = path(glob);
        for text in matching {
            assert!(glob.matches(text), "{} must match {text}", glob.as_str());
        }
        for text in other {
            assert!(!glob.matches(text), "{} must not match {text}", glob.as_str());
        }
    }
    assert!(Glob::path("a[b").is_err() && Glob::path("a\\").is_err() && Glob::path("[z-a]").is_err());
}

#[test]
fn in_names_a_star_crosses_everything() {
    let glob = Glob::name("git.*").unwrap();
    assert!(glob.matches("git.status") && glob.matches("git.remote.add") && !glob.matches("gitx"));
}

#[test]
fn case_counts_and_two_normal_forms_are_two_names() {
    assert!(!path("Readme").matches("README"));
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    assert!(path(composed).matches(composed) && path(decomposed).matches(decomposed));
    assert!(!path(composed).matches(decomposed) && !path(decomposed).matches(composed));
    assert!(contains(&[path("caf?")], &path(composed)).is_ok());
    assert_eq!(contains(&[path("caf?")], &path(decomposed)), Err(Witness::Text(decomposed.into())));
}

#[test]
fn containment_names_what_lies_beyond() {
    assert!(contains(&[path("/p/**")], &path("/p/src/**")).is_ok());
    assert!(contains(&[path("/p/*")], &path("/p/src/**")).is_err());
    assert_eq!(contains(&[path("/p/src/**")], &path("/p/src*")), Err(Witness::Text("/p/srca".into())));
    assert!(contains(&[path("a"), path("b")], &path("[ab]")).is_ok());
    assert_eq!(contains(&[path("a")], &path("[ab]")), Err(Witness::Text("b".into())));
    assert_eq!(contains(&[], &path("a")), Err(Witness::Text("a".into())));
    let entangled = path(&format!("*a{}", "?".repeat(40)));
    assert_eq!(contains(&[entangled], &path("*")), Err(Witness::Text(String::new())));
    assert!(meet(&path("src/**"), &path("**/secret")).is_some());
    assert!(meet(&path("src/**"), &path("doc/**")).is_none());
}

/// The same meaning once more, by trying: slow, plain, and written without the automaton.
fn tries(pattern: &[char], text: &[char], at_start: bool) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['/', '*', '*'] => text.is_empty() || text.first() == Some(&'/'),
        // A folder's stars may stand for no folder at all.
        ['*', '*', '/', rest @ ..] if at_start => {
            tries(rest, text, true)
                || (0..text.len()).any(|at| text[at] == '/' && tries(rest, &text[at + 1..], true))
        }
        ['*', '*', rest @ ..] => (0..=text.len()).any(|at| tries(rest, &text[at..], false)),
        ['*', rest @ ..] => (0..=text.len())
            .take_while(|at| !text[..*at].contains(&'/'))
            .any(|at| tries(rest, &text[at..], false)),
        ['?', rest @ ..] => text.split_first().is_some_and(|(c, text)| *c != '/' && tries(rest, text, false)),
        ['[', '!', one, ']', rest @ ..] => {
            text.split_first().is_some_and(|(c, text)| *c != '/' && c != one && tries(rest, text, false))
        }
        [own, rest @ ..] => {
            text.split_first().is_some_and(|(c, text)| c == own && tries(rest, text, *own == '/'))
        }
    }
}

fn matches_by_trying(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    tries(&pattern, &text.chars().collect::<Vec<_>>(), true)
}

/// Every string of up to six of three letters.
fn universe() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..6 {
        last = last.iter().flat_map(|text| ['a', 'b', '/'].map(|c| format!("{text}{c}"))).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// Patterns of up to five pieces; more than two stars in a row and doubled deep parts have a meaning of their own.
fn pool(count: usize) -> Vec<String> {
    const PIECES: [&str; 10] = ["a", "b", "/", "*", "**", "?", "[!a]", "/**", "**/", "/"];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let mut pool = Vec::new();
    while pool.len() < count {
        let length = 1 + next(5);
        let text: String = (0..length).map(|_| PIECES[next(PIECES.len())]).collect();
        if !text.contains("***") && !text.contains("**/**") && !pool.contains(&text) {
            pool.push(text);
        }
    }
    pool
}

#[test]
fn containment_agrees_with_trying_every_string() {
    let universe = universe();
    assert_eq!(universe.len(), 1093);
    let texts = pool(330);
    let globs: Vec<Glob> = texts.iter().map(|text| path(text)).collect();
    let tables: Vec<Vec<bool>> = texts
        .iter()
        .map(|pattern| universe.iter().map(|text| matches_by_trying(pattern, text)).collect())
        .collect();
    for (at, glob) in globs.iter().enumerate() {
        for (text, expected) in universe.iter().zip(&tables[at]) {
            assert_eq!(glob.matches(text), *expected, "{} on {text:?}", texts[at]);
        }
    }
    let (mut pairs, mut refused) = (0, 0);
    let mut check = |outer: &[usize], inner: usize| {
        let own: Vec<Glob> = outer.iter().map(|at| globs[*at].clone()).collect();
        let inside = |at: usize| outer.iter().any(|outer| tables[*outer][at]);
        let is_subset = (0..universe.len()).all(|at| !tables[inner][at] || inside(at));
        pairs += 1;
        match contains(&own, &globs[inner]) {
            Ok(()) => assert!(is_subset, "{} in {outer:?}", texts[inner]),
            Err(Witness::Text(text)) => {
                refused += 1;
                assert!(matches_by_trying(&texts[inner], &text), "{text:?} is not in {}", texts[inner]);
                for outer in outer {
                    assert!(!matches_by_trying(&texts[*outer], &text), "{text:?} is in {}", texts[*outer]);
                }
                // The shortest witness: either it is as short as those that were tried, or none of them is one.
                let is_foreign = text.contains(|c| !matches!(c, 'a' | 'b' | '/'));
                let is_long = text.chars().count() > 6;
                assert!(!is_subset || is_long || is_foreign, "{text:?} for {}", texts[inner]);
                assert!(is_subset || !is_long, "{text:?} for {}", texts[inner]);
            }
            Err(Witness::Undecided) => panic!("{} in {outer:?} is undecided", texts[inner]),
        }
    };
    for inner in 0..globs.len() {
        for outer in 0..globs.len() {
            check(&[outer], inner);
            if (inner + outer) % 3 == 0 {
                check(&[outer, (outer * 7 + inner) % globs.len()], inner);
            }
        }
    }
    assert!(pairs > 140_000 && refused > 50_000 && refused < pairs, "{pairs} pairs, {refused} refused");
}
