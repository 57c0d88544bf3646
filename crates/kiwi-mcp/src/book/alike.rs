//! Whether a tool that came is one that went, under another name.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::definition::Definition;

/// The share of words that two definitions must have in common.
const ALIKE: f64 = 0.6;

/// The same of their descriptions alone: many tools take the same parameters.
const SAID_ALIKE: f64 = 0.3;

/// What is compared of a definition: its words, without its name.
pub(super) struct Likeness {
    all: BTreeSet<String>,
    description: BTreeSet<String>,
}

impl Likeness {
    pub(super) fn of(definition: &Definition) -> Self {
        let mut document = definition.document();
        if let Value::Object(map) = &mut document {
            map.remove("name");
            map.remove("title");
        }
        let description = words(definition.description.as_deref().unwrap_or_default());
        Self { all: words(&document.to_string()), description }
    }

    fn to(&self, other: &Self) -> Option<f64> {
        let is_said = share(&self.description, &other.description) >= SAID_ALIKE;
        Some(share(&self.all, &other.all)).filter(|share| is_said && *share >= ALIKE)
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// How many of their words two texts have in common.
fn share(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    #[expect(clippy::cast_precision_loss, reason = "a share of some hundred words")]
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}

/// The one of these that a definition is most like, if it is like any.
pub(super) fn most_alike<'a, T>(definition: &Definition, gone: &'a [(T, Likeness)]) -> Option<&'a T> {
    if gone.is_empty() {
        return None;
    }
    let own = Likeness::of(definition);
    let rated = gone.iter().filter_map(|(what, likeness)| Some((what, own.to(likeness)?)));
    rated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(what, _)| what)
}
