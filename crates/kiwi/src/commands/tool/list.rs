use kiwi_model::Space;
use serde_json::json;
use std::process::ExitCode;

use super::everything;
use crate::context::Context;
use crate::printer::{self, BAD, DIM, paint};

/// List the tools of every space.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Lists. A broken tool is shown as broken and stops nobody else.
    pub fn run(self, context: &Context) -> ExitCode {
        let listed = everything(context, &Space::LOOKUP);
        if self.json {
            let tools: Vec<_> = listed
                .iter()
                .map(|(space, entry)| match &entry.result {
                    Ok(tool) => json!({
                        "tool_id": tool.manifest.tool_id, "version": tool.manifest.version, "space": tool.space,
                        "tool_type": tool.manifest.tool_type, "category": tool.category,
                        "description": tool.manifest.description, "path": tool.path, "integrity": tool.integrity, "ok": true,
                    }),
                    Err(fault) => json!({"tool_id": entry.id_hint, "space": space, "path": entry.path, "ok": false, "error": fault}),
                })
                .collect();
            printer::json(&json!({"status": "success", "tools": tools}));
            return ExitCode::SUCCESS;
        }
        let rows: Vec<Vec<String>> = listed
            .iter()
            .map(|(space, entry)| match &entry.result {
                Ok(tool) => vec![
                    tool.manifest.tool_id.to_string(),
                    tool.manifest.version.to_string(),
                    tool.space.to_string(),
                    tool.manifest.tool_type.clone(),
                    paint(DIM, tool.manifest.description.clone().unwrap_or_default()),
                ],
                Err(fault) => vec![
                    entry.id_hint.clone(),
                    "–".into(),
                    space.to_string(),
                    paint(BAD, fault.kind),
                    paint(DIM, &fault.message),
                ],
            })
            .collect();
        printer::table(&rows);
        ExitCode::SUCCESS
    }
}
