//! A tool of every type that leaves a mark when it runs, and only then.

use std::path::PathBuf;

use super::TestEnvironment;
use super::server::Server;

/// The types of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Bash,
    Python,
    Node,
    Api,
    Core,
    Container(&'static str),
}

pub const ON_HOST: [Type; 5] = [Type::Bash, Type::Python, Type::Node, Type::Api, Type::Core];

/// One tool in its own place.
pub struct Subject {
    pub kind: Type,
    pub env: TestEnvironment,
    server: Option<Server>,
}

impl Subject {
    /// A tool in a place where all is well.
    pub fn new(kind: Type) -> Self {
        let env = TestEnvironment::new();
        env.write("rules/test.kappa", "rule test_all { guards { else -> admit } effects { } }");
        let mut server = None;
        let permit = "permissions: {filesystem_write: [\"out/**\"]}";
        match kind {
            Type::Bash => {
                let head = "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\n# kiwi: permissions: {filesystem_write: [\"out/**\"]}\n";
                env.write("tools/mark.sh", format!("{head}mkdir -p out; echo ran >> out/mark\n"));
            }
            Type::Python => {
                env.write("tools/mark/tool.yaml", format!("tool_id: mark\nversion: \"1.0.0\"\ntool_type: script\nexecutor: python_runtime\nentrypoint: main.py\n{permit}\n"));
                env.write(
                    "tools/mark/main.py",
                    "import os\nos.makedirs('out', exist_ok=True)\nopen('out/mark', 'a').write('ran\\n')\n",
                );
            }
            Type::Node => {
                env.write("tools/mark/tool.yaml", format!("tool_id: mark\nversion: \"1.0.0\"\ntool_type: script\nexecutor: node_runtime\nentrypoint: main.js\n{permit}\n"));
                env.write("tools/mark/main.js", "const fs = require('fs');\nfs.mkdirSync('out', {recursive: true});\nfs.appendFileSync('out/mark', 'ran\\n');\n");
            }
            Type::Api => {
                let answering = Server::start(|_| ("200 OK", "{}".to_owned()));
                env.write(
                    "tools/mark.yaml",
                    format!(
                        "tool_id: mark\nversion: \"1.0.0\"\ntool_type: api\nconfig: {{url: \"{}\"}}\n",
                        answering.url("/mark")
                    ),
                );
                server = Some(answering);
            }
            Type::Core => {}
            Type::Container(engine) => {
                env.write("tools/mark.yaml", format!("tool_id: mark\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  image: kiwi-test:1\n  engine: {engine}\n  command: [/bin/sh, -c, \"mkdir -p /out/out; echo ran >> /out/out/mark\"]\n  volumes: [{{host: \"{{project_dir}}\", container: /out, mode: rw}}]\n"));
            }
        }
        Self { kind, env, server }
    }

    /// The tool's id.
    pub fn tool(&self) -> &'static str {
        if self.kind == Type::Core { "filesystem.write" } else { "mark" }
    }

    /// Its parameters.
    pub fn params(&self) -> serde_json::Value {
        match self.kind {
            Type::Core => serde_json::json!({"path": "out/mark", "content": "ran\n"}),
            _ => serde_json::json!({}),
        }
    }

    /// How often it has run.
    pub fn runs(&self) -> usize {
        if let Some(server) = &self.server {
            return server.asked().len();
        }
        let mark = std::fs::read_to_string(self.mark()).unwrap_or_default();
        mark.lines().filter(|line| *line == "ran").count()
    }

    fn mark(&self) -> PathBuf {
        self.env.project().join("out/mark")
    }
}
