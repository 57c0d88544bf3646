//! Which items a query means: exact names first, then beginnings of names, then words.

use std::sync::Arc;

use super::entry::Entry;

/// An item that was found.
pub(crate) struct Hit {
    pub entry: Arc<Entry>,
    /// Between 0 and 1.
    pub score: f64,
    /// Why it was found.
    pub why: String,
}

/// The best of these for a query, best first. An empty query means everything, by name.
pub(crate) fn rank<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, query: &str, limit: usize) -> Vec<Hit> {
    let query = query.trim().to_lowercase();
    let words: Vec<&str> =
        query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut hits: Vec<Hit> = entries
        .filter_map(|entry| {
            let (score, why) = weigh(entry, &query, &words)?;
            Some(Hit { entry: Arc::clone(entry), score, why })
        })
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.entry.id.cmp(&b.entry.id)));
    hits.truncate(limit);
    hits
}

fn weigh(entry: &Entry, query: &str, words: &[&str]) -> Option<(f64, String)> {
    let id = entry.id.to_lowercase();
    if query.is_empty() {
        return Some((0.0, "everything was asked for".to_owned()));
    }
    if id == query {
        return Some((1.0, "its name".to_owned()));
    }
    if id.starts_with(query) {
        return Some((0.9, "its name begins so".to_owned()));
    }
    let (mut sum, mut met) = (0.0, Vec::new());
    for word in words {
        let best = fields(entry)
            .into_iter()
            .filter_map(|(name, weight, text)| Some((weight * fit(&text.to_lowercase(), word)?, name)))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((weight, name)) = best {
            sum += weight;
            met.push(format!("`{word}` in its {name}"));
        }
    }
    if met.is_empty() {
        return None;
    }
    // All words count: what meets only some of them comes later.
    #[expect(clippy::cast_precision_loss, reason = "a query has few words")]
    let score = 0.85 * sum / words.len() as f64;
    Some(((score * 1000.0).round() / 1000.0, met.join(", ")))
}

fn fields(entry: &Entry) -> [(&'static str, f64, String); 5] {
    [
        ("name", 1.0, entry.id.clone()),
        ("tags", 0.8, entry.tags.join(" ")),
        ("description", 0.6, entry.description.clone()),
        ("parameters", 0.4, entry.parameters.join(" ")),
        ("category", 0.4, entry.category.clone()),
    ]
}

/// How well a word is met: as a word, as the beginning of one, or inside one.
fn fit(text: &str, word: &str) -> Option<f64> {
    let mut parts = text.split(|c: char| !c.is_alphanumeric());
    if parts.clone().any(|part| part == word) {
        return Some(1.0);
    }
    if parts.any(|part| part.starts_with(word)) {
        return Some(0.8);
    }
    (word.len() > 2 && text.contains(word)).then_some(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::entry::{Kind, Source};
    use kiwi_model::{Digest, Space};
    use kiwi_space::{TextItem, TextKind};

    fn entry(id: &str, description: &str, tags: &[&str], parameters: &[&str]) -> Arc<Entry> {
        let text = TextItem {
            kind: TextKind::Knowledge,
            id: id.into(),
            version: None,
            title: None,
            description: None,
            category: String::new(),
            tags: vec![],
            inputs: vec![],
            metadata: serde_json::Map::new(),
            space: Space::Project,
            path: String::new(),
            sha256: Digest::of(b""),
            text: String::new(),
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Arc::new(Entry {
            kind: Kind::Tool,
            id: id.into(),
            version: None,
            description: description.into(),
            signature: String::new(),
            parameters: words(parameters),
            tags: words(tags),
            category: String::new(),
            space: Space::Project,
            source: Source::Text(Arc::new(text)),
        })
    }

    #[test]
    fn names_come_before_words() {
        let all = [
            entry("csv", "anything", &[], &[]),
            entry("csv.read", "Read", &[], &[]),
            entry("table", "Turns csv into tables", &[], &[]),
            entry("sheet", "Sheets", &["csv"], &[]),
            entry("load", "Loads", &[], &["csv"]),
            entry("other", "Nothing of the kind", &[], &[]),
        ];
        let found: Vec<String> =
            rank(all.iter(), "CSV", 10).into_iter().map(|hit| hit.entry.id.clone()).collect();
        assert_eq!(found, ["csv", "csv.read", "sheet", "table", "load"]);
        assert_eq!(rank(all.iter(), "csv", 2).len(), 2);
        assert_eq!(rank(all.iter(), "", 10).len(), 6);
        assert!(rank(all.iter(), "zebra", 10).is_empty());
        let both: Vec<String> =
            rank(all.iter(), "read csv", 10).into_iter().map(|hit| hit.entry.id.clone()).collect();
        assert_eq!(both.first().map(String::as_str), Some("csv.read"));
    }
}
