//! The difference between two texts, as people read it.

use std::fmt::Write as _;

/// Lines shown around a change.
const AROUND: usize = 3;

/// A unified diff. What changes here is one entry, so it has one hunk: everything between the first and the last line
/// that differ.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same_start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - same_start;
    let same_end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let from = same_start.saturating_sub(AROUND);
    let behind = same_end.min(AROUND);
    let (old_changed, new_changed) = (old.len() - same_end, new.len() - same_end);
    let (old_end, new_end) = (old_changed + behind, new_changed + behind);
    let mut text = format!("--- {name}\n+++ {name}\n");
    let start = |length: usize| if length == 0 { from } else { from + 1 };
    let (old_length, new_length) = (old_end - from, new_end - from);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "@@ -{},{old_length} +{},{new_length} @@", start(old_length), start(new_length));
    let mut part = |mark: char, lines: &[&str], range: std::ops::Range<usize>| {
        for line in lines.get(range).unwrap_or_default() {
            let _ = writeln!(text, "{mark}{line}");
        }
    };
    part(' ', &old, from..same_start);
    part('-', &old, same_start..old_changed);
    part('+', &new, same_start..new_changed);
    part(' ', &old, old_changed..old_end);
    text
}
