use kiwi_chain::{Identity, Tool};
use kiwi_model::{ErrorKind, Explain as _, Fault, Space, ToolRef};
use kiwi_space::Listed;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::everything;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, mark, paint};

/// Sign a tool with your key: where signatures are asked for, only what is signed may be called.
///
/// The signature lies beside the tool's file, or in its folder. A tool that changes has to be signed again. Your key is made
/// when you first need it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The tool, and after `@` the versions that will do.
    tool: String,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Signs.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let tool = written_here(context, &ToolRef::parse(&self.tool)?)?;
        let spaces = context.kernel.spaces();
        let signed = spaces.sign(tool.space, Path::new(&tool.path), &tool.integrity.to_string());
        let (file, signature) = signed.map_err(|error| error.fault())?;
        if self.json {
            let object = json!({
                "tool_id": tool.manifest.tool_id, "version": tool.manifest.version, "integrity": tool.integrity,
                "key": signature.key, "signature_file": file,
            });
            printer::json(&printer::with_status(object, None));
        } else {
            let name = paint(BOLD, tool.name());
            let key = paint(DIM, format!("by {}", signature.key));
            printer::line(format!("{} {name} is signed in {} {key}", mark(true), context.shown(&file)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The tool that is meant, where it is one that somebody writes here. Whether its signature is missing or out of date does
/// not matter.
fn written_here(context: &Context, ask: &ToolRef) -> Result<Arc<Tool>, Fault> {
    let is_meant = |listed: &Listed| match &listed.result {
        Ok(tool) => {
            let (id, version) = (&tool.manifest.tool_id, &tool.manifest.version);
            *id == ask.id && ask.requirement.as_ref().is_none_or(|asked| asked.matches(version))
        }
        Err(_) => listed.id_hint == ask.id.as_str(),
    };
    for space in [Space::Project, Space::User] {
        let listed = everything(context, &[space]).into_iter().map(|(_, listed)| listed).filter(is_meant);
        let version = |listed: &Listed| listed.result.as_ref().ok().map(|tool| tool.manifest.version.clone());
        if let Some(listed) = listed.max_by_key(version) {
            let tool = listed.result?;
            return if tool.identity == Identity::Computed { Ok(tool) } else { Err(not_written(&tool)) };
        }
    }
    Err(not_written(&*context.kernel.find(ask)?))
}

fn not_written(tool: &Tool) -> Fault {
    let whose = if tool.space == Space::System { "it comes with Kiwi" } else { "it was installed" };
    let message = format!("{} was not written here: {whose}", tool.name());
    Fault::new(ErrorKind::SpaceViolation, message)
        .with_hint("your signature is for tools that lie in `tools/` of the project or of your own space")
}
