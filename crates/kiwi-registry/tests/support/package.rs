//! Packages to publish.

use kiwi_model::manifest::Source;
use kiwi_model::{Digest, FileEntry, Integrity, Manifest, ToolId, Version, integrity_of, yaml};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A version of a tool.
#[derive(Debug, Clone)]
pub struct Package {
    pub id: ToolId,
    pub version: Version,
    pub files: Vec<(String, Vec<u8>, bool)>,
    pub visibility: Option<&'static str>,
}

impl Package {
    pub fn new(id: &str, version: &str) -> Self {
        Self::running_on(id, version, "python_runtime")
    }

    /// One that runs on another tool.
    pub fn running_on(id: &str, version: &str, executor: &str) -> Self {
        Self::described(id, version, executor, "does something useful")
    }

    pub fn described(id: &str, version: &str, executor: &str, description: &str) -> Self {
        let mut text = format!("tool_id: {id}\nversion: \"{version}\"\ntool_type: script\n");
        let executor = match executor.split_once('@') {
            None => executor.to_owned(),
            Some((id, version)) => format!("{{id: {id}, version: \"{version}\"}}"),
        };
        let _ = writeln!(text, "executor: {executor}\nentrypoint: main.py\ndescription: \"{description}\"");
        Self {
            id: ToolId::parse(id).unwrap(),
            version: Version::parse(version).unwrap(),
            files: vec![
                ("tool.yaml".into(), text.into_bytes(), false),
                ("main.py".into(), format!("print('{id}')\n").into_bytes(), true),
            ],
            visibility: None,
        }
    }

    pub fn visible(mut self, visibility: &'static str) -> Self {
        self.visibility = Some(visibility);
        self
    }

    pub fn with(mut self, path: &str, bytes: &[u8]) -> Self {
        self.files.push((path.to_owned(), bytes.to_vec(), false));
        self
    }

    pub fn path(&self) -> String {
        format!("/v1/tools/{}/versions/{}", self.id, self.version)
    }

    pub fn manifest(&self) -> Value {
        let document = yaml::parse(&self.files[0].1).unwrap();
        let source = Source { file: "tool.yaml".into(), id: self.id.clone(), script: None };
        Manifest::read(&document, &source).unwrap().0
    }

    pub fn integrity(&self) -> Integrity {
        let entries: Vec<FileEntry> = self
            .files
            .iter()
            .map(|(path, bytes, is_executable)| FileEntry {
                path: path.clone(),
                sha256: Digest::of(bytes),
                is_executable: *is_executable,
            })
            .collect();
        integrity_of(&self.id, &self.version, &self.manifest(), &entries).unwrap()
    }

    pub fn publication(&self) -> Value {
        let file = |(path, bytes, is_executable): &(String, Vec<u8>, bool)| json!({"path": path, "sha256": Digest::of(bytes), "is_executable": is_executable, "size": bytes.len()});
        let mut publication = json!({
            "manifest": self.manifest(),
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "integrity": self.integrity(),
        });
        if let Some(visibility) = self.visibility {
            publication["visibility"] = json!(visibility);
        }
        publication
    }
}
