//! A catalogue in memory, filled from YAML.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]
#![allow(dead_code, reason = "each test file uses its part")]

use kiwi_chain::{
    Caches, Candidate, Catalog, ChainError, Form, Identity, Mode, Pins, Plan, Signature, Tool, plan,
};
use kiwi_model::manifest::Source;
use kiwi_model::{
    Content, Digest, Fault, File, FileEntry, Manifest, Space, ToolId, ToolRef, integrity_of, yaml,
};
use std::sync::Arc;

#[derive(Default)]
pub struct Memory {
    tools: Vec<Arc<Tool>>,
}

impl Memory {
    pub fn with(mut self, space: Space, yaml_text: &str, files: &[&str]) -> Self {
        let document = yaml::parse(yaml_text.as_bytes()).expect("yaml");
        let id = document.value["tool_id"].as_str().expect("tool_id");
        let source = Source { file: format!("{id}.yaml"), id: ToolId::parse(id).unwrap(), script: None };
        let (document, manifest, warnings) =
            Manifest::read(&document, &source).unwrap_or_else(|e| panic!("{e}"));
        let files: Vec<File> = files
            .iter()
            .map(|path| File {
                entry: FileEntry {
                    path: (*path).into(),
                    sha256: Digest::of(path.as_bytes()),
                    is_executable: false,
                },
                content: Content::Bytes(path.as_bytes().into()),
            })
            .collect();
        let entries: Vec<FileEntry> = files.iter().map(|file| file.entry.clone()).collect();
        let integrity = integrity_of(&manifest.tool_id, &manifest.version, &document, &entries).unwrap();
        let category = manifest.category.clone().unwrap_or_default();
        self.tools.push(Arc::new(Tool {
            path: source.file,
            manifest,
            document,
            files,
            integrity,
            identity: Identity::Computed,
            signature: Signature::None,
            space,
            category,
            form: Form::Folder,
            warnings,
        }));
        self
    }

    /// The system space, as shipped.
    pub fn system() -> Self {
        let read = |path: &str| {
            std::fs::read_to_string(format!("{}/../../system/tools/{path}", env!("CARGO_MANIFEST_DIR")))
                .unwrap()
        };
        Self::default()
            .with(Space::System, &read("primitives/subprocess.yaml"), &[])
            .with(Space::System, &read("primitives/http_client.yaml"), &[])
            .with(Space::System, &read("runtimes/python_runtime/tool.yaml"), &["tool.yaml", "runner.py"])
            .with(Space::System, &read("runtimes/bash_runtime.yaml"), &[])
            .with(Space::System, &read("runtimes/api_runtime.yaml"), &[])
            .with(Space::System, &read("runtimes/kiwi_runtime.yaml"), &[])
            .with(Space::System, &read("runtimes/node_runtime/tool.yaml"), &["tool.yaml", "runner.cjs"])
            .with(Space::System, &read("kiwi/kiwi.info.yaml"), &[])
    }

    pub fn map_last(mut self, change: impl FnOnce(&mut Tool)) -> Self {
        let mut tool = (*self.tools.pop().unwrap()).clone();
        change(&mut tool);
        self.tools.push(Arc::new(tool));
        self
    }

    pub fn plan(&self, ask: &str) -> Result<Plan, ChainError> {
        self.plan_in(ask, Mode::Strict)
    }

    pub fn plan_in(&self, ask: &str, mode: Mode) -> Result<Plan, ChainError> {
        plan(self, &ToolRef::parse(ask).unwrap(), Pins::none(), mode, &Caches::default())
    }
}

impl Catalog for Memory {
    fn candidates(&self, id: &ToolId, space: Space) -> Result<Vec<Candidate>, Fault> {
        let here = self.tools.iter().filter(|tool| tool.manifest.tool_id == *id && tool.space == space);
        Ok(here
            .map(|tool| Candidate {
                id: id.clone(),
                version: tool.manifest.version.clone(),
                space,
                handle: String::new(),
                loaded: Some(Arc::clone(tool)),
            })
            .collect())
    }

    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, Fault> {
        Ok(Arc::clone(candidate.loaded.as_ref().expect("always loaded")))
    }

    fn ids(&self) -> Vec<ToolId> {
        self.tools.iter().map(|tool| tool.manifest.tool_id.clone()).collect()
    }
}

/// A runtime that accepts anything and runs on `subprocess`.
pub fn runtime(id: &str, version: &str, rest: &str) -> String {
    format!(
        "tool_id: {id}\nversion: \"{version}\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {{command: {id}}}\nvalidation: {{child_schemas: [{{schema: {{}}}}]}}\n{rest}"
    )
}

/// A script on that runtime.
pub fn script(id: &str, version: &str, executor: &str, rest: &str) -> String {
    format!("tool_id: {id}\nversion: \"{version}\"\ntool_type: script\nexecutor: {executor}\n{rest}")
}
