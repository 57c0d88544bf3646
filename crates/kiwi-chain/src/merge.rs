//! The configuration of a whole chain: merged from the primitive up to the leaf, child over parent.

use kiwi_model::yaml::Place;
use kiwi_model::{Language, ManifestError, Space, meant};
use serde_json::{Map, Value};
use std::sync::Arc;

use crate::catalog::Tool;
use crate::container;
use crate::error::ChainError;
use crate::http::advice;
use crate::schema::{Caches, complaints};

/// The primitive a chain ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// Starts a program.
    Subprocess,
    /// Makes a request.
    HttpClient,
}

/// What merging a chain gives.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The configuration, templates not yet rendered; the place of the entrypoint is marked `{entrypoint}`.
    pub(crate) template: Map<String, Value>,
    /// The file of the leaf that is started, if its entrypoint is one.
    pub(crate) entrypoint: Option<Entrypoint>,
    /// The link whose runner starts the entrypoint, and the runner's path.
    pub runner: Option<(usize, String)>,
    /// What the chain ends in.
    pub primitive: Primitive,
}

/// What `{entrypoint}` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entrypoint {
    /// A file of the leaf's package.
    File(String),
    /// A name that means something to the runtime.
    Name(String),
}

impl Merged {
    /// The configuration as people see it: the entrypoint by its own name.
    pub fn config(&self) -> Value {
        let name = match &self.entrypoint {
            Some(Entrypoint::File(name) | Entrypoint::Name(name)) => name.as_str(),
            None => return Value::Object(self.template.clone()),
        };
        let mut config = Value::Object(self.template.clone());
        replace(&mut config, "{entrypoint}", name);
        config
    }

    /// The language whose packages go into an environment of their own.
    pub fn language(&self) -> Option<Language> {
        let is_wanted = |wanted: &Value| wanted.get("enabled") != Some(&Value::Bool(false));
        let key = |language: &Language| self.template.get(language.config_key()).is_some_and(is_wanted);
        Language::ALL.into_iter().find(key)
    }

    /// The program that is started, where parameters have no say in it.
    pub fn program(&self) -> Option<&str> {
        self.template.get("command").and_then(Value::as_str).filter(|command| !command.contains(['{', '$']))
    }
}

fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text.contains(from) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(map) => map.values_mut().for_each(|item| replace(item, from, to)),
        _ => {}
    }
}

/// Merges the configuration of a chain and holds it against the primitive's schema.
pub fn merge(chain: &[Arc<Tool>], caches: &Caches) -> Result<Merged, ChainError> {
    let (Some(leaf), Some(root)) = (chain.first(), chain.last()) else {
        return Err(problem("", "the chain is empty"));
    };
    let primitive = match root.manifest.tool_id.as_str() {
        "subprocess" => Primitive::Subprocess,
        "http_client" => Primitive::HttpClient,
        other => return Err(problem(&root.path, format!("`{other}` is not a primitive this binary has"))),
    };
    let mut config = Map::new();
    let mut base_args = Vec::new();
    for tool in chain.iter().rev() {
        let mut own = tool.manifest.config.clone();
        if let Some(more) = own.remove("base_args") {
            match more {
                Value::Array(more) => base_args.extend(more),
                _ => return Err(problem(&tool.path, "`config.base_args` must be a list of strings")),
            }
        }
        container::claim(&mut config, &mut own);
        overlay(&mut config, own);
    }
    let entrypoint = entrypoint(chain, leaf)?;
    if primitive == Primitive::Subprocess {
        place_arguments(&mut config, base_args, entrypoint.is_some());
    }
    let runner =
        chain.iter().enumerate().skip(1).find_map(|(link, tool)| Some((link, tool.manifest.runner.clone()?)));
    if let Some((link, path)) = &runner
        && let Some(tool) = chain.get(*link)
        && tool.file(path).is_none()
    {
        return Err(problem(&tool.path, format!("the runner `{path}` is not a file of the package")));
    }
    let merged = Merged { template: config, entrypoint, runner, primitive };
    // What only the binary's own links say is judged by a test; a primitive by itself does nothing yet.
    let is_new = chain.iter().any(|tool| tool.space != Space::System && !tool.manifest.config.is_empty());
    if let Some(schema) = root.manifest.config_schema.as_ref().filter(|_| is_new) {
        let validator =
            caches.compile(schema).map_err(|why| problem(&root.path, format!("`config_schema` is {why}")))?;
        if let Some(complaint) = complaints(&validator, &merged.config()).into_iter().next() {
            return Err(ChainError::Config {
                file: leaf.path.clone(),
                primitive: root.manifest.tool_id.clone(),
                complaint: complaint.to_string(),
                hint: match primitive {
                    Primitive::Subprocess => wanted(schema, &complaint.pointer),
                    Primitive::HttpClient => advice(&merged.template, &complaint.pointer),
                },
                pointer: complaint.pointer,
            });
        }
    }
    Ok(merged)
}

/// What a schema describes as what should stand at a place, or around it.
fn wanted(schema: &Value, pointer: &str) -> Option<String> {
    let (mut at, mut said) = (schema, None);
    for name in pointer.split('/').skip(1) {
        let member = at.get("properties").and_then(|properties| properties.get(name));
        let Some(inner) = member.or_else(|| at.get("items")) else { break };
        at = inner;
        said = at.get("description").and_then(Value::as_str).or(said);
    }
    said.map(str::to_owned)
}

/// Maps merge by key; everything else is replaced by the child's value.
fn overlay(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// `base_args`, then the entrypoint unless the runtime placed it itself, then `args`.
fn place_arguments(config: &mut Map<String, Value>, base_args: Vec<Value>, has_entrypoint: bool) {
    let own = match config.remove("args") {
        Some(Value::Array(own)) => own,
        Some(other) => {
            // Kept as it is: the primitive's schema says what is wrong with it.
            config.insert("args".into(), other);
            return;
        }
        None => Vec::new(),
    };
    let marks = |value: &Value| value.as_str().is_some_and(|text| text.contains("{entrypoint}"));
    let placed = base_args.iter().chain(&own).chain(config.get("command")).any(marks);
    let mut args = base_args;
    if has_entrypoint && !placed {
        args.push("{entrypoint}".into());
    }
    args.extend(own);
    if !args.is_empty() {
        config.insert("args".into(), Value::Array(args));
    }
}

fn entrypoint(chain: &[Arc<Tool>], leaf: &Tool) -> Result<Option<Entrypoint>, ChainError> {
    let Some(name) = &leaf.manifest.entrypoint else { return Ok(None) };
    if leaf.file(name).is_some() {
        return Ok(Some(Entrypoint::File(name.clone())));
    }
    match chain.iter().skip(1).find(|tool| tool.manifest.entrypoint_is_file) {
        Some(runtime) => {
            let message = format!(
                "the entrypoint `{name}` is not a file of the package, and `{}` runs files only",
                runtime.manifest.tool_id
            );
            let files = leaf.files.iter().map(|file| file.entry.path.as_str());
            let hint = meant(name, files).map(|file| format!("did you mean `{file}`?"));
            Err(ManifestError::one(&leaf.path, message, hint, TOP).into())
        }
        None => Ok(Some(Entrypoint::Name(name.clone()))),
    }
}

/// Where a problem stands that no single line has.
const TOP: Place = Place { line: 1, column: 1 };

fn problem(file: &str, message: impl Into<String>) -> ChainError {
    ManifestError::one(file, message, None, TOP).into()
}
