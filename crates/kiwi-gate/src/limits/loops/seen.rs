//! A call as the brake remembers it.

use kiwi_model::{Digest, canonical_object};
use serde_json::{Map, Value, json};

/// Of longer parameters the beginning and the end are remembered, this much in all.
const MOST_TEXT: usize = 8192;
/// Values inside parameters that are looked at one by one.
const MOST_LEAVES: usize = 256;

/// How a call ended: the digest of what it gave, or of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending(pub(super) Result<Digest, Digest>);

#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub turn: u64,
    pub tool: String,
    /// Equal for equal calls.
    pub digest: Digest,
    /// How large the parameters are.
    pub size: usize,
    /// Their canonical text, or its two ends.
    pub text: String,
    /// The values in them, by where they are.
    pub leaves: Vec<(String, Leaf)>,
    pub mutates: bool,
    pub ending: Option<Ending>,
    pub is_denied: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Leaf {
    Number(f64),
    Text(String),
    Other(bool),
}

impl Seen {
    pub fn new(tool: &str, params: &Map<String, Value>, mutates: bool) -> Self {
        // What has no canonical form cannot run either; its plain form tells such calls apart as well.
        let text = canonical_object(params).unwrap_or_else(|_| json!(params).to_string());
        let digest = Digest::of(format!("{tool}\0{text}").as_bytes());
        let mut leaves = Vec::new();
        if text.len() <= MOST_TEXT {
            gather_object(params, &mut String::new(), &mut leaves);
        }
        let size = text.len();
        let text = if size > MOST_TEXT { ends(&text) } else { text };
        Self {
            turn: 0,
            tool: tool.to_owned(),
            digest,
            size,
            text,
            leaves,
            mutates,
            ending: None,
            is_denied: false,
        }
    }
}

/// The canonical form is ASCII, so that bytes are characters.
fn ends(text: &str) -> String {
    let half = MOST_TEXT / 2;
    let head = text.get(..half).unwrap_or_default();
    let tail = text.get(text.len().saturating_sub(half)..).unwrap_or_default();
    format!("{head}{tail}")
}

fn gather_object(map: &Map<String, Value>, path: &mut String, leaves: &mut Vec<(String, Leaf)>) {
    let length = path.len();
    for (name, item) in map {
        path.push('/');
        path.push_str(name);
        gather(item, path, leaves);
        path.truncate(length);
    }
}

fn gather(value: &Value, path: &mut String, leaves: &mut Vec<(String, Leaf)>) {
    if leaves.len() >= MOST_LEAVES {
        return;
    }
    let length = path.len();
    match value {
        Value::Object(map) => gather_object(map, path, leaves),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                path.push('/');
                path.push_str(&number.to_string());
                gather(item, path, leaves);
                path.truncate(length);
            }
        }
        Value::String(text) => leaves.push((path.clone(), Leaf::Text(text.clone()))),
        Value::Number(number) => leaves.push((path.clone(), Leaf::Number(number.as_f64().unwrap_or(0.0)))),
        Value::Bool(flag) => leaves.push((path.clone(), Leaf::Other(*flag))),
        Value::Null => {}
    }
}
