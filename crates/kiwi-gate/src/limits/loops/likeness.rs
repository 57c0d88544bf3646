//! Whether two calls are nearly the same, and whether a row of such calls gets anywhere.
//!
//! Two calls are nearly the same when little of their parameters differs, unless what differs is a *name* that names
//! another thing: reading `src/list.rs` after `src/show.rs` is work, whatever share of the path the two have in common.
//! A row of such calls gets somewhere when a number in it is another one every time, as pages, offsets and the numbers of
//! things are.

use std::collections::HashMap;
use strsim::{generic_levenshtein, normalized_levenshtein};

use super::seen::{Leaf, Seen};

/// Texts that differ in a stretch longer than this are compared by words: the exact distance costs its square.
const MOST_EXACT: usize = 512;
/// Parts of two names that are less alike than this are two parts, not one and its misspelling.
const SAME_PART: f64 = 0.5;

/// Whether two calls of one tool are nearly the same.
pub(super) fn is_near(earlier: &Seen, later: &Seen, threshold: f64) -> bool {
    earlier.tool == later.tool
        && is_close(earlier.size, later.size, threshold)
        && is_similar(&earlier.text, &later.text, threshold)
        && !names_another(earlier, later)
}

/// Whether some number is another one in each of these calls.
pub(super) fn progresses(calls: &[Seen]) -> bool {
    let rows: Vec<HashMap<(&str, usize), f64>> = calls.iter().map(numbers).collect();
    let Some((first, rest)) = rows.split_first() else { return false };
    first.iter().any(|(slot, start)| {
        let rest: Option<Vec<f64>> = rest.iter().map(|row| row.get(slot).copied()).collect();
        let Some(mut row) = rest else { return false };
        row.push(*start);
        row.sort_by(f64::total_cmp);
        let count = row.len();
        row.dedup();
        count > 1 && row.len() == count
    })
}

/// Lengths that alone make two texts too different.
fn is_close(one: usize, other: usize, threshold: f64) -> bool {
    share(one.abs_diff(other), one.max(other)) >= threshold
}

/// The share of `whole` that is left without `part`.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { 1.0 - part as f64 / whole as f64 }
}

fn is_similar(one: &str, other: &str, threshold: f64) -> bool {
    let longest = one.len().max(other.len());
    // What both begin and end with costs nothing to compare.
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let head = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(head..).unwrap_or_default(), other.get(head..).unwrap_or_default());
    let tail = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let one = one.get(..one.len().saturating_sub(tail)).unwrap_or_default();
    let other = other.get(..other.len().saturating_sub(tail)).unwrap_or_default();
    let (most, least) = (one.len().max(other.len()), one.len().abs_diff(other.len()));
    if share(most, longest) >= threshold {
        return true;
    }
    if share(least, longest) < threshold {
        return false;
    }
    if most <= MOST_EXACT {
        return share(least_edits(one, other), longest) >= threshold
            && share(generic_levenshtein(&Bytes(one), &Bytes(other)), longest) >= threshold;
    }
    share(foreign_bytes(one, other), longest) >= threshold
}

/// Fewer edits than this never make one of the other, wherever they are: what one has more often has to go, or become
/// what the other has more often.
fn least_edits(one: &[u8], other: &[u8]) -> usize {
    let mut surplus = [0_isize; 256];
    for (text, step) in [(one, 1), (other, -1)] {
        for byte in text {
            if let Some(count) = surplus.get_mut(usize::from(*byte)) {
                *count += step;
            }
        }
    }
    let sum = |sign: isize| surplus.iter().map(|count| (count * sign).max(0).unsigned_abs()).sum::<usize>();
    sum(1).max(sum(-1))
}

/// Something to walk over twice, as the distance wants it.
struct Bytes<'a>(&'a [u8]);

impl<'b> IntoIterator for &'b Bytes<'_> {
    type Item = u8;
    type IntoIter = std::iter::Copied<std::slice::Iter<'b, u8>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied()
    }
}

/// How many bytes of the longer text are in words that the other does not have.
fn foreign_bytes(one: &[u8], other: &[u8]) -> usize {
    let words = |text: &'_ [u8]| {
        let mut count: HashMap<Vec<u8>, usize> = HashMap::new();
        for word in text.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
            *count.entry(word.to_vec()).or_default() += 1;
        }
        count
    };
    let (one, other) = (words(one), words(other));
    let missing = |from: &HashMap<Vec<u8>, usize>, of: &HashMap<Vec<u8>, usize>| -> usize {
        let lacks = |(word, count): (&Vec<u8>, &usize)| {
            count.saturating_sub(from.get(word).copied().unwrap_or(0)) * word.len()
        };
        of.iter().map(lacks).sum()
    };
    missing(&one, &other).max(missing(&other, &one))
}

/// Whether some value without blanks, a name, differs in a whole part.
fn names_another(earlier: &Seen, later: &Seen) -> bool {
    later.leaves.iter().enumerate().any(|(at, (path, leaf))| {
        // Calls that are alike have the same values in the same order.
        let at_once = earlier.leaves.get(at).filter(|(own, _)| own == path);
        let known = at_once.or_else(|| earlier.leaves.iter().find(|(own, _)| own == path));
        match (known, leaf) {
            (Some((_, Leaf::Text(one))), Leaf::Text(other)) => one != other && are_two_names(one, other),
            _ => false,
        }
    })
}

fn are_two_names(one: &str, other: &str) -> bool {
    if one.contains(char::is_whitespace) || other.contains(char::is_whitespace) {
        return false;
    }
    let (one, other) = (parts(one), parts(other));
    one.len() != other.len()
        || one.iter().zip(&other).any(|(one, other)| normalized_levenshtein(one, other) < SAME_PART)
}

/// The parts of a name: what stands between signs, digits, and small and capital letters.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for character in name.chars().take(1024) {
        if character.is_uppercase() && !before.is_uppercase() || !character.is_alphabetic() {
            parts.push(String::new());
        }
        if character.is_alphabetic()
            && let Some(part) = parts.last_mut()
        {
            part.extend(character.to_lowercase());
        }
        before = character;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Every number in the parameters, by where it is: values that are numbers, and numbers inside texts.
fn numbers(seen: &Seen) -> HashMap<(&str, usize), f64> {
    let mut all = HashMap::new();
    for (path, leaf) in &seen.leaves {
        match leaf {
            Leaf::Number(number) => {
                all.insert((path.as_str(), 0), *number);
            }
            Leaf::Text(text) => {
                let runs = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
                all.extend(runs.enumerate().filter_map(|(number, run)| {
                    run.parse().ok().map(|value| ((path.as_str(), number), value))
                }));
            }
            Leaf::Other(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn seen(params: &Value) -> Seen {
        Seen::new("t", params.as_object().unwrap(), false)
    }

    #[track_caller]
    fn check(one: impl std::borrow::Borrow<Value>, other: impl std::borrow::Borrow<Value>, expect: bool) {
        let (one, other) = (one.borrow(), other.borrow());
        assert_eq!(is_near(&seen(one), &seen(other), 0.9), expect, "{one} {other}");
        assert_eq!(is_near(&seen(other), &seen(one), 0.9), expect, "{other} {one}");
    }

    #[test]
    fn little_words_are_near_and_other_names_are_not() {
        let query = |text: &str| json!({"query": text});
        check(query("why does the build fail on arm64"), query("why does the build fail on arm64?"), true);
        check(query("why does the build fail on arm"), query("why did the build fail on arm"), true);
        check(query("why does the build fail on arm"), query("list every open pull request here"), false);
        let path = |name: &str| json!({"path": format!("/srv/checkout/crates/tool/src/commands/{name}")});
        check(path("list.rs"), path("show.rs"), false);
        check(path("a.rs"), path("b.rs"), false);
        check(path("UserServiceTest.java"), path("UserServiceImpl.java"), false);
        check(path("list.rs"), path("lists.rs"), true);
        check(path("list.rs"), path("list.rs~"), true);
        check(path("more/list.rs"), path("list.rs"), false);
    }

    #[test]
    fn no_way_from_one_text_to_another_is_shorter_than_the_least() {
        let letters = |mut seed: u64| {
            let next = move |_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b'a' + u8::try_from(seed >> 62).unwrap()
            };
            let length = usize::try_from(seed % 9).unwrap();
            (0..length).map(next).collect::<Vec<u8>>()
        };
        let mut exact = 0;
        for seed in 0..4000 {
            let (one, other) = (letters(seed), letters(seed * 31 + 7));
            let (least, edits) =
                (least_edits(&one, &other), generic_levenshtein(&Bytes(&one), &Bytes(&other)));
            assert!(least <= edits, "{one:?} {other:?}");
            exact += usize::from(least == edits && edits > 0);
        }
        // It would be no use if it were always zero.
        assert!(exact > 1000, "{exact}");
    }

    #[test]
    fn long_texts_are_compared_and_quickly() {
        let line = |number: usize| format!("line {number} of a file that goes on and on\n");
        let text = (0..5000).map(line).collect::<Vec<_>>().concat();
        let changed = text.replace("line 17 ", "LINE 17 ");
        let unlike = |number: usize| format!("{:x} quite unlike the rest {number}\n", number * 7919);
        let other = (0..5000).map(unlike).collect::<Vec<_>>().concat();
        let begun = std::time::Instant::now();
        check(json!({"content": text}), json!({"content": changed}), true);
        check(json!({"content": text}), json!({"content": other}), false);
        // Two texts that share neither beginning nor end, as long as what is remembered.
        let one = text.get(..8000).unwrap();
        check(json!({"content": format!("a{one}b")}), json!({"content": format!("c{one}d")}), true);
        assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
    }

    #[test]
    fn numbers_that_are_new_every_time_are_progress() {
        let rows = |values: &[Value]| values.iter().map(seen).collect::<Vec<_>>();
        let page = |page: i64| json!({"q": "x", "page": page});
        assert!(progresses(&rows(&[page(1), page(2), page(3)])));
        assert!(progresses(&rows(&[page(30), page(20), page(5)])));
        assert!(progresses(&rows(&[page(5), page(30), page(12)])));
        assert!(!progresses(&rows(&[page(1), page(2), page(1)])));
        assert!(!progresses(&rows(&[page(1), json!({"q": "x"}), page(2)])));
        assert!(!progresses(&rows(&[page(1), page(1), page(1)])));
        let url = |offset: i64| json!({"url": format!("https://h.test/v1/items?offset={offset}&limit=50")});
        assert!(progresses(&rows(&[url(0), url(50), url(100)])));
        assert!(!progresses(&rows(&[url(50), url(0), url(50)])));
    }
}
