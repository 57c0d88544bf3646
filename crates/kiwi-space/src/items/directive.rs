//! Directives: Markdown with one XML block. Read here is what finding and calling one needs; whether it is sound is for
//! those who run it.

use kiwi_model::Fault;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;

use super::{Place, TextInput, TextItem};

const OPEN: &str = "<directive";
const CLOSE: &str = "</directive>";
/// Elements of one block; more is no directive.
const MOST_NODES: u32 = 100_000;

/// Reads a directive.
pub(super) fn read(place: &Place<'_>, text: &str) -> Result<TextItem, Fault> {
    let start = text.find(OPEN).ok_or_else(|| place.broken("it has no `<directive>` block"))?;
    let end = text.rfind(CLOSE).ok_or_else(|| place.broken("its `<directive>` block does not end"))?;
    let block = text
        .get(start..end + CLOSE.len())
        .ok_or_else(|| place.broken("its `<directive>` block does not end"))?;
    let before = text.get(..start).unwrap_or_default().matches('\n').count();
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(block, options).map_err(|error| {
        let at = error.pos();
        place.broken(format!("{}:{}: {error}", usize::try_from(at.row).unwrap_or(0) + before, at.col))
    })?;
    let root = document.root_element();
    let name = root.attribute("name").ok_or_else(|| place.broken("its `<directive>` has no `name`"))?;
    if name != place.id {
        return Err(place.broken(format!("it says that it is `{name}`, and its place says `{}`", place.id)));
    }
    let mut item = place.bare(text);
    item.version = root.attribute("version").map(str::to_owned);
    if let Some(metadata) = child(root, "metadata") {
        item.description = words(metadata, "description");
        if let Some(category) = words(metadata, "category") {
            item.category = category;
        }
        for name in ["author", "tags"] {
            if let Some(value) = words(metadata, name) {
                if name == "tags" {
                    item.tags =
                        value.split([',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
                }
                item.metadata.insert(name.to_owned(), Value::String(value));
            }
        }
    }
    let inputs = child(root, "inputs").into_iter().flat_map(|inputs| inputs.children());
    for input in inputs.filter(|node| node.has_tag_name("input")) {
        let name = input.attribute("name").ok_or_else(|| place.broken("an `<input>` has no `name`"))?;
        item.inputs.push(TextInput {
            name: name.to_owned(),
            kind: input.attribute("type").unwrap_or("string").to_owned(),
            required: input.attribute("required").is_some_and(|value| value == "true"),
            description: text_of(input),
        });
    }
    Ok(item)
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|child| child.has_tag_name(name))
}

fn words(node: Node<'_, '_>, name: &str) -> Option<String> {
    child(node, name).map(text_of).filter(|text| !text.is_empty())
}

/// The text of an element on one line.
fn text_of(node: Node<'_, '_>) -> String {
    let text: String = node.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
