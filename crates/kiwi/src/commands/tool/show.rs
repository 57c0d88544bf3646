use kiwi_model::{Fault, ToolRef};
use serde_json::json;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, BOLD, DIM, paint};

/// Show a tool and exactly what was hashed of it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tool, and after `@` the versions that will do.
    tool: String,
    /// Print one JSON object: what was hashed, so that anyone can recompute the integrity.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Shows the tool.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let tool = context.kernel.find(&ToolRef::parse(&self.tool)?)?;
        let shadowed = context.kernel.spaces().shadowed(&tool);
        let mut files: Vec<_> = tool.files.iter().map(|file| &file.entry).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        if self.json {
            let shadowed: Vec<_> = shadowed
                .iter()
                .map(|other| json!({"space": other.space, "version": other.version, "path": other.path}))
                .collect();
            printer::json(&json!({
                "tool_id": tool.manifest.tool_id, "version": tool.manifest.version, "manifest": tool.document, "files": files,
                "integrity": tool.integrity, "space": tool.space, "path": tool.path,
                "executor": tool.manifest.executor.as_ref().map(|executor| &executor.id), "shadowed": shadowed,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let about = tool
            .manifest
            .description
            .as_ref()
            .map(|text| format!("  {}", paint(DIM, text)))
            .unwrap_or_default();
        printer::line(format!("{}{about}\n", paint(BOLD, tool.name())));
        let executor = tool
            .manifest
            .executor
            .as_ref()
            .map_or_else(|| "none: a primitive".to_owned(), |executor| executor.id.to_string());
        let mut rows = vec![
            vec![paint(DIM, "type"), tool.manifest.tool_type.clone()],
            vec![paint(DIM, "executor"), executor],
            vec![paint(DIM, "space"), tool.space.to_string()],
            vec![paint(DIM, "path"), tool.path.clone()],
            vec![paint(DIM, "integrity"), tool.integrity.to_string()],
        ];
        rows.extend(files.iter().map(|file| {
            vec![paint(DIM, "file"), format!("{}  {}", file.path, paint(DIM, file.sha256.short()))]
        }));
        if let Some(parameters) = &tool.manifest.parameters {
            rows.push(vec![paint(DIM, "parameters"), parameters.to_string()]);
        }
        printer::table(&rows);
        for warning in &tool.warnings {
            printer::warning(warning);
        }
        for other in shadowed {
            printer::warning(format!(
                "it shadows {} of the {} space at {}",
                other.version, other.space, other.path
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
