//! Why an item was found, in words.

use super::fuse::Weighed;
use super::names::Call;
use super::words::{QueryWord, QueryWords, words_of};
use crate::document::Item;

/// As much of a description as one line shows.
const MOST_OF_A_LINE: usize = 200;
/// Words that are named.
const MOST_NAMED: usize = 4;

/// One line of a text.
pub fn summary(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(MOST_OF_A_LINE).collect()
}

/// The reason.
pub(super) fn why(item: &Item, words: &QueryWords, call: Option<Call>, weighed: &Weighed) -> String {
    let mut reasons = Vec::new();
    match call {
        Some(Call::Exact) => reasons.push("its name".to_owned()),
        Some(Call::Slip | Call::RunOn | Call::Slips) => reasons.push("its name, nearly".to_owned()),
        Some(Call::Beginning) => reasons.push("its name begins so".to_owned()),
        Some(Call::Whole) => reasons.push("a word of its name".to_owned()),
        Some(Call::Word) => reasons.push("a word of its name begins so".to_owned()),
        None => {}
    }
    for (field, texts) in fields(item) {
        let own = words_of(&texts);
        let shown = |word: &QueryWord| format!("`{}`", word.written.to_lowercase());
        let met = words.words.iter().filter(|word| own.contains(&word.text)).take(MOST_NAMED);
        let met: Vec<String> = met.map(shown).collect();
        if !met.is_empty() {
            reasons.push(format!("{} in its {field}", met.join(", ")));
        }
    }
    if weighed.likeness > 0.0 {
        reasons.push(format!("{:.2} alike in meaning", weighed.likeness));
    }
    if weighed.usage > 0.0 {
        reasons.push("often used".to_owned());
    }
    if reasons.is_empty() { "nothing nearer was found".to_owned() } else { reasons.join("; ") }
}

fn fields(item: &Item) -> [(&'static str, String); 5] {
    let parameters = item.parameters.iter().map(|(name, meaning)| format!("{name} {meaning}"));
    [
        ("name", item.names().collect::<Vec<_>>().join(" ")),
        ("description", item.description.clone()),
        ("parameters", parameters.collect::<Vec<_>>().join(" ")),
        ("tags", item.tags.join(" ")),
        ("text", item.body.clone()),
    ]
}
