use kiwi_chain::Catalog as _;
use kiwi_model::{ErrorKind, Fault, Space, ToolId};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, mark};

/// Make a new tool from a template, ready to run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id: lowercase letters, digits and `_`, dotted by namespace.
    id: String,
    /// What it is.
    #[arg(long = "type", value_name = "TYPE", default_value = "python")]
    kind: Kind,
    /// The folder below `.ai/tools/`.
    #[arg(long, default_value = "", hide_default_value = true)]
    category: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// A Python file.
    Python,
    /// A Bash script.
    Bash,
    /// A JavaScript file.
    Node,
    /// An HTTP request.
    Api,
    /// A command in a container.
    Docker,
}

impl Args {
    /// Makes the tool.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let id = ToolId::parse(&self.id).map_err(|error| Fault::new(ErrorKind::Usage, error.to_string()))?;
        if id.is_reserved() {
            return Err(Fault::new(ErrorKind::SpaceViolation, format!("`{id}` belongs to the system"))
                .with_hint("choose another name"));
        }
        let good = |part: &str| {
            !part.is_empty() && part != "." && part != ".." && part != "lib" && !part.contains(['\0', '\\'])
        };
        if !self.category.is_empty() && !self.category.split('/').all(good) {
            return Err(Fault::new(ErrorKind::Usage, format!("`{}` cannot be a category", self.category))
                .with_hint("write it like `data/etl`"));
        }
        let Some(root) = context.kernel.spaces().project_root() else {
            return Err(Fault::new(ErrorKind::NotFound, "there is no project here")
                .with_hint("`kiwi init` makes one"));
        };
        let folder: PathBuf = root.join(".ai").join("tools").join(&self.category);
        let (extension, text) = template(self.kind, &id);
        let path = folder.join(format!("{id}.{extension}"));
        require_free(context, &id)?;
        create(&path, &text)?;
        if self.json {
            printer::json(&printer::with_status(json!({"tool_id": id, "path": path}), None));
        } else {
            printer::note(format!("  {} {}\n\nTry: kiwi run {id} name=you", mark(true), path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Two tools with one id in one space would be ambiguous, whatever their files are called.
fn require_free(context: &Context, id: &ToolId) -> Result<(), Fault> {
    let spaces = context.kernel.spaces();
    match spaces.candidates(id, Space::Project)?.first() {
        Some(there) => Err(Fault::new(
            ErrorKind::Usage,
            format!("`{id}` is in this project already: version {}", there.version),
        )
        .with_hint(format!("choose another name; `kiwi tool show {id}` says where it is"))),
        None => Ok(()),
    }
}

/// Writes a new file; one that exists is never changed.
pub fn create(path: &Path, text: &str) -> Result<(), Fault> {
    let write = || {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::File::create_new(path)?.write_all(text.as_bytes())
    };
    write().map_err(|error| {
        let hint = if error.kind() == std::io::ErrorKind::AlreadyExists {
            "it was not changed"
        } else {
            "nothing was written"
        };
        Fault::new(ErrorKind::Usage, format!("`{}` cannot be made: {error}", path.display())).with_hint(hint)
    })
}

fn template(kind: Kind, id: &ToolId) -> (&'static str, String) {
    match kind {
        Kind::Python => (
            "py",
            format!(
                "__version__ = \"0.1.0\"\n__tool_description__ = \"What {id} does, in one line\"\nCONFIG_SCHEMA = {{\n    \"type\": \"object\",\n    \"properties\": {{\"name\": {{\"type\": \"string\"}}}},\n    \"required\": [\"name\"],\n}}\n\n\ndef execute(name):\n    return {{\"greeting\": f\"Hello, {{name}}\"}}\n"
            ),
        ),
        Kind::Bash => (
            "sh",
            format!(
                "#!/usr/bin/env bash\n# kiwi: version: 0.1.0\n# kiwi: description: What {id} does, in one line\n# kiwi: parameters: {{type: object, properties: {{name: {{type: string}}}}, required: [name]}}\n\necho \"Hello, $KIWI_PARAM_NAME\"\n"
            ),
        ),
        Kind::Node => (
            "js",
            format!(
                "// kiwi: version: 0.1.0\n// kiwi: description: What {id} does, in one line\n// kiwi: parameters: {{type: object, properties: {{name: {{type: string}}}}, required: [name]}}\n\nexports.execute = ({{ name }}) => ({{ greeting: `Hello, ${{name}}` }});\n"
            ),
        ),
        Kind::Api => (
            "yaml",
            format!(
                "tool_id: {id}\nversion: \"0.1.0\"\ntool_type: api\ndescription: What {id} does, in one line\nparameters:\n  type: object\n  properties: {{name: {{type: string}}}}\n  required: [name]\nconfig:\n  url: \"http://127.0.0.1:8080/hello/{{name}}\"\n  timeout: 10\n"
            ),
        ),
        Kind::Docker => (
            "yaml",
            format!(
                "tool_id: {id}\nversion: \"0.1.0\"\ntool_type: docker\ndescription: What {id} does, in one line\nparameters:\n  type: object\n  properties: {{name: {{type: string}}}}\n  required: [name]\nconfig:\n  image: debian:12-slim\n  command: [echo, \"Hello, {{name}}\"]\n"
            ),
        ),
    }
}
