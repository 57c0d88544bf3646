//! Metadata in a leading comment block: `# kiwi: key: value`, or `// kiwi: …` in JavaScript and TypeScript. A Python file may
//! have one beside its module-level names.
//!
//! The lines behind `kiwi:` form one strict YAML document, so nested values are written by indenting as in YAML.

use kiwi_model::ManifestError;
use kiwi_model::yaml::{self, Document, Place};
use serde_json::{Map, Value};

use super::{Places, Virtual};

/// Reads the comment block at the top of a script.
pub(super) fn read(bytes: &[u8], comment: &str, file: &str) -> Result<Virtual, ManifestError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut text = Vec::new();
    let mut lines = Vec::new();
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if (i == 0 && line.starts_with(b"#!")) || line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let Some(comment) = line.strip_prefix(comment.as_bytes()) else { break };
        let Some(rest) = comment.trim_ascii_start().strip_prefix(b"kiwi:") else { continue };
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        lines.push((i + 1, line.len() - rest.len()));
        text.extend_from_slice(rest);
        text.push(b'\n');
    }
    if let Some((line, columns)) = lines.first().filter(|_| text.trim_ascii().is_empty()) {
        let place = Place { line: *line, column: columns + 1 };
        let hint = format!("every line of the block begins with it: `{comment} kiwi: version: 1.0.0`");
        return Err(ManifestError::one(file, "nothing stands behind `kiwi:`", Some(hint), place));
    }
    let document = if lines.is_empty() {
        Document::synthetic(Value::Object(Map::new()))
    } else {
        yaml::parse(&text).map_err(|error| {
            let place = original(&lines, error.place);
            ManifestError::one(file, error.message, error.hint, place)
        })?
    };
    Ok(Virtual { document, places: Places::Lines(lines) })
}

/// The place in the script of a place in the collected text.
pub(super) fn original(lines: &[(usize, usize)], place: Place) -> Place {
    let line = lines.get(place.line.saturating_sub(1)).or(lines.last());
    line.map_or(place, |(line, columns)| Place { line: *line, column: place.column + columns })
}
