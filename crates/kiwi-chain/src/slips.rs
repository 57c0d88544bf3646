//! Keys of a configuration that are most likely slips of the pen.

use kiwi_model::{Language, Space, meant};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::Tool;
use crate::container;

/// What to say about keys that nobody in the chain knows and that are nearly one that somebody does. Any other unknown key is
/// somebody's own business: a Python tool keeps in `CONFIG` what it likes.
pub(crate) fn slips(chain: &[Arc<Tool>]) -> Vec<String> {
    let schema = chain.last().and_then(|root| root.manifest.config_schema.as_ref()?.get("properties"));
    let mut known: BTreeSet<&str> = BTreeSet::from(["base_args", container::KEY]);
    known.extend(Language::ALL.map(Language::config_key));
    known.extend(schema.and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str));
    let mut said: Vec<String> = packages_for_nobody(chain).into_iter().collect();
    for tool in chain.iter().rev() {
        let config = &tool.manifest.config;
        // What the binary brings is judged by its tests.
        let is_judged = tool.space != Space::System;
        let unknown = config.keys().filter(|key| is_judged && !known.contains(key.as_str()));
        said.extend(unknown.filter_map(|key| {
            let meant = meant(key, known.iter().copied())?;
            Some(format!("{}: `config.{key}` means nothing; did you mean `{meant}`?", tool.path))
        }));
        known.extend(config.keys().map(String::as_str));
        let section = config.get(container::KEY).and_then(Value::as_object);
        known.extend(section.into_iter().flat_map(Map::keys).map(String::as_str));
    }
    said
}

/// That a tool requires packages which nothing in its chain installs.
fn packages_for_nobody(chain: &[Arc<Tool>]) -> Option<String> {
    let installs = |tool: &Arc<Tool>| {
        Language::ALL.iter().any(|language| tool.manifest.config.contains_key(language.config_key()))
    };
    let leaf =
        chain.first().filter(|leaf| leaf.space != Space::System && !leaf.manifest.requires.is_empty())?;
    let runtime = &leaf.manifest.executor.as_ref()?.id;
    (!chain.iter().any(installs)).then(|| {
        format!(
            "{}: `requires` names packages, and `{runtime}` installs none; commands are `requires_commands`",
            leaf.path
        )
    })
}
