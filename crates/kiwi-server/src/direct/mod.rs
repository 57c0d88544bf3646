//! The direct face: every tool under its own name, directives as prompts, knowledge as resources, and what upstream
//! servers have beside tools.

mod prompts;
mod resources;
mod tools;
mod upstream;

pub(crate) use prompts::{get_prompt, prompt, prompts};
pub(crate) use resources::{owner, read_resource, resource, resources, templates};
pub(crate) use tools::{call, native_tool};
pub(crate) use upstream::{Verb, ask, complete};

use kiwi_space::TextItem;
use rmcp::ErrorData;

/// Items on one page of a list.
const PAGE: usize = 500;
/// As much of a description as one line shows.
const MOST_OF_A_LINE: usize = 200;

/// What a text is about, in one line.
fn line(text: &TextItem) -> String {
    let words: Vec<&str> = text.description.as_deref().unwrap_or_default().split_whitespace().collect();
    words.join(" ").chars().take(MOST_OF_A_LINE).collect()
}

/// The page of a list that a cursor means, and the cursor of the next.
pub(crate) fn page<T: Clone>(all: &[T], cursor: Option<&str>) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .ok()
            .filter(|start| *start <= all.len())
            .ok_or_else(|| ErrorData::invalid_params("the cursor is not one of this list", None))?,
    };
    let end = start.saturating_add(PAGE).min(all.len());
    let next = (end < all.len()).then(|| end.to_string());
    Ok((all.get(start..end).unwrap_or_default().to_vec(), next))
}
