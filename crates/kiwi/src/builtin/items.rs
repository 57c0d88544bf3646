//! The helpers behind `kiwi.create`, `kiwi.update`, `kiwi.delete`, `kiwi.validate` and `kiwi.sign`. The kernel confines each
//! call to its path; that the path is one where such an item lies is looked at here.

use kiwi_model::{Fault, Space};
use kiwi_space::{Locations, Spaces, TextKind};
use serde_json::{Map, Value, json};
use std::path::Path;

use super::filesystem;

/// Whether a helper of this name is here.
pub(super) fn is_one(name: &str) -> bool {
    name.starts_with("items.")
}

/// Runs one.
pub(super) fn run(name: &str, params: &Map<String, Value>) -> Result<Value, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, id, path) = (text("item_type"), text("item_id"), text("path"));
    let folder = match kind {
        "tool" => "tools",
        "directive" => "directives",
        _ => "knowledge",
    };
    belongs(folder, id, path)?;
    match name {
        "items.create" => create(params, path),
        "items.update" if !Path::new(path).is_file() => {
            Err(format!("`{path}`: there is no such file; `create` makes one"))
        }
        "items.update" => file("filesystem.write", path, text("content")),
        "items.delete" => {
            // A tool that is a folder is named by its manifest, and goes whole.
            let whole = path.strip_suffix("/tool.yaml").unwrap_or(path);
            let params = json!({"path": whole, "recursive": whole != path});
            filesystem::run("filesystem.delete", params.as_object().unwrap_or(&Map::new()))
        }
        "items.validate" | "items.sign" => check(kind, id),
        _ => Err("kiwi has no such helper".into()),
    }
}

/// Whether an item of this name can lie there.
fn belongs(folder: &str, id: &str, path: &str) -> Result<(), String> {
    let parts: Vec<&str> = path.split('/').collect();
    let is_plain = |part: &&str| !part.is_empty() && *part != "." && *part != "..";
    // Before `.ai` there may be the way to the user's folder.
    let start = parts.iter().position(|part| *part == ".ai");
    let below = start.and_then(|start| parts.get(start + 1..)).unwrap_or_default();
    let named = |part: &str| part == id || part.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
    let is_its = below.first() == Some(&folder)
        && below.iter().all(is_plain)
        && (below.last().is_some_and(|last| named(last))
            || below.len() > 2 && below.get(below.len() - 2) == Some(&id));
    if is_its { Ok(()) } else { Err(format!("`{path}`: `{id}` of .ai/{folder} cannot lie there")) }
}

fn create(params: &Map<String, Value>, path: &str) -> Result<Value, String> {
    let Some(files) = params.get("files").and_then(Value::as_object) else {
        let content = params.get("content").and_then(Value::as_str);
        let content = content.ok_or("either `content` or `files` says what it is")?;
        return file("filesystem.create", path, content);
    };
    if Path::new(path).exists() {
        return Err(format!("`{path}`: it is there already"));
    }
    let mut made = Vec::new();
    for (name, content) in files {
        if name.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            return Err(format!("`{name}` is not a path inside the tool"));
        }
        file("filesystem.create", &format!("{path}/{name}"), content.as_str().unwrap_or_default())?;
        made.push(name);
    }
    Ok(json!({"path": path, "files": made}))
}

fn file(helper: &str, path: &str, content: &str) -> Result<Value, String> {
    let params = json!({"path": path, "content": content});
    filesystem::run(helper, params.as_object().unwrap_or(&Map::new()))
}

/// Reads the item as every call would.
fn check(kind: &str, id: &str) -> Result<Value, String> {
    let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
    let spaces =
        Spaces::open(Locations { project: None, cwd, user: None }).map_err(|error| error.to_string())?;
    let told = |fault: Fault| match fault.hint {
        Some(hint) => format!("{}\n{hint}", fault.message),
        None => fault.message,
    };
    let kind = match kind {
        "tool" => {
            let found = spaces.list(Space::Project).into_iter().find(|listed| listed.id_hint == id);
            let found = found.ok_or_else(|| format!("the project has no tool `{id}`"))?;
            let tool = found.result.map_err(told)?;
            return Ok(json!({
                "valid": true, "item_type": "tool", "item_id": id, "version": tool.manifest.version,
                "integrity": tool.integrity, "warnings": tool.warnings,
            }));
        }
        "directive" => TextKind::Directive,
        _ => TextKind::Knowledge,
    };
    let item = spaces.text(kind, id, Some(Space::Project)).map_err(told)?;
    Ok(json!({
        "valid": true, "item_type": kind.as_str(), "item_id": id, "version": item.version, "integrity": item.sha256,
    }))
}
