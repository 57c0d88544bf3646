//! TOML.

use serde_json::{Map, Number, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::Problem;
use super::order::ordered;

/// What a text says.
pub(super) fn read(text: &str) -> Result<Value, Problem> {
    let document = parse(text)?;
    Ok(table_value(document.as_table()))
}

/// The text with an entry in the table at `path`, as a table of its own.
pub(super) fn insert(text: &str, path: &[&str], key: &str, value: &Value) -> Result<String, Problem> {
    let mut document = parse(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut is_inline = false;
    for name in path {
        let item = table.entry(name).or_insert_with(|| {
            let mut implicit = Table::new();
            implicit.set_implicit(true);
            Item::Table(implicit)
        });
        is_inline |= item.is_inline_table();
        table =
            item.as_table_like_mut().ok_or_else(|| Problem::at(text, 0, format!("`{name}` is no table")))?;
    }
    let entries = value.as_object().cloned().unwrap_or_default();
    if is_inline {
        table.insert(key, Item::Value(toml_edit::Value::InlineTable(inline(&entries))));
        return Ok(document.to_string());
    }
    let mut own = Table::new();
    for (name, value) in ordered(&entries) {
        if let Some(value) = scalar(value) {
            own.insert(name, Item::Value(value));
        }
    }
    // One that is replaced stays where it is, with the comment above it.
    if let Some(old) = table.get(key).and_then(Item::as_table) {
        own.set_position(old.position());
        *own.decor_mut() = old.decor().clone();
    } else if !text.trim().is_empty() {
        own.decor_mut().set_prefix("\n");
    }
    table.insert(key, Item::Table(own));
    Ok(document.to_string())
}

/// The text without an entry of the table at `path`.
pub(super) fn remove(text: &str, path: &[&str], key: &str) -> Result<String, Problem> {
    let mut document = parse(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in path {
        let Some(inner) = table.get_mut(name).and_then(Item::as_table_like_mut) else {
            return Ok(text.to_owned());
        };
        table = inner;
    }
    table.remove(key);
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Problem> {
    text.parse::<DocumentMut>().map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        Problem::at(text, error.span().map_or(0, |span| span.start), message)
    })
}

fn inline(entries: &Map<String, Value>) -> InlineTable {
    ordered(entries).into_iter().filter_map(|(name, value)| Some((name.as_str(), scalar(value)?))).collect()
}

/// A value as TOML has it; `null` has no spelling there.
fn scalar(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().filter_map(scalar).collect::<Array>()),
        Value::Object(map) => toml_edit::Value::InlineTable(inline(map)),
    })
}

fn table_value(table: &dyn TableLike) -> Value {
    let entries = table.iter().filter(|(_, item)| !item.is_none());
    Value::Object(entries.map(|(key, item)| (key.to_owned(), item_value(item))).collect())
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => Value::Array(tables.iter().map(|table| table_value(table)).collect()),
    }
}

fn plain_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(integer) => Value::from(*integer.value()),
        toml_edit::Value::Float(float) => Number::from_f64(*float.value())
            .map_or_else(|| Value::String(float.value().to_string()), Value::Number),
        toml_edit::Value::Boolean(flag) => Value::Bool(*flag.value()),
        toml_edit::Value::Datetime(time) => Value::String(time.value().to_string()),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(plain_value).collect()),
        toml_edit::Value::InlineTable(table) => table_value(table),
    }
}
