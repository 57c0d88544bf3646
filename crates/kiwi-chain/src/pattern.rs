//! Patterns that a small engine understands.
//!
//! The one that understands all of them takes longer to get ready than everything else that a call is planned with. Most
//! patterns of manifests are characters, sets and repetitions, which mean the same to both.

use jsonschema::{Keyword, ValidationError};
use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;
use std::collections::HashMap;

/// Longer ones are left to the large engine.
const LONGEST: usize = 256;

/// The patterns of a schema by their text, if all of them are plain.
pub(crate) fn plain_patterns(schema: &Value) -> Option<HashMap<String, Regex>> {
    let mut found = HashMap::new();
    gather(schema, &mut found)?;
    Some(found)
}

fn gather(schema: &Value, found: &mut HashMap<String, Regex>) -> Option<()> {
    match schema {
        Value::Object(members) => members.iter().try_for_each(|(name, value)| match value {
            Value::String(text) if name == "pattern" => {
                let regex = is_plain(text).then(|| RegexBuilder::new(text).size_limit(1 << 20).build())?;
                found.insert(text.clone(), regex.ok()?);
                Some(())
            }
            other => gather(other, found),
        }),
        Value::Array(items) => items.iter().try_for_each(|item| gather(item, found)),
        _ => Some(()),
    }
}

/// Whether every engine understands the same by it: no group but for order, no class by name, no set in a set, no number of
/// times.
fn is_plain(text: &str) -> bool {
    let mut is_in_set = false;
    let mut before = ' ';
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let is_good = match c {
            '\\' => chars.next().is_some_and(|escaped| escaped.is_ascii_punctuation()),
            '[' => !std::mem::replace(&mut is_in_set, true),
            ']' => std::mem::replace(&mut is_in_set, false) && before != '[' && before != '^',
            '{' | '}' => false,
            '?' => before != '(',
            '&' | '~' | '-' => c != before,
            other => other.is_ascii_alphanumeric() || other.is_ascii_punctuation() || other == ' ',
        };
        if !is_good {
            return false;
        }
        before = c;
    }
    text.len() <= LONGEST
}

/// A plain pattern as a keyword of a schema.
pub(crate) struct Pattern {
    pub text: String,
    pub regex: Regex,
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("{instance} does not match \"{}\"", self.text)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.regex.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Caches, complaints};
    use serde_json::json;

    #[test]
    fn what_engines_could_understand_differently_is_not_plain() {
        for text in [
            "^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*$",
            "\\.(sh|bash)$",
            "^(/.*)?$",
            "",
            "a b",
            "[^a-z_-]+",
            "^\\{x\\}$",
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "\\d",
            "\\s",
            "\\w",
            "\\b",
            "\\u0041",
            "\\p{L}",
            "\\n",
            "\\",
            "a{2}",
            "(?=a)",
            "(?i)a",
            "(?:a)",
            "[[:alpha:]]",
            "[a&&b]",
            "[a--b]",
            "[a~~b]",
            "[]a]",
            "[^]a]",
            "é",
            "[a[b]]",
            "a]",
        ] {
            assert!(!is_plain(text), "{text}");
        }
        assert!(!is_plain(&"a".repeat(LONGEST + 1)));
        assert!(plain_patterns(&json!({"a": [{"pattern": "x"}, {"pattern": "\\d"}]})).is_none());
        assert!(
            plain_patterns(&json!({"pattern": "(a"})).is_none(),
            "what is no pattern is for the large engine to say"
        );
        assert_eq!(plain_patterns(&json!({"properties": {"pattern": {"pattern": "x"}}})).unwrap().len(), 1);
    }

    #[test]
    fn both_engines_say_the_same() {
        let texts = [
            "", "a", "ab", "a.b", "A", "a_1.b-2", "x.sh", "x.bash", "x.sh\n", "\n", "/", "/a\nb", "{x}", "é",
            "a b", "-", "^",
        ];
        for pattern in [
            "^[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)*$",
            "\\.(sh|bash)$",
            "^(/.*)?$",
            "^[^a-z_-]+$",
            "^\\{x\\}$",
            "a|^$",
            "b+?$",
            "",
        ] {
            let schema = json!({"properties": {"p": {"pattern": pattern}}});
            let small = Caches::default().compile(&schema).unwrap();
            let large = jsonschema::validator_for(&schema).unwrap();
            for text in texts {
                let instance = json!({"p": text});
                let told = |validator| {
                    complaints(validator, &instance).iter().map(ToString::to_string).collect::<Vec<_>>()
                };
                assert_eq!(told(&small), told(&large), "{pattern} {text}");
                assert_eq!(small.is_valid(&instance), large.is_valid(&instance), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in ["(a", "[a", "*", "a{2,1}", "(?<a", "\\p{nobody}"] {
            assert!(Caches::default().compile(&json!({"pattern": pattern})).is_err(), "{pattern}");
        }
    }
}
