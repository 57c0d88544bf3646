//! JSON with comments and trailing commas.

use serde_json::{Map, Value};
use std::ops::Range;

use super::Problem;
use super::order::{one_line, ordered};
use super::outline::{Kind, Node, Pair, indent, line_end, line_start, splice};

/// Deeper than any settings.
const MOST_DEPTH: usize = 128;
const STEP: &str = "  ";

/// What a text says.
pub(super) fn read(text: &str) -> Result<Value, Problem> {
    Ok(parse(text)?.map_or_else(|| Value::Object(Map::new()), |node| node.value()))
}

/// The tree of a text; none where there is nothing in it.
fn parse(text: &str) -> Result<Option<Node>, Problem> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut reader = Reader { text, at: start };
    reader.blank()?;
    if reader.peek().is_none() {
        return Ok(None);
    }
    let node = reader.node(0)?;
    reader.blank()?;
    match reader.peek() {
        None => Ok(Some(node)),
        Some(_) => Err(reader.problem("unexpected text after the end")),
    }
}

/// The text with an entry in the map at `path`.
pub(super) fn insert(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, Problem> {
    let Some(root) = parse(text)? else {
        let whole = nested(path, key, value);
        return Ok(format!("{text}{}\n", pretty(&whole, "")));
    };
    let mut map = &root;
    for (depth, name) in path.iter().enumerate() {
        match map.get(name) {
            Some(pair) if matches!(pair.value.kind, Kind::Mapping { .. }) => map = &pair.value,
            Some(pair) if pair.value.value().is_null() => {
                let entry = nested(path.get(depth + 1..).unwrap_or_default(), key, value);
                return Ok(splice(
                    text,
                    pair.value.span.clone(),
                    &pretty(&entry, indent(text, pair.span.start)),
                ));
            }
            Some(pair) => return Err(Problem::at(text, pair.span.start, format!("`{name}` is no map"))),
            None => {
                let entry = nested(path.get(depth + 1..).unwrap_or_default(), key, value);
                return Ok(append(text, map, name, &entry));
            }
        }
    }
    if let Some(pair) = map.get(key) {
        return Ok(splice(text, pair.value.span.clone(), &pretty(value, indent(text, pair.span.start))));
    }
    Ok(append(text, map, key, value))
}

/// The map that holds an entry below the rest of a path.
fn nested(path: &[&str], key: &str, value: &Value) -> Value {
    let entry = Value::Object(Map::from_iter([(key.to_owned(), value.clone())]));
    path.iter().rev().fold(entry, |entry, name| Value::Object(Map::from_iter([((*name).to_owned(), entry)])))
}

/// The text with one more entry at the end of a map.
fn append(text: &str, map: &Node, key: &str, value: &Value) -> String {
    let around = indent(text, map.span.start).to_owned();
    match map.entries().last() {
        None => {
            let inner = format!("{around}{STEP}");
            let entry = format!("\n{inner}{}: {}\n{around}", Value::from(key), pretty(value, &inner));
            // Comments between the braces stay, in front.
            let end = map.span.end.saturating_sub(1);
            let kept = text.get(map.span.start + 1..end).unwrap_or_default().trim_end().to_owned();
            splice(text, map.span.start + 1..end, &format!("{kept}{entry}"))
        }
        Some(last) => {
            let is_one_line = !text.get(map.span.clone()).unwrap_or_default().contains('\n');
            let (inner, gap) = if is_one_line {
                (around.clone(), " ".to_owned())
            } else {
                let inner = indent(text, last.span.start).to_owned();
                (inner.clone(), format!("\n{inner}"))
            };
            let rendered = if is_one_line { value.to_string() } else { pretty(value, &inner) };
            let entry = format!("{gap}{}: {rendered}", Value::from(key));
            let end = last.value.span.end;
            if let Some(comma) = comma_after(text, end) {
                // The comma that is there already separates; ours trails as theirs did.
                let at = if is_one_line { comma } else { rest_of_line(text, comma) };
                splice(text, at..at, &format!("{entry},"))
            } else {
                let at = if is_one_line { end } else { rest_of_line(text, end) };
                let with_entry = splice(text, at..at, &entry);
                splice(&with_entry, end..end, ",")
            }
        }
    }
}

/// The text without an entry of the map at `path`.
pub(super) fn remove(text: &str, path: &[&str], key: &str) -> Result<String, Problem> {
    let Some(root) = parse(text)? else { return Ok(text.to_owned()) };
    let map = path.iter().try_fold(&root, |map, name| map.get(name).map(|pair| &pair.value));
    let Some(map) = map else { return Ok(text.to_owned()) };
    let entries = map.entries();
    let Some(place) = entries.iter().position(|pair| pair.key == key) else { return Ok(text.to_owned()) };
    let Some(pair) = entries.get(place) else { return Ok(text.to_owned()) };
    let comma = comma_after(text, pair.value.span.end);
    let mut range = pair.span.start..comma.unwrap_or(pair.value.span.end);
    let own_line = text.get(line_start(text, range.start)..range.start).unwrap_or_default().trim().is_empty();
    let rest = text.get(range.end..line_end(text, range.end)).unwrap_or_default();
    if own_line && (rest.trim().is_empty() || rest.trim_start().starts_with("//")) {
        range = line_start(text, range.start)..line_end(text, range.end);
    } else if let Some(gap) =
        text.get(range.end..).map(|rest| rest.len() - rest.trim_start_matches(' ').len())
    {
        range.end += gap;
    }
    let edited = splice(text, range.clone(), "");
    // The last one takes the comma before it along, unless its own was a trailing one.
    let is_last = place + 1 == entries.len();
    match place.checked_sub(1).and_then(|before| entries.get(before)) {
        Some(before) if is_last && comma.is_none() => {
            let end = before.value.span.end;
            Ok(comma_after(text, end).map_or(edited.clone(), |comma| splice(&edited, comma - 1..comma, "")))
        }
        None if is_last => {
            let inside = map.span.start + 1..map.span.end.saturating_sub(range.len() + 1);
            let is_bare = edited.get(inside.clone()).is_some_and(|inside| inside.trim().is_empty());
            Ok(if is_bare { splice(&edited, inside, "") } else { edited })
        }
        _ => Ok(edited),
    }
}

/// Behind the comma that follows a value, if one does.
fn comma_after(text: &str, end: usize) -> Option<usize> {
    let mut reader = Reader { text, at: end };
    reader.blank().ok()?;
    (reader.peek() == Some(b',')).then_some(reader.at + 1)
}

/// The end of a line if nothing but a comment is left on it, without its break.
fn rest_of_line(text: &str, offset: usize) -> usize {
    let line = text.get(offset..).unwrap_or_default();
    let line = line.split('\n').next().unwrap_or_default().trim_end_matches('\r');
    let words = line.trim_start();
    if words.is_empty() || words.starts_with("//") { offset + line.trim_end().len() } else { offset }
}

fn pretty(value: &Value, indent: &str) -> String {
    let inner = format!("{indent}{STEP}");
    match value {
        Value::Object(map) if !map.is_empty() => {
            let line = |(key, value): (&String, &Value)| {
                format!("{inner}{}: {}", Value::from(key.as_str()), pretty(value, &inner))
            };
            let lines: Vec<String> = ordered(map).into_iter().map(line).collect();
            format!("{{\n{}\n{indent}}}", lines.join(",\n"))
        }
        Value::Array(items) => one_line(items).unwrap_or_else(|| {
            let lines: Vec<String> =
                items.iter().map(|item| format!("{inner}{}", pretty(item, &inner))).collect();
            format!("[\n{}\n{indent}]", lines.join(",\n"))
        }),
        other => other.to_string(),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(self.text, self.at, message)
    }

    /// Passes over space and comments.
    fn blank(&mut self) -> Result<(), Problem> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') if self.rest().starts_with("//") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                Some(b'/') if self.rest().starts_with("/*") => match self.rest().find("*/") {
                    Some(end) => self.at += end + 2,
                    None => return Err(self.problem("the comment does not end")),
                },
                _ => return Ok(()),
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, Problem> {
        if depth > MOST_DEPTH {
            return Err(self.problem("the file is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.mapping(depth)?,
            Some(b'[') => self.sequence(depth)?,
            Some(b'"') => Kind::Scalar(Value::String(self.string()?)),
            Some(_) => self.word()?,
            None => return Err(self.problem("the file ends too early")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn mapping(&mut self, depth: usize) -> Result<Kind, Problem> {
        self.at += 1;
        let mut entries: Vec<Pair> = Vec::new();
        let mut names = std::collections::HashSet::new();
        loop {
            self.blank()?;
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Kind::Mapping { entries, in_braces: true });
                }
                Some(b'"') => {}
                None => return Err(self.problem("the file ends too early")),
                Some(_) => return Err(self.problem("expected a key in double quotes, or `}`")),
            }
            let span_start = self.at;
            let key = self.string()?;
            let span: Range<usize> = span_start..self.at;
            if !names.insert(key.clone()) {
                let shown = key.escape_debug();
                return Err(Problem::at(self.text, span_start, format!("the key `{shown}` is given twice")));
            }
            self.blank()?;
            if self.peek() != Some(b':') {
                return Err(self.problem("expected `:`"));
            }
            self.at += 1;
            self.blank()?;
            let value = self.node(depth + 1)?;
            entries.push(Pair { key, span, value });
            self.separator(b'}')?;
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Kind, Problem> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(Kind::Sequence(items));
            }
            items.push(self.node(depth + 1)?);
            self.separator(b']')?;
        }
    }

    fn separator(&mut self, end: u8) -> Result<(), Problem> {
        self.blank()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(())
            }
            Some(byte) if byte == end => Ok(()),
            None => Err(self.problem("the file ends too early")),
            Some(_) => Err(self.problem(format!("expected `,` or `{}`", char::from(end)))),
        }
    }

    fn string(&mut self) -> Result<String, Problem> {
        let start = self.at;
        let mut is_escaped = false;
        for (offset, byte) in self.rest().bytes().enumerate().skip(1) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    let end = start + offset + 1;
                    let text = self.text.get(start..end).unwrap_or_default();
                    self.at = end;
                    return serde_json::from_str(text)
                        .map_err(|_| Problem::at(self.text, start, "the string holds what no string can"));
                }
                b'\n' => break,
                _ => {}
            }
        }
        Err(self.problem("the string does not end on its line"))
    }

    fn word(&mut self) -> Result<Kind, Problem> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let rest = self.rest();
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        match serde_json::from_str(word) {
            Ok(value) if !word.is_empty() => {
                self.at += end;
                Ok(Kind::Scalar(value))
            }
            _ => Err(self.problem("expected a value")),
        }
    }
}
