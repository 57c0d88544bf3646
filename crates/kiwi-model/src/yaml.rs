//! Strict YAML: a document whose value is beyond doubt, with the place of every node.
//!
//! Anchors, aliases, merge keys, tags, directives, duplicate keys and several documents in one file are errors. So are
//! plain scalars that YAML 1.1, YAML 1.2 and people read differently (`010`, `0x1F`, `1_000`, `12:30:45`, `1e3`, `.5`):
//! a manifest is hashed, so two readers must never see two values.

use granit_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// A manifest larger than this is not a manifest.
pub const MAX_BYTES: usize = 1 << 20;
const MAX_DEPTH: usize = 64;
const MAX_NODES: usize = 100_000;

/// A place in a file, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

/// Why a text is not a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where.
    pub place: Place,
}

/// A document: its value, and its text, which is read again when somebody asks where a node stands.
///
/// Only errors ask, so reading well-formed documents does not pay for remembering places.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub value: Value,
    text: String,
}

impl Document {
    /// A document that was not read from YAML (a virtual manifest); every node stands at the top.
    pub fn synthetic(value: Value) -> Self {
        Self { value, text: String::new() }
    }

    /// A document whose value is known already: it must be what [`parse`] gives for `text`.
    pub fn known(value: Value, text: &str) -> Self {
        Self { value, text: text.to_owned() }
    }

    /// The place of the node at a JSON pointer, or of the nearest node around it.
    pub fn place(&self, pointer: &str) -> Place {
        let mut loader = Loader::new(&self.text, Some(HashMap::new()));
        // It was read once, so it can be read again; and if not, the places found so far still serve.
        let _ = loader.document();
        let places = loader.places.unwrap_or_default();
        let mut pointer = pointer;
        loop {
            if let Some(place) = places.get(pointer) {
                return *place;
            }
            match pointer.rsplit_once('/') {
                Some((parent, _)) => pointer = parent,
                None => return TOP,
            }
        }
    }
}

const TOP: Place = Place { line: 1, column: 1 };

/// Reads one strict document.
pub fn parse(bytes: &[u8]) -> Result<Document, YamlError> {
    if bytes.len() > MAX_BYTES {
        return Err(error(
            TOP,
            format!("the file has {} bytes; a document may have {MAX_BYTES}", bytes.len()),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = bytes.get(..e.valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        error(Place { line, column: 1 }, "the file is not UTF-8 text")
    })?;
    let value = Loader::new(text, None).document()?;
    Ok(Document { value, text: text.to_owned() })
}

struct Loader<'a> {
    events: Parser<'a, StrInput<'a>>,
    pointer: String,
    /// Where each node stands, if that is wanted.
    places: Option<HashMap<String, Place>>,
    nodes: usize,
}

impl<'a> Loader<'a> {
    fn new(text: &'a str, places: Option<HashMap<String, Place>>) -> Self {
        let options = granit_parser::options! { disallow_directives: true, flow_nesting_limit: 64, block_nesting_limit: 64 };
        let events = Parser::new_from_str_with_options(text, options);
        Self { events, pointer: String::new(), places, nodes: 0 }
    }

    fn next(&mut self) -> Result<(Event<'a>, Place), YamlError> {
        match self.events.next() {
            Some(Ok((event, span))) => {
                Ok((event, Place { line: span.start.line(), column: span.start.col() + 1 }))
            }
            Some(Err(scan)) => {
                let marker = scan.marker();
                Err(error(Place { line: marker.line(), column: marker.col() + 1 }, scan.info()))
            }
            None => Err(error(Place { line: 1, column: 1 }, "the document ends too early")),
        }
    }

    fn document(&mut self) -> Result<Value, YamlError> {
        let mut root = None;
        loop {
            let (event, place) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(
                        error(place, "a second document starts here").hint("keep one document per file")
                    );
                }
                Event::DocumentStart(..) => {
                    let (event, place) = self.next()?;
                    root = Some(self.node(event, place, 0)?);
                }
                Event::StreamEnd => return root.ok_or_else(|| error(place, "the file is empty")),
                _ => return Err(error(place, "unexpected content after the document")),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, place: Place, depth: usize) -> Result<Value, YamlError> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(error(place, "the document is nested too deeply or has too many nodes"));
        }
        if let Some(places) = &mut self.places {
            places.insert(self.pointer.clone(), place);
        }
        match event {
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(no_anchors(place)),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                Err(no_anchors(place))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => Err(error(place, "tags are not allowed here")
                .hint("leave the `!…` out; quote the value if a string is meant")),
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text, place),
            Event::Scalar(text, ..) => Ok(Value::String(text.into_owned())),
            Event::SequenceStart(..) => self.sequence(depth),
            Event::MappingStart(..) => self.mapping(depth),
            _ => Err(error(place, "unexpected structure")),
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut items = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok(Value::Array(items));
            }
            let item = self.below(&items.len().to_string(), |loader| loader.node(event, place, depth + 1))?;
            items.push(item);
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, YamlError> {
        let mut map = Map::new();
        loop {
            let (event, place) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Value::Object(map)),
                Event::Scalar(_, _, anchor, _) if anchor != 0 => return Err(no_anchors(place)),
                Event::Scalar(key, ScalarStyle::Plain, _, None) if key == "<<" => {
                    return Err(error(place, "merge keys (`<<`) are not allowed").hint("write the keys out"));
                }
                Event::Scalar(key, ScalarStyle::Plain, _, None) => match plain(&key, place)? {
                    Value::String(key) => key,
                    other => {
                        return Err(error(place, format!("the key `{other}` is not a string"))
                            .hint(format!("write it as \"{key}\"")));
                    }
                },
                Event::Scalar(key, _, _, None) => key.into_owned(),
                _ => return Err(error(place, "a key must be a plain string")),
            };
            if map.contains_key(&key) {
                return Err(error(place, format!("the key `{key}` is given twice")));
            }
            let (event, place) = self.next()?;
            let value = self.below(&key, |loader| loader.node(event, place, depth + 1))?;
            map.insert(key, value);
        }
    }

    fn below<T>(&mut self, token: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.places.is_none() {
            return read(self);
        }
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let result = read(self);
        self.pointer.truncate(before);
        result
    }
}

/// What a plain scalar is: only forms that every reader reads alike are anything but a string.
fn plain(text: &str, place: Place) -> Result<Value, YamlError> {
    match text {
        "" | "~" | "null" => return Ok(Value::Null),
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if is_integer(unsigned) && !text.starts_with('+') {
        return match text.parse::<i64>() {
            Ok(integer) if integer != i64::MIN && text != "-0" => Ok(Value::from(integer)),
            _ => Err(error(place, format!("the integer {text} is outside ±(2^63−1)"))
                .hint("quote it if a string is meant")),
        };
    }
    if is_float(unsigned) && !text.starts_with('+') {
        return match text.parse::<f64>().ok().and_then(Number::from_f64) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(error(place, format!("the number {text} is not finite"))),
        };
    }
    if is_ambiguous(text, unsigned) {
        return Err(error(place, format!("`{text}` is ambiguous: readers disagree whether it is a number"))
            .hint(format!("write \"{text}\" for a string, or the number in plain decimal digits")));
    }
    Ok(Value::String(text.to_owned()))
}

fn is_integer(text: &str) -> bool {
    text == "0" || (!text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
}

/// `1.5`, `1.5e3`, `1.5e-3`: digits on both sides of the point.
fn is_float(text: &str) -> bool {
    let Some((whole, rest)) = text.split_once('.') else { return false };
    let (fraction, exponent) = rest.split_once(['e', 'E']).map_or((rest, None), |(f, e)| (f, Some(e)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_integer(whole)
        && digits(fraction)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

/// Looks like a number to some reader of YAML 1.1 or 1.2, and is none of the plain forms.
fn is_ambiguous(text: &str, unsigned: &str) -> bool {
    let lower = unsigned.to_ascii_lowercase();
    if matches!(lower.as_str(), ".inf" | ".nan" | "null")
        || matches!(text, "True" | "TRUE" | "False" | "FALSE")
    {
        return true;
    }
    if let Some(radix) = lower.strip_prefix("0x").or(lower.strip_prefix("0o")).or(lower.strip_prefix("0b")) {
        return !radix.is_empty() && radix.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_');
    }
    if unsigned.contains(':') {
        // Sexagesimal: 12:30, 12:30:45, 1:30.5
        let last = unsigned.rsplit(':').next().unwrap_or_default();
        return unsigned
            .split(':')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
            && last.bytes().filter(|b| *b == b'.').count() <= 1;
    }
    let (mantissa, exponent) = lower.split_once('e').map_or((lower.as_str(), None), |(m, e)| (m, Some(e)));
    let has_digit = mantissa.bytes().any(|b| b.is_ascii_digit());
    has_digit
        && mantissa.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'_')
        && mantissa.bytes().filter(|b| *b == b'.').count() <= 1
        && !mantissa.starts_with('_')
        && exponent.is_none_or(|e| {
            let e = e.strip_prefix(['-', '+']).unwrap_or(e);
            !e.is_empty() && e.bytes().all(|b| b.is_ascii_digit())
        })
}

fn no_anchors(place: Place) -> YamlError {
    error(place, "anchors and aliases are not allowed").hint("write the value out where it is used")
}

fn error(place: Place, message: impl Into<String>) -> YamlError {
    YamlError { message: message.into(), hint: None, place }
}

impl YamlError {
    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expect: Result<Value, &str>) {
        let got = parse(text.as_bytes())
            .map(|d| d.value)
            .map_err(|e| format!("{}:{} {}", e.place.line, e.place.column, e.message));
        match (got, expect) {
            (Ok(got), Ok(expect)) => assert_eq!(got, expect),
            (Err(got), Err(expect)) => assert!(got.contains(expect), "{got} does not hold {expect}"),
            (got, expect) => panic!("{text:?}: got {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn plain_values() {
        check(
            "a: 1\nb: -2.50\nc: [x, 'y', \"z\"]\nd: {e: null, f: true}\ng: |\n  text\n",
            Ok(json!({"a": 1, "b": -2.5, "c": ["x", "y", "z"], "d": {"e": null, "f": true}, "g": "text\n"})),
        );
        check("a: 1.5e3\nb: 0\nc: -1\n", Ok(json!({"a": 1500.0, "b": 0, "c": -1})));
        check(
            "a: yes\nb: on\nc: No\nd: v1.2.3\ne: 1.2.3\nf: ^1.4\ng: a:b\nh: 2026-01-24\n",
            Ok(
                json!({"a": "yes", "b": "on", "c": "No", "d": "v1.2.3", "e": "1.2.3", "f": "^1.4", "g": "a:b", "h": "2026-01-24"}),
            ),
        );
    }

    #[test]
    fn ambiguous_scalars_are_errors_with_a_place() {
        for text in [
            "010", "0x1F", "0o17", "1_000", "12:30:45", "1e3", ".5", "1.", "+1", ".inf", "-.INF", ".nan",
            "True", "FALSE", "NULL", "0b11",
        ] {
            check(&format!("a:\n  key: {text}\n"), Err("2:8 "));
            check(&format!("a: \"{text}\"\n"), Ok(json!({"a": text})));
        }
    }

    #[test]
    fn what_hides_values_is_refused() {
        check("a: &x 1\nb: *x\n", Err("1:7 anchors"));
        check("a: 1\na: 2\n", Err("2:1 the key `a` is given twice"));
        check("a: {<<: {b: 1}}\n", Err("merge keys"));
        check("a: !!str 1\n", Err("tags"));
        check("a: 1\n---\nb: 2\n", Err("a second document"));
        check("", Err("empty"));
        check("1: x\n", Err("is not a string"));
        check("a: 99999999999999999999\n", Err("outside"));
        check("a: [1, 2\n", Err(""));
        assert!(parse(b"a: \xff\n").is_err());
        assert!(parse(&vec![b'a'; MAX_BYTES + 1]).is_err());
        check(&"[".repeat(100_000), Err(""));
    }

    #[test]
    fn places_are_found_by_pointer() {
        let document = parse(b"a:\n  b: [1, {c/d: 2}]\n").expect("document");
        assert_eq!(document.place("/a/b/1/c~1d"), Place { line: 2, column: 16 });
        assert_eq!(document.place("/a/b/1/nope"), Place { line: 2, column: 10 });
    }
}
