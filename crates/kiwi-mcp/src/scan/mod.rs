//! Whether what a server says about its tools is meant for the model rather than about the tool.
//!
//! A finding is no proof. It is a reason to let a person read before an agent does, so a pattern is here only if an
//! honest description hardly ever holds it. Every pattern looks at each character a bounded number of times.

mod hidden;
mod phrases;
#[cfg(test)]
mod tests;
mod words;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

use crate::definition::Definition;

/// A text that is longer than this hides something by its length alone.
const LONG: usize = 16_000;
/// Strings of one definition that are looked at; one with more is suspicious for that.
const MOST_TEXTS: usize = 20_000;
/// How much of a text a finding shows.
const EXCERPT: usize = 120;

/// What makes a text suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspicion {
    /// Characters that people do not see and models read.
    HiddenText,
    /// Sequences that move a terminal's cursor or change its colours.
    ControlCharacters,
    /// Orders to the model.
    Instructions,
    /// Getting at secrets, or sending data somewhere.
    Exfiltration,
    /// How other tools are to be used.
    Shadowing,
    /// Text that only a machine can read.
    EncodedText,
    /// More text than anybody reads.
    LongText,
}

impl Suspicion {
    /// What it means, for people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::HiddenText => "holds characters that nobody sees",
            Self::ControlCharacters => "holds control characters",
            Self::Instructions => "gives orders to the model",
            Self::Exfiltration => "asks for secrets, or to send data somewhere",
            Self::Shadowing => "says how other tools are to be used",
            Self::EncodedText => "holds encoded text",
            Self::LongText => "is longer than anybody reads",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub suspicion: Suspicion,
    /// In which text of the definition: `description`, `inputSchema.properties.path.description`, …
    pub place: String,
    /// The part of it, with what cannot be seen spelt out.
    pub excerpt: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` {}: {}", self.place, self.suspicion.sentence(), self.excerpt)
    }
}

/// What is suspicious about a definition. `own` are the names of its server's tools, `others` those of other servers'.
pub fn scan(definition: &Definition, own: &BTreeSet<&str>, others: &BTreeSet<&str>) -> Vec<Finding> {
    let mut scanner = Scanner { own, others, findings: Vec::new(), texts: 0 };
    for (place, text) in [("title", &definition.title), ("description", &definition.description)] {
        if let Some(text) = text {
            scanner.text(place, text);
        }
    }
    scanner.value("inputSchema", &definition.input_schema);
    if let Some(schema) = &definition.output_schema {
        scanner.value("outputSchema", schema);
    }
    for (key, value) in definition.annotations.iter().flatten() {
        scanner.text("annotations", key);
        scanner.value(&format!("annotations.{}", shown(key)), value);
    }
    scanner.findings
}

/// What is suspicious about a text that stands alone, such as a server's instructions.
pub fn scan_text(place: &str, text: &str) -> Vec<Finding> {
    let none = BTreeSet::new();
    let mut scanner = Scanner { own: &none, others: &none, findings: Vec::new(), texts: 0 };
    scanner.text(place, text);
    scanner.findings
}

struct Scanner<'a> {
    own: &'a BTreeSet<&'a str>,
    others: &'a BTreeSet<&'a str>,
    findings: Vec<Finding>,
    texts: usize,
}

impl Scanner<'_> {
    /// Every text in a schema, names of parameters included: the model reads them all.
    fn value(&mut self, place: &str, value: &Value) {
        let mut waiting = vec![(place.to_owned(), value)];
        while let Some((place, value)) = waiting.pop() {
            match value {
                Value::String(text) => self.text(&place, text),
                Value::Array(items) => {
                    waiting
                        .extend(items.iter().enumerate().map(|(at, item)| (format!("{place}.{at}"), item)));
                }
                Value::Object(map) => {
                    for (key, value) in map {
                        self.text(&place, key);
                        waiting.push((format!("{place}.{}", shown(key)), value));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
            if self.texts > MOST_TEXTS {
                self.found(Suspicion::LongText, &place, "more texts than are looked at");
                return;
            }
        }
    }

    fn text(&mut self, place: &str, text: &str) {
        self.texts += 1;
        if let Some(excerpt) = hidden::characters(text) {
            self.found(Suspicion::HiddenText, place, &excerpt);
        }
        if let Some(excerpt) = hidden::controls(text) {
            self.found(Suspicion::ControlCharacters, place, &excerpt);
        }
        if let Some(excerpt) = hidden::encoded(text) {
            self.found(Suspicion::EncodedText, place, excerpt);
        }
        if text.len() > LONG {
            self.found(Suspicion::LongText, place, &format!("{} bytes", text.len()));
        }
        if let Some(tag) = phrases::tag(text) {
            self.found(Suspicion::Instructions, place, tag);
        }
        let words = words::Words::of(text);
        for (suspicion, excerpt) in phrases::find(&words, self.own, self.others) {
            self.found(suspicion, place, &excerpt);
        }
    }

    fn found(&mut self, suspicion: Suspicion, place: &str, excerpt: &str) {
        // One of a kind in a place is enough to look at it.
        let is_known = self.findings.iter().any(|known| known.suspicion == suspicion && known.place == place);
        if !is_known && self.findings.len() < 100 {
            self.findings.push(Finding { suspicion, place: place.to_owned(), excerpt: shown(excerpt) });
        }
    }
}

/// A text as a person can see it, cut to what a person reads at a glance.
fn shown(text: &str) -> String {
    let is_seen = |c: char| !c.is_control() && !hidden::is_hidden(c);
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == EXCERPT {
            out.push('…');
            break;
        }
        if is_seen(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

/// A line as a person can see it: what has no shape is spelt out.
pub(crate) fn visible(text: &str) -> String {
    let is_seen = |c: char| c == '\t' || (!c.is_control() && !hidden::is_hidden(c));
    if text.chars().all(is_seen) {
        return text.to_owned();
    }
    let spelt = |c: char| if is_seen(c) { c.to_string() } else { c.escape_unicode().to_string() };
    text.chars().map(spelt).collect()
}
