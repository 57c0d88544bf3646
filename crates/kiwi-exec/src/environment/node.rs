//! Folders of Node packages, filled by npm.

use kiwi_model::{Pin, Text};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

use super::Wanted;
use super::build::{Builder, arguments};
use super::make_private;
use crate::error::ExecError;

/// What separates a package from one that lies inside of it.
pub const NESTED: &str = "/node_modules/";

/// The folder with the packages of an environment.
pub fn modules_of(folder: &Path) -> PathBuf {
    folder.join("node_modules")
}

impl Builder<'_> {
    pub async fn build_node(&self) -> Result<(), ExecError> {
        let npm = self.npm()?;
        self.clear()?;
        make_private(&modules_of(self.folder))?;
        if self.wish.packages.is_empty() {
            return Ok(());
        }
        let mut args = arguments(&[
            "install",
            "--global=false",
            "--install-strategy=hoisted",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--no-progress",
            "--loglevel=error",
        ]);
        if !self.wish.allow_source_builds {
            args.push(Text::literal("--ignore-scripts"));
        }
        match &self.wish.packages {
            Wanted::Named(_) => {
                self.put("package.json", &json!({"private": true}))?;
                args.push(Text::literal("--"));
                args.extend(self.wish.packages.texts().into_iter().map(Text::literal));
            }
            Wanted::Pinned(pins) => {
                self.put("package.json", &package(pins))?;
                self.put("package-lock.json", &lock(pins))?;
            }
        }
        self.step("npm", self.folder, &npm, args).await
    }

    /// npm comes with Node and lies beside it; some systems have it apart.
    fn npm(&self) -> Result<PathBuf, ExecError> {
        let beside = self.wish.interpreter.with_file_name("npm");
        if beside.is_file() { Ok(beside) } else { self.find("npm") }
    }

    fn put(&self, name: &str, content: &Value) -> Result<(), ExecError> {
        fs::write(self.folder.join(name), content.to_string())
            .map_err(ExecError::io("describe the packages to install"))
    }
}

/// All packages that do not lie inside another are asked for by their exact versions.
fn package(pins: &[Pin]) -> Value {
    let outer = pins.iter().filter(|pin| !pin.name.contains(NESTED));
    let dependencies: Map<_, _> =
        outer.map(|pin| (pin.name.clone(), Value::from(pin.version.clone()))).collect();
    json!({"name": "environment", "version": "0.0.0", "private": true, "dependencies": dependencies})
}

/// Where each package lies. In this oldest form npm takes places and versions alone and fetches the rest.
fn lock(pins: &[Pin]) -> Value {
    let mut outer = Map::new();
    for pin in pins {
        let mut level = &mut outer;
        let mut places = pin.name.split(NESTED).peekable();
        while let Some(place) = places.next() {
            let Some(entry) = object(level, place) else { break };
            if places.peek().is_none() {
                entry.insert("version".into(), Value::from(pin.version.clone()));
                break;
            }
            let Some(inner) = object(entry, "dependencies") else { break };
            level = inner;
        }
    }
    json!({"name": "environment", "version": "0.0.0", "lockfileVersion": 1, "requires": true, "dependencies": outer})
}

/// The object under a key, made when missing.
fn object<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    map.entry(key).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_keep_their_places() {
        let pins: Vec<Pin> =
            ["a==1", "a/node_modules/@s/b==2", "a/node_modules/@s/b/node_modules/c==3", "c==4"]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect();
        assert_eq!(package(&pins)["dependencies"], json!({"a": "1", "c": "4"}));
        let inner = json!({"version": "2", "dependencies": {"c": {"version": "3"}}});
        let outer = json!({"a": {"version": "1", "dependencies": {"@s/b": inner}}, "c": {"version": "4"}});
        assert_eq!(lock(&pins)["dependencies"], outer);
    }
}
