//! What rules may change: a snapshot of the state, by mutations that keep its invariants.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::value::Value;

/// How many names a path may have; deeper state would only be hard to read.
const MAX_PATH: usize = 16;

/// A value that an effect carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names are the types of the language")]
pub enum Scalar {
    Integer(i64),
    Bool(bool),
    Text(String),
}

impl From<Value<'_>> for Scalar {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Integer(integer) => Self::Integer(integer),
            Value::Bool(truth) => Self::Bool(truth),
            Value::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

impl From<&Scalar> for Json {
    fn from(scalar: &Scalar) -> Self {
        match scalar {
            Scalar::Integer(integer) => (*integer).into(),
            Scalar::Bool(truth) => (*truth).into(),
            Scalar::Text(text) => text.as_str().into(),
        }
    }
}

/// What a rule wants changed. The gate carries it out after the call was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are named by what they hold")]
pub enum Mutation {
    /// Puts a value at a path, which begins with `state.`.
    Set { rule: String, path: String, value: Scalar },
    /// Adds to the counter at a path, which begins with `state.`.
    Apply { rule: String, path: String, delta: i64 },
    /// Reports an event.
    Emit { rule: String, name: String, values: Vec<Scalar> },
}

/// An invariant of the state that a mutation would break.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl Mutation {
    /// Changes the state as the mutation says, or leaves it alone and says which invariant forbids it.
    pub fn apply_to(&self, state: &mut Map<String, Json>) -> Result<(), Broken> {
        match self {
            Self::Emit { .. } => Ok(()),
            Self::Set { path, value, .. } => {
                let names = names(path)?;
                if matches!(find(state, &names, path)?, Some(Json::Array(_) | Json::Object(_))) {
                    return Err(Broken(format!("`{path}` holds more than one value")));
                }
                if matches!(value, Scalar::Integer(integer) if *integer < 0) {
                    return Err(Broken(format!("`{path}` would fall below zero")));
                }
                put(state, &names, value.into());
                Ok(())
            }
            Self::Apply { path, delta, .. } => {
                let names = names(path)?;
                let count = match find(state, &names, path)? {
                    None | Some(Json::Null) => 0,
                    Some(found) => {
                        found.as_i64().ok_or_else(|| Broken(format!("`{path}` is not a counter")))?
                    }
                };
                let count = count
                    .checked_add(*delta)
                    .ok_or_else(|| Broken(format!("`{path}` would leave the range of integers")))?;
                if count < 0 {
                    return Err(Broken(format!("`{path}` would fall below zero")));
                }
                put(state, &names, count.into());
                Ok(())
            }
        }
    }
}

/// The names of a path behind `state`.
fn names(path: &str) -> Result<Vec<&str>, Broken> {
    let mut names: Vec<&str> = path.split('.').take(MAX_PATH + 2).collect();
    if names.len() > MAX_PATH {
        return Err(Broken(format!("a path has at most {MAX_PATH} names")));
    }
    if names.len() < 2 || names.first() != Some(&"state") {
        return Err(Broken(format!("only `state.*` is written, not `{path}`")));
    }
    if names.contains(&"") {
        return Err(Broken(format!("`{path}` has an empty name")));
    }
    names.remove(0);
    Ok(names)
}

/// What a path holds. A value on the way that has no names below it is an error: it would be lost.
fn find<'a>(state: &'a Map<String, Json>, names: &[&str], path: &str) -> Result<Option<&'a Json>, Broken> {
    let Some((last, parents)) = names.split_last() else { return Ok(None) };
    let mut map = state;
    for name in parents {
        match map.get(*name) {
            None => return Ok(None),
            Some(Json::Object(inner)) => map = inner,
            Some(_) => return Err(Broken(format!("`{path}` lies below a value"))),
        }
    }
    Ok(map.get(*last))
}

/// Puts a value where [`find`] has shown that it can be put.
fn put(state: &mut Map<String, Json>, names: &[&str], value: Json) {
    let Some((last, parents)) = names.split_last() else { return };
    let mut map = state;
    for name in parents {
        let inner = map.entry(*name).or_insert_with(|| Json::Object(Map::new()));
        let Json::Object(inner) = inner else { return };
        map = inner;
    }
    map.insert((*last).to_owned(), value);
}
