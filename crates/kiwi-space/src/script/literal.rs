//! Python literals, evaluated without Python.

use kiwi_model::ManifestError;
use kiwi_model::yaml::Place;
use serde_json::{Map, Number, Value};
use tree_sitter::Node;

use super::strings;

const MAX_DEPTH: usize = 64;

/// Evaluates literals of one file.
pub(super) struct Literals<'a> {
    pub(super) file: &'a str,
    pub(super) bytes: &'a [u8],
}

impl Literals<'_> {
    /// The value of a literal.
    pub(super) fn value(&self, node: Node<'_>) -> Result<Value, ManifestError> {
        self.at_depth(node, 0)
    }

    fn at_depth(&self, node: Node<'_>, depth: usize) -> Result<Value, ManifestError> {
        if depth > MAX_DEPTH {
            return Err(self.error(node, "the value is nested too deeply"));
        }
        if node.is_error() || node.is_missing() {
            return Err(self.error(node, "this cannot be read as Python"));
        }
        match node.kind() {
            "none" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "integer" => self.integer(node, false),
            "float" => self.float(node, false),
            "string" => self.string(node).map(Value::String),
            "concatenated_string" => {
                let mut text = String::new();
                for part in parts(node) {
                    text.push_str(&self.string(part)?);
                }
                Ok(Value::String(text))
            }
            "parenthesized_expression" => match parts(node).as_slice() {
                [inner] => self.at_depth(*inner, depth + 1),
                _ => Err(self.not_literal(node)),
            },
            "unary_operator" => self.negative(node),
            "list" | "tuple" | "expression_list" => parts(node)
                .into_iter()
                .map(|part| self.at_depth(part, depth + 1))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            "dictionary" => self.dictionary(node, depth),
            _ => Err(self.not_literal(node)),
        }
    }

    fn dictionary(&self, node: Node<'_>, depth: usize) -> Result<Value, ManifestError> {
        let mut map = Map::new();
        for pair in parts(node) {
            let (Some(key), Some(value)) =
                (pair.child_by_field_name("key"), pair.child_by_field_name("value"))
            else {
                return Err(self.not_literal(pair));
            };
            let Value::String(name) = self.at_depth(key, depth + 1)? else {
                return Err(self.error(key, "a key must be a string"));
            };
            if map.contains_key(&name) {
                return Err(self.error(key, format!("the key `{}` is given twice", name.escape_debug())));
            }
            map.insert(name, self.at_depth(value, depth + 1)?);
        }
        Ok(Value::Object(map))
    }

    fn negative(&self, node: Node<'_>) -> Result<Value, ManifestError> {
        let is_minus = node.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "-");
        match node.child_by_field_name("argument") {
            Some(number) if is_minus && number.kind() == "integer" => self.integer(number, true),
            Some(number) if is_minus && number.kind() == "float" => self.float(number, true),
            _ => Err(self.not_literal(node)),
        }
    }

    fn integer(&self, node: Node<'_>, negative: bool) -> Result<Value, ManifestError> {
        let text = self.text(node)?.replace('_', "").to_ascii_lowercase();
        let (digits, radix) = match text.get(..2) {
            Some("0x") => (text.get(2..), 16),
            Some("0o") => (text.get(2..), 8),
            Some("0b") => (text.get(2..), 2),
            _ => (Some(text.as_str()), 10),
        };
        if radix == 10 && text.ends_with(['j', 'l']) {
            return Err(self.not_literal(node));
        }
        if radix == 10 && text.starts_with('0') && text.bytes().any(|digit| digit != b'0') {
            return Err(self.error(node, format!("`{text}` is not a number in Python")));
        }
        let number = digits.and_then(|digits| i64::from_str_radix(digits, radix).ok());
        match number {
            Some(number) => Ok(Value::from(if negative { -number } else { number })),
            None => Err(self.error(node, format!("the integer {text} is outside ±(2^63−1)"))),
        }
    }

    fn float(&self, node: Node<'_>, negative: bool) -> Result<Value, ManifestError> {
        let text = self.text(node)?.replace('_', "");
        if text.ends_with(['j', 'J']) {
            return Err(self.not_literal(node));
        }
        let number = text.parse::<f64>().ok().map(|number| if negative { -number } else { number });
        match number.and_then(Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(self.error(node, format!("the number {text} is not finite"))),
        }
    }

    fn string(&self, node: Node<'_>) -> Result<String, ManifestError> {
        if node.kind() != "string" {
            return Err(self.not_literal(node));
        }
        strings::value(self.text(node)?).map_err(|why| self.error(node, why))
    }

    fn text(&self, node: Node<'_>) -> Result<&str, ManifestError> {
        node.utf8_text(self.bytes).map_err(|_| self.error(node, "this is not UTF-8 text"))
    }

    fn not_literal(&self, node: Node<'_>) -> ManifestError {
        let mut error = self.error(node, "this is not a plain literal; metadata is read, not run");
        if let Some(problem) = error.problems.first_mut() {
            problem.hint = Some("write the value out, or give the tool a folder with a `tool.yaml`".into());
        }
        error
    }

    pub(super) fn error(&self, node: Node<'_>, message: impl Into<String>) -> ManifestError {
        ManifestError::one(self.file, message, None, self.place(node))
    }

    /// Lines and columns from 1, columns in characters.
    pub(super) fn place(&self, node: Node<'_>) -> Place {
        let point = node.start_position();
        let start = node.start_byte();
        let before = self.bytes.get(start.saturating_sub(point.column)..start).unwrap_or_default();
        Place { line: point.row + 1, column: String::from_utf8_lossy(before).chars().count() + 1 }
    }
}

/// The parts of a literal, without the comments between them.
fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk())
        .filter(|child| child.kind() != "comment" && child.kind() != "line_continuation")
        .collect()
}
