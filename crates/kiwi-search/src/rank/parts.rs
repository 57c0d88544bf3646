//! A query may ask for several things at once. Each clause is a question of its own, beside the whole.

use crate::text::{is_stop_word, split};

/// Words of its own that a clause has at least.
const FEWEST_WORDS: usize = 3;
const MOST_CLAUSES: usize = 8;
/// Words between which a clause ends and another begins.
const JOINTS: [&str; 7] = ["and", "then", "also", "plus", "while", "but", "or"];

/// The clauses of a query; nothing where it is one.
pub(super) fn clauses(text: &str) -> Vec<String> {
    let pieces = pieces(text);
    let mut least = FEWEST_WORDS;
    loop {
        let clauses = joined(&pieces, least);
        if clauses.len() <= MOST_CLAUSES {
            return if clauses.len() > 1 { clauses } else { Vec::new() };
        }
        least += 1;
    }
}

/// Puts pieces together until each has enough words of its own.
fn joined(pieces: &[String], fewest: usize) -> Vec<String> {
    let mut clauses: Vec<String> = Vec::new();
    let mut clause = String::new();
    for piece in pieces {
        if !clause.is_empty() {
            clause.push(' ');
        }
        clause.push_str(piece);
        if telling_words(&clause) >= fewest {
            clauses.push(std::mem::take(&mut clause));
        }
    }
    match clauses.last_mut() {
        Some(last) if !clause.is_empty() => {
            last.push(' ');
            last.push_str(&clause);
        }
        None if !clause.is_empty() => clauses.push(clause),
        _ => {}
    }
    clauses
}

fn telling_words(text: &str) -> usize {
    split(text).iter().filter(|word| !is_stop_word(&word.to_lowercase())).count()
}

/// Cuts at the ends of sentences and lines, at commas, and at words that join.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    for line in text.lines() {
        let mut piece: Vec<&str> = Vec::new();
        let mut end = |piece: &mut Vec<&str>| {
            if !piece.is_empty() {
                pieces.push(piece.join(" "));
                piece.clear();
            }
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        for (at, word) in words.iter().enumerate() {
            let is_inside = at > 0 && at + 1 < words.len();
            if is_inside && JOINTS.iter().any(|joint| joint.eq_ignore_ascii_case(word)) {
                end(&mut piece);
                continue;
            }
            piece.push(word);
            if word.ends_with(['.', '?', '!', ';', ':', ',']) {
                end(&mut piece);
            }
        }
        end(&mut piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_has_no_clauses() {
        for text in ["", "weather in Paris", "send mail and sms", "What's the weather?", "and and and"] {
            assert!(clauses(text).is_empty(), "{text}: {:?}", clauses(text));
        }
    }

    #[test]
    fn several_questions_fall_apart() {
        assert_eq!(
            clauses(
                "Convert this large file to PDF. Also, send the result by mail to Anna and book a table tonight"
            ),
            [
                "Convert this large file to PDF.",
                "Also, send the result by mail to Anna",
                "book a table tonight"
            ]
        );
    }

    #[test]
    fn there_are_never_too_many() {
        let text = "red green blue, ".repeat(100);
        assert!((2..=MOST_CLAUSES).contains(&clauses(&text).len()));
    }
}
