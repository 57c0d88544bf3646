//! Markdown with YAML front matter: knowledge entries, and `SKILL.md`.

use kiwi_model::{Fault, yaml};
use serde_json::{Map, Value};

use super::{Place, TextItem};

const FENCE: &str = "---";

/// Reads a text with front matter. The header may be left out; one that is there must be good.
pub(super) fn read(place: &Place<'_>, text: &str) -> Result<TextItem, Fault> {
    let (header, body) = match split(text) {
        Split::None => (Map::new(), text),
        Split::Open => return Err(place.broken("its front matter does not end")),
        Split::At(header, body) => {
            let document = yaml::parse(header.as_bytes()).map_err(|error| {
                place.broken(format!("{}:{}: {error}", error.place.line + 1, error.place.column))
            })?;
            match document.value {
                Value::Object(header) => (header, body),
                Value::Null => (Map::new(), body),
                _ => return Err(place.broken("its front matter is not a mapping")),
            }
        }
    };
    let mut item = place.bare(text);
    let word = |name: &str| -> Result<Option<String>, Fault> {
        match header.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(place.broken(format!("`{name}` is not a text"))),
        }
    };
    let name = word(if place.is_skill { "name" } else { "id" })?;
    if let Some(name) = name.filter(|name| name != place.id) {
        return Err(place.broken(format!("it says that it is `{name}`, and its place says `{}`", place.id)));
    }
    item.version = word("version")?;
    item.title = word("title")?;
    item.description = word("description")?.or_else(|| item.title.clone()).or_else(|| first_line(body));
    if let Some(category) = word("category")? {
        item.category = category;
    }
    item.tags = match header.get("tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tags)) => tags
            .iter()
            .map(|tag| tag.as_str().map(str::to_owned).ok_or_else(|| place.broken("a tag is not a text")))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(place.broken("`tags` is not a list")),
    };
    item.metadata = header;
    Ok(item)
}

enum Split<'a> {
    None,
    Open,
    At(&'a str, &'a str),
}

fn split(text: &str) -> Split<'_> {
    let Some(rest) = text
        .strip_prefix(FENCE)
        .and_then(|rest| rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\r\n")))
    else {
        return Split::None;
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_end() == FENCE {
            return Split::At(rest.get(..at).unwrap_or_default(), rest.get(end..).unwrap_or_default());
        }
        at = end;
    }
    Split::Open
}

/// The first heading or sentence.
fn first_line(body: &str) -> Option<String> {
    let line = body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}
