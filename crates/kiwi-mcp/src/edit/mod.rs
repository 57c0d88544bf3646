//! One entry put into or taken out of a file that belongs to somebody else.
//!
//! Comments, order and spacing of everything else stay as they are: the text is edited where the entry stands, and read
//! again afterwards. Where the result does not say exactly what was meant, nothing is changed.

mod jsonc;
mod order;
mod outline;
#[cfg(test)]
mod tests;
mod toml;
mod unified;
mod yaml;

use serde_json::{Map, Value};

pub use unified::unified;

/// The language a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas where somebody wrote them.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// Why a file cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub(crate) struct Problem {
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column, from 1, in characters.
    pub(crate) column: usize,
    /// What is wrong.
    pub(crate) message: String,
}

impl Problem {
    /// A problem at a byte of a text.
    fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, message: message.into() }
    }
}

impl Format {
    /// What a text says. One that says nothing is an empty map.
    pub(crate) fn read(self, text: &str) -> Result<Value, Problem> {
        match self {
            Self::Json => jsonc::read(text),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }

    /// The text with an entry under the map at `path`, which is made where it is missing. An entry of that name is
    /// replaced.
    pub(crate) fn insert(
        self,
        text: &str,
        path: &[&str],
        key: &str,
        value: &Value,
    ) -> Result<String, Problem> {
        let mut expected = self.read(text)?;
        if at(&expected, path).is_some_and(|map| map.get(key) == Some(value)) {
            return Ok(text.to_owned());
        }
        put(&mut expected, path, key, value.clone()).map_err(|message| Problem::at(text, 0, message))?;
        let edited = match self {
            Self::Json => jsonc::insert(text, path, key, value)?,
            Self::Toml => toml::insert(text, path, key, value)?,
            Self::Yaml => yaml::insert(text, path, key, value)?,
        };
        self.held_to(text, edited, &expected)
    }

    /// The text without an entry of the map at `path`. One that is not there is removed already.
    pub(crate) fn remove(self, text: &str, path: &[&str], key: &str) -> Result<String, Problem> {
        let mut expected = self.read(text)?;
        let mut map = Some(&mut expected);
        for name in path {
            map = map.and_then(|map| map.get_mut(*name));
        }
        if map.and_then(Value::as_object_mut).and_then(|map| map.remove(key)).is_none() {
            return Ok(text.to_owned());
        }
        let edited = match self {
            Self::Json => jsonc::remove(text, path, key)?,
            Self::Toml => toml::remove(text, path, key)?,
            Self::Yaml => yaml::remove(text, path, key)?,
        };
        self.held_to(text, edited, &expected)
    }

    /// An edited text, if it says what was meant and nothing else.
    fn held_to(self, before: &str, edited: String, expected: &Value) -> Result<String, Problem> {
        let edited = with_line_breaks_of(before, edited);
        let read = self.read(&edited)?;
        if simplified(&read) == simplified(expected) {
            Ok(edited)
        } else {
            Err(Problem::at(
                before,
                0,
                "the file is written in a way that cannot be changed safely; change it by hand",
            ))
        }
    }
}

/// A text whose lines end as those of another, where those all end alike.
fn with_line_breaks_of(before: &str, edited: String) -> String {
    let count = before.matches("\r\n").count();
    if count == 0 || before.matches('\n').count() != count {
        return edited;
    }
    edited.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The map at a path.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    path.iter().try_fold(value, |value, name| value.get(*name))?.as_object()
}

fn put(value: &mut Value, path: &[&str], key: &str, entry: Value) -> Result<(), String> {
    let mut map = value;
    let mut way = String::new();
    for name in path {
        let object = map.as_object_mut().ok_or_else(|| format!("`{way}` is no map"))?;
        map = object.entry(*name).or_insert(Value::Null);
        if map.is_null() {
            *map = Value::Object(Map::new());
        }
        way = if way.is_empty() { (*name).to_owned() } else { format!("{way}.{name}") };
    }
    let object = map.as_object_mut().ok_or_else(|| format!("`{way}` is no map"))?;
    object.insert(key.to_owned(), entry);
    Ok(())
}

/// An empty map that was emptied, nothing, and no map at all say the same.
fn simplified(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: Map<String, Value> = map
                .iter()
                .map(|(key, value)| (key.clone(), simplified(value)))
                .filter(|(_, value)| !value.is_null())
                .collect();
            if map.is_empty() { Value::Null } else { Value::Object(map) }
        }
        Value::Array(items) => Value::Array(items.iter().map(simplified).collect()),
        other => other.clone(),
    }
}
