//! Projects to measure in: the example of the kernel's document, a Bash tool, and as many others as asked for.

use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DATA_PROCESSOR: &str = r#"tool_id: data_processor
version: "2.1.0"
tool_type: script
executor: python_runtime
category: data
description: Clean a CSV
entrypoint: process_data.py
parameters:
  type: object
  properties: {input: {type: string}}
  required: [input]
config:
  timeout: 1800
  env: {PYTHONPATH: "/app/lib"}
"#;
const PROCESS_DATA: &str = "import json, sys\n\nprint(json.dumps({\"rows\": len(json.load(sys.stdin))}))\n";
const HELLO: &str =
    "#!/usr/bin/env bash\n# kiwi: version: 1.0.0\n# kiwi: description: Say hello\necho hello\n";

/// A project and a home of its own.
pub struct Project {
    folder: PathBuf,
}

impl Project {
    /// Writes a project with `data_processor`, `hello` and `others` more one-file tools.
    pub fn write(folder: PathBuf, others: usize) -> Result<Self> {
        let project = Self { folder };
        let tools = project.root().join(".ai/tools");
        let package = tools.join("data/data_processor");
        fs::create_dir_all(&package)?;
        fs::create_dir_all(project.home())?;
        fs::write(package.join("tool.yaml"), DATA_PROCESSOR)?;
        fs::write(package.join("process_data.py"), PROCESS_DATA)?;
        fs::create_dir_all(tools.join("demo"))?;
        fs::write(tools.join("demo/hello.sh"), HELLO)?;
        for number in 0..others {
            // A hundred to a folder, as a person would sort them: more tools are also more folders.
            let category = tools.join(format!("bulk/c{}", number / 100));
            fs::create_dir_all(&category)?;
            fs::write(
                category.join(format!("tool_{number:05}.sh")),
                format!("# kiwi: version: 1.0.0\necho {number}\n"),
            )?;
        }
        Ok(project)
    }

    /// A project that was written before.
    pub fn open(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder that holds both.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that holds `.ai`.
    pub fn root(&self) -> PathBuf {
        self.folder.join("project")
    }

    /// The folder that holds the user's `.ai`.
    pub fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// A command in this project that sees nothing of the real user's.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root()).env("HOME", self.home()).env("KIWI_USER_SPACE", self.home());
        command
    }
}
