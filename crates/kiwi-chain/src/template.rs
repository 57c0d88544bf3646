//! Templates: `${NAME}`, `{name}`, `{{` and `}}`, in one pass. What is inserted is never looked at again.

use kiwi_model::{Piece, Text};
use serde_json::Value;

/// What a name stands for.
pub(crate) enum Insert {
    /// A parameter's value.
    Value(Value),
    /// Something only known at launch.
    Piece(Piece),
}

/// Answers for names.
pub(crate) trait Names {
    /// The error of an unknown or unusable name.
    type Error;
    /// `${name}`.
    fn environment(&self, name: &str) -> Result<String, Self::Error>;
    /// `{name}`.
    fn insert(&self, name: &str) -> Result<Insert, Self::Error>;
    /// A brace that starts or ends nothing.
    fn stray(&self, template: &str) -> Self::Error;
}

/// A rendered string: text, or the one value it consists of, with its type kept.
pub(crate) enum Rendered {
    Text(Text),
    Value(Value),
}

/// Renders one string.
pub(crate) fn render<N: Names>(template: &str, names: &N) -> Result<Rendered, N::Error> {
    let mut pieces = Pieces::default();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}', '$']) {
        let (before, from) = rest.split_at(at);
        pieces.text(before);
        if let Some(after) = from.strip_prefix("{{") {
            pieces.text("{");
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            pieces.text("}");
            rest = after;
        } else if let Some(after) = from.strip_prefix("${") {
            let (name, after) = name(after).ok_or_else(|| names.stray(template))?;
            pieces.text(&names.environment(name)?);
            rest = after;
        } else if let Some(after) = from.strip_prefix('$') {
            pieces.text("$");
            rest = after;
        } else if let Some(after) = from.strip_prefix('{') {
            let (name, after) = name(after).ok_or_else(|| names.stray(template))?;
            match names.insert(name)? {
                Insert::Value(value) if after.is_empty() && pieces.is_empty() => {
                    return Ok(Rendered::Value(value));
                }
                Insert::Value(value) => pieces.text(&as_text(&value)),
                Insert::Piece(piece) => pieces.0.push(piece),
            }
            rest = after;
        } else {
            return Err(names.stray(template));
        }
    }
    pieces.text(rest);
    Ok(Rendered::Text(Text(pieces.0)))
}

/// A value inside a longer text: strings as they are, the rest as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The name that a template consists of, if it is `{name}` and nothing else.
pub(crate) fn alone(template: &str) -> Option<&str> {
    let (name, after) = name(template.strip_prefix('{')?)?;
    after.is_empty().then_some(name)
}

fn name(after: &str) -> Option<(&str, &str)> {
    let (name, after) = after.split_once('}')?;
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let good =
        starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    good.then_some((name, after))
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Literal(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.0.push(Piece::Literal(text.to_owned())),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
