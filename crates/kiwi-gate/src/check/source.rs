//! Lines of manifests.

use kiwi_chain::Tool;
use kiwi_model::{Content, yaml};
use std::path::Path;

/// The line on which a key of a tool's YAML manifest stands, or the nearest key around it; none for a tool that is a
/// script, or has no such key.
pub fn line_of(tool: &Tool, pointer: &str) -> Option<u64> {
    let path = Path::new(&tool.path);
    let name = path.file_name()?.to_str()?;
    path.extension().filter(|it| *it == "yaml" || *it == "yml")?;
    let file = tool.files.iter().find(|file| file.entry.path == name);
    let bytes = match file.map(|file| &file.content) {
        Some(Content::Bytes(bytes)) => bytes.to_vec(),
        // A folder's manifest is hashed as a document, not as a file.
        Some(Content::OnDisk(_)) | None => std::fs::read(&tool.path).ok()?,
    };
    let document = yaml::parse(&bytes).ok()?;
    let mut pointer = pointer;
    loop {
        let found = spellings(pointer).find(|pointer| document.value.pointer(pointer).is_some());
        if let Some(found) = found {
            return u64::try_from(document.place(&found).line).ok();
        }
        pointer = pointer.rsplit_once('/').map(|(around, _)| around).filter(|around| !around.is_empty())?;
    }
}

/// Where a manifest may have written a key.
fn spellings(pointer: &str) -> impl Iterator<Item = String> {
    let own = [pointer.to_owned(), format!("/manifest{pointer}")];
    let in_executor = pointer.strip_prefix("/config").map(|rest| {
        let rest = if rest == "/url" { "/endpoint" } else { rest };
        [format!("/executor{rest}"), format!("/manifest/executor{rest}")]
    });
    own.into_iter().chain(in_executor.into_iter().flatten())
}
