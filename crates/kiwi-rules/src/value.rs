//! Values while a rule is judged, and reading them from a request.

use serde_json::{Map, Value as Json};

use crate::AdmissionRequest;
use crate::rule::{Root, Variable};

/// A value. Strings are borrowed from the rule or the request, so judging a rule copies nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Integer(i64),
    Bool(bool),
    Text(&'a str),
}

impl Value<'_> {
    /// The type with its article, for sentences.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Integer(_) => "an integer",
            Self::Bool(_) => "a boolean",
            Self::Text(_) => "a string",
        }
    }
}

/// Why a path has no value a rule could use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    Absent,
    Null,
    Float,
    Range,
    List,
    Object,
}

impl Unusable {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Float => "a float",
            Self::Range => "outside the range of integers",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// What a variable stands for in a request.
pub(crate) fn read<'a>(request: &AdmissionRequest<'a>, variable: &Variable) -> Result<Value<'a>, Unusable> {
    Ok(match variable.root {
        Root::Caller => Value::Text(request.caller),
        Root::Tool => Value::Text(request.tool),
        Root::Mode => Value::Text(request.mode.as_str()),
        Root::ToolType => Value::Text(request.tool_type),
        Root::Space => Value::Text(request.space),
        Root::Mutates => Value::Bool(request.mutates),
        Root::Interactive => Value::Bool(request.interactive),
        Root::PermissionAllowed => Value::Bool(request.permission.allowed),
        Root::PermissionAnswer => Value::Text(request.permission.answer.as_str()),
        Root::Args => return inside(request.args, &variable.path),
        Root::State => return inside(request.state, &variable.path),
    })
}

fn inside<'a>(map: &'a Map<String, Json>, path: &[String]) -> Result<Value<'a>, Unusable> {
    let Some((first, rest)) = path.split_first() else { return Err(Unusable::Object) };
    let mut found = map.get(first).ok_or(Unusable::Absent)?;
    for part in rest {
        found = found.as_object().and_then(|map| map.get(part)).ok_or(Unusable::Absent)?;
    }
    match found {
        Json::Null => Err(Unusable::Null),
        Json::Bool(truth) => Ok(Value::Bool(*truth)),
        Json::String(text) => Ok(Value::Text(text)),
        Json::Array(_) => Err(Unusable::List),
        Json::Object(_) => Err(Unusable::Object),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Ok(Value::Integer(integer)),
            None if number.is_u64() => Err(Unusable::Range),
            None => Err(Unusable::Float),
        },
    }
}
