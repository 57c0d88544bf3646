//! Inclusion and overlap, decided exactly: a search over both automata at once, with one character for each set of
//! characters that no pattern tells apart.

use std::collections::{BTreeSet, VecDeque};

use super::Glob;
use super::automaton::States;
use super::set::representatives;

/// More situations than any pattern that a person wrote leads to. What cannot be decided within is not contained.
const MOST_SITUATIONS: usize = 100_000;

/// Why one glob is not contained in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Witness {
    /// A shortest string that it matches and they do not.
    Text(String),
    /// The patterns are too entangled to tell.
    Undecided,
}

impl std::fmt::Display for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "`{text}`"),
            Self::Undecided => f.write_str("what cannot be told, the patterns being too entangled"),
        }
    }
}

/// Whether everything that `inner` matches is matched by one of `outer`.
pub(crate) fn contains<'g>(
    outer: impl IntoIterator<Item = &'g Glob>,
    inner: &'g Glob,
) -> Result<(), Witness> {
    let mut outer = outer.into_iter();
    if let Some(only) = inner.automaton.only() {
        // Most are no patterns at all, and then there is nothing to search for.
        let is_matched = outer.any(|glob| glob.automaton.matches(only.iter().copied()));
        return if is_matched { Ok(()) } else { Err(Witness::Text(only.iter().collect())) };
    }
    let globs: Vec<&Glob> = std::iter::once(inner).chain(outer).collect();
    let beyond = search(&globs, 1, |accepted| match accepted {
        [true, outer @ ..] => !outer.contains(&true),
        _ => false,
    });
    beyond.map_or(Ok(()), Err)
}

/// A string that both match, if there is one.
pub(crate) fn meet(one: &Glob, other: &Glob) -> Option<Witness> {
    search(&[one, other], 2, |accepted| accepted.iter().all(|accepts| *accepts))
}

/// The shortest string after which `is_wanted` holds of who accepts it. The first `alive` globs must stay alive.
fn search(globs: &[&Glob], alive: usize, is_wanted: impl Fn(&[bool]) -> bool) -> Option<Witness> {
    let is_over = |situation: &[States]| situation.iter().take(alive).any(Vec::is_empty);
    let alphabet = representatives(globs.iter().flat_map(|glob| glob.automaton.borders()));
    // What the first one begins with is the only way on for it.
    let begins = globs.first().map(|glob| glob.automaton.begins()).unwrap_or_default();
    let begin: Vec<States> = globs.iter().map(|glob| glob.automaton.after(begins.iter().copied())).collect();
    if is_over(&begin) {
        return None;
    }
    let mut seen = BTreeSet::from([begin.clone()]);
    let mut queue = VecDeque::from([(begin, begins.iter().collect::<String>())]);
    while let Some((now, text)) = queue.pop_front() {
        let accepted: Vec<bool> =
            globs.iter().zip(&now).map(|(glob, states)| glob.automaton.accepts(states)).collect();
        if is_wanted(&accepted) {
            return Some(Witness::Text(text));
        }
        for c in &alphabet {
            let next: Vec<States> =
                globs.iter().zip(&now).map(|(glob, states)| glob.automaton.step(states, *c)).collect();
            if is_over(&next) || seen.contains(&next) {
                continue;
            }
            if seen.len() >= MOST_SITUATIONS {
                return Some(Witness::Undecided);
            }
            seen.insert(next.clone());
            let mut longer = text.clone();
            longer.push(*c);
            queue.push_back((next, longer));
        }
    }
    None
}
