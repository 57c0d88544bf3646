//! What is in a folder.

use kiwi_gate::Glob;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// More entries than anybody reads.
const MOST_ENTRIES: usize = 10_000;

/// Lists a folder down to a depth, sorted by path. Links are named, not followed.
pub(super) fn list(path: &Path, depth: usize, glob: Option<&str>) -> Result<Value, String> {
    let glob = glob.map(Glob::path).transpose().map_err(|why| format!("`glob` cannot be read: {why}"))?;
    let mut found = Found { glob, entries: Vec::new(), is_truncated: false };
    let shown = path.display();
    match fs::metadata(path) {
        Ok(folder) if folder.is_dir() => found.descend(path, "", depth),
        Ok(_) => return Err(format!("`{shown}` is not a folder")),
        Err(_) => return Err(format!("`{shown}`: there is no such file or folder")),
    }
    Ok(json!({"entries": found.entries, "truncated": found.is_truncated}))
}

struct Found {
    glob: Option<Glob>,
    entries: Vec<Value>,
    is_truncated: bool,
}

impl Found {
    fn descend(&mut self, folder: &Path, above: &str, depth: usize) {
        let mut entries: Vec<fs::DirEntry> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if self.entries.len() >= MOST_ENTRIES {
                self.is_truncated = true;
                return;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            let Ok(metadata) = entry.metadata() else { continue };
            let kind = match metadata.file_type() {
                kind if kind.is_dir() => "folder",
                kind if kind.is_symlink() => "link",
                kind if kind.is_file() => "file",
                _ => "other",
            };
            if self.glob.as_ref().is_none_or(|glob| glob.matches(&path)) {
                let bytes = metadata.is_file().then_some(metadata.len());
                self.entries.push(json!({"path": path, "type": kind, "bytes": bytes}));
            }
            if metadata.is_dir() && depth > 1 {
                self.descend(&entry.path(), &path, depth - 1);
            }
        }
    }
}
