//! YAML.

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, StructureStyle};
use kiwi_model::yaml as strict;
use serde_json::{Map, Value};
use std::fmt::Write as _;

use super::Problem;
use super::order::{one_line, ordered};
use super::outline::{Kind, Node, Pair, line_end, line_start, splice};
use crate::registry::says_nothing;

const MOST_DEPTH: usize = 64;
const STEP: usize = 2;

/// What a text says.
pub(super) fn read(text: &str) -> Result<Value, Problem> {
    Ok(parse(text)?.map_or_else(|| Value::Object(Map::new()), |node| node.value()))
}

/// The text with an entry in the map at `path`.
pub(super) fn insert(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, Problem> {
    // An entry that is replaced is written anew: what it said, and how, is over.
    let text = &remove(text, path, key)?;
    let Some(root) = parse(text)? else { return Ok(below(text, text.len(), 0, path, key, value)) };
    let mut map = &root;
    let mut column = 0;
    for (depth, name) in path.iter().enumerate() {
        let rest = path.get(depth + 1..).unwrap_or_default();
        let Some(pair) = map.get(name) else {
            return append(text, map, path.get(depth..).unwrap_or_default(), key, value, column);
        };
        column = column_of(text, pair.span.start) + STEP;
        let written = text.get(pair.value.span.clone()).unwrap_or_default();
        let is_bare = written.split_whitespace().collect::<String>() == "{}";
        match &pair.value.kind {
            Kind::Mapping { entries, .. } if !(entries.is_empty() && is_bare) => map = &pair.value,
            Kind::Mapping { .. } | Kind::Scalar(Value::Null) if !is_within_braces(map) => {
                let emptied = splice(text, pair.value.span.clone(), "");
                let emptied = match emptied.get(..pair.value.span.start) {
                    // No space is left behind where the value stood.
                    Some(before) if !written.is_empty() => [
                        before.trim_end_matches(' '),
                        emptied.get(pair.value.span.start..).unwrap_or_default(),
                    ]
                    .concat(),
                    _ => emptied,
                };
                let at = line_end(&emptied, pair.span.end);
                return Ok(below(&emptied, at, column, rest, key, value));
            }
            Kind::Mapping { .. } => map = &pair.value,
            _ => return Err(Problem::at(text, pair.span.start, format!("`{name}` is no map"))),
        }
    }
    append(text, map, &[], key, value, column)
}

/// The text without an entry of the map at `path`.
pub(super) fn remove(text: &str, path: &[&str], key: &str) -> Result<String, Problem> {
    let Some(root) = parse(text)? else { return Ok(text.to_owned()) };
    let map = path.iter().try_fold(&root, |map, name| map.get(name).map(|pair| &pair.value));
    let Some((map, pair)) = map.and_then(|map| Some((map, map.get(key)?))) else {
        return Ok(text.to_owned());
    };
    if !is_within_braces(map) {
        let end = entry_end(text, pair);
        let start = line_start(text, pair.span.start);
        if !text.get(start..pair.span.start).unwrap_or_default().trim().is_empty() {
            return Err(Problem::at(text, pair.span.start, "the entry does not stand on lines of its own"));
        }
        return Ok(splice(text, start..end, ""));
    }
    // With the comma behind it, or, for the last one, the one before it.
    let mut range = pair.span.start..pair.value.span.end.max(pair.span.end);
    let behind = text.get(range.end..).unwrap_or_default();
    let comma = behind.len() - behind.trim_start().len();
    if behind.trim_start().starts_with(',') {
        range.end += comma + 1;
        let behind = text.get(range.end..).unwrap_or_default();
        range.end += behind.len() - behind.trim_start_matches(' ').len();
    } else if let Some(before) = text.get(..range.start).map(str::trim_end)
        && before.ends_with(',')
    {
        range.start = before.len() - 1;
    }
    Ok(splice(text, range, ""))
}

/// One more entry at the end of a map; `path` leads to it from there, through maps that are not there yet.
fn append(
    text: &str,
    map: &Node,
    path: &[&str],
    key: &str,
    value: &Value,
    column: usize,
) -> Result<String, Problem> {
    let Kind::Mapping { entries, .. } = &map.kind else {
        return Err(Problem::at(text, map.span.start, "the file does not hold a map"));
    };
    if is_within_braces(map) {
        let inner = (key, value.clone());
        let entry = path.iter().rev().fold(inner, |(key, value), name| {
            (*name, Value::Object(Map::from_iter([(key.to_owned(), value)])))
        });
        let entry = format!("{}: {}", Value::from(entry.0), entry.1);
        return Ok(match entries.last() {
            Some(last) => {
                let at = last.value.span.end.max(last.span.end);
                splice(text, at..at, &format!(", {entry}"))
            }
            None => splice(text, map.span.start + 1..map.span.start + 1, &entry),
        });
    }
    let column = entries.first().map_or(column, |first| column_of(text, first.span.start));
    let at = entries.last().map_or(text.len(), |last| entry_end(text, last));
    Ok(below(text, at, column, path, key, value))
}

/// The text with an entry in lines of its own from a place on.
fn below(text: &str, at: usize, column: usize, path: &[&str], key: &str, value: &Value) -> String {
    let mut lines = String::new();
    if !text.get(..at).unwrap_or_default().is_empty() && !text.get(..at).unwrap_or_default().ends_with('\n') {
        lines.push('\n');
    }
    let mut column = column;
    for name in path {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{}{}:", " ".repeat(column), scalar(name));
        column += STEP;
    }
    block(&mut lines, column, key, value);
    splice(text, at..at, &lines)
}

/// Writes an entry by indentation.
fn block(out: &mut String, column: usize, key: &str, value: &Value) {
    let start = format!("{}{}:", " ".repeat(column), scalar(key));
    let _ = match value {
        Value::Object(map) if !map.is_empty() => {
            let _ = writeln!(out, "{start}");
            for (key, value) in ordered(map) {
                block(out, column + STEP, key, value);
            }
            return;
        }
        Value::String(text) => writeln!(out, "{start} {}", scalar(text)),
        Value::Array(items) if one_line(items).is_some() => {
            writeln!(out, "{start} {}", one_line(items).unwrap_or_default())
        }
        other => writeln!(out, "{start} {other}"),
    };
}

/// A text without quotes where nobody can read it as anything else.
fn scalar(text: &str) -> String {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_./-".contains(&b))
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'/' || b == b'.')
        && !matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off")
        && strict::parse(text.as_bytes()).is_ok_and(|document| document.value == text);
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

fn is_within_braces(map: &Node) -> bool {
    matches!(map.kind, Kind::Mapping { in_braces: true, .. })
}

fn column_of(text: &str, offset: usize) -> usize {
    offset - line_start(text, offset)
}

/// Behind the last line of an entry: lines that are indented further belong to it, blank ones at its end do not.
fn entry_end(text: &str, pair: &Pair) -> usize {
    let column = column_of(text, pair.span.start);
    let mut end = line_end(text, pair.span.end.max(pair.value.span.end).saturating_sub(1));
    let mut at = end;
    while at < text.len() {
        let next = line_end(text, at);
        let line = text.get(at..next).unwrap_or_default();
        let depth = line.len() - line.trim_start_matches(' ').len();
        if !line.trim().is_empty() {
            if depth <= column {
                break;
            }
            end = next;
        }
        at = next;
    }
    end
}

/// The tree of a text; none where there is nothing in it.
fn parse(text: &str) -> Result<Option<Node>, Problem> {
    if says_nothing(text.as_bytes()) {
        return Ok(None);
    }
    let mut reader = Reader { text, events: Parser::new_from_str(text) };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if root.is_some() => {
                return Err(reader.problem(&span, "a second document starts here"));
            }
            Event::DocumentStart(..) => {
                let (event, span) = reader.next()?;
                root = Some(reader.node(event, &span, 0)?);
            }
            Event::StreamEnd => return Ok(root.filter(|root| root.kind != Kind::Scalar(Value::Null))),
            _ => return Err(reader.problem(&span, "unexpected content after the document")),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    events: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.events.next() {
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) => {
                let marker = error.marker();
                Err(Problem { line: marker.line(), column: marker.col() + 1, message: error.info().clone() })
            }
            None => Err(Problem::at(self.text, self.text.len(), "the file ends too early")),
        }
    }

    fn problem(&self, span: &Span, message: &str) -> Problem {
        Problem::at(self.text, span.start.byte_offset().unwrap_or(0), message)
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Problem> {
        if depth > MOST_DEPTH {
            return Err(self.problem(span, "the file is nested too deeply"));
        }
        let range = span.byte_range().unwrap_or(0..0);
        match event {
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                Err(self.problem(span, "anchors are not followed here"))
            }
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => Err(self.problem(span, "tags are not followed here")),
            Event::Scalar(text, style, ..) => {
                let written = self.text.get(range.clone()).unwrap_or_default();
                let span = range.start..range.start + written.trim_end().len();
                let value =
                    if style == ScalarStyle::Plain { plain(&text) } else { Value::String(text.into_owned()) };
                Ok(Node { span, kind: Kind::Scalar(value) })
            }
            Event::SequenceStart(..) => self.sequence(range.start, depth),
            Event::MappingStart(style, ..) => self.mapping(range.start, style == StructureStyle::Flow, depth),
            _ => Err(self.problem(span, "aliases are not followed here")),
        }
    }

    fn sequence(&mut self, start: usize, depth: usize) -> Result<Node, Problem> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let end = self.end(&span, items.last().map(|item| item.span.end), start);
                return Ok(Node { span: start..end, kind: Kind::Sequence(items) });
            }
            items.push(self.node(event, &span, depth + 1)?);
        }
    }

    fn mapping(&mut self, start: usize, in_braces: bool, depth: usize) -> Result<Node, Problem> {
        let mut entries: Vec<Pair> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let key = match event {
                Event::MappingEnd => {
                    let last = entries.last().map(|last| last.span.end.max(last.value.span.end));
                    let end = self.end(&span, last, start);
                    return Ok(Node { span: start..end, kind: Kind::Mapping { entries, in_braces } });
                }
                Event::Scalar(key, ..) if key == "<<" => {
                    return Err(self.problem(&span, "merge keys are not followed here"));
                }
                Event::Scalar(key, _, 0, None) => key.into_owned(),
                _ => return Err(self.problem(&span, "a key must be a plain text")),
            };
            if entries.iter().any(|pair| pair.key == key) {
                return Err(self.problem(&span, &format!("the key `{}` is given twice", key.escape_debug())));
            }
            let key_span = span.byte_range().unwrap_or(0..0);
            let (event, span) = self.next()?;
            let value = self.node(event, &span, depth + 1)?;
            entries.push(Pair { key, span: key_span, value });
        }
    }

    /// Where a collection ends: at its bracket, or with the last thing in it.
    fn end(&self, span: &Span, last: Option<usize>, start: usize) -> usize {
        let range = span.byte_range().unwrap_or(start..start);
        let closing = self.text.get(range.clone()).unwrap_or_default();
        if closing.ends_with(['}', ']']) { range.end } else { last.unwrap_or(start) }
    }
}

/// What a plain scalar is to most readers; it is compared, and read where a word is expected.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => text.parse::<i64>().map_or_else(|_| fraction(text), Value::from),
    }
}

/// `1.5`: digits on both sides of the point; anything else is a text.
fn fraction(text: &str) -> Value {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let is_number = unsigned.split_once('.').is_some_and(|(whole, rest)| digits(whole) && digits(rest));
    let number = text.parse().ok().filter(|_| is_number).and_then(serde_json::Number::from_f64);
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}
