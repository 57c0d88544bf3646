//! Shared modules: what a tool names in `lib_imports` is hashed into its files, as `lib/…`.

use kiwi_model::{File, FileEntry, Manifest};
use std::collections::BTreeMap;

use crate::error::{PathProblem, SpaceError};
use crate::gather::Gatherer;
use crate::kind::{LIB, TREES};
use crate::root::{Entry, is_inside};

/// What a module's name may leave out, language by language.
const EXTENSIONS: [&[&str]; 3] = [&["py"], &["sh"], &["js", "mjs", "cjs", "ts", "mts", "cts"]];

/// The modules of a tool that are not among its own files already. Of several with one name, the one of the language that the
/// tool is written in.
pub(crate) fn modules(
    gatherer: &Gatherer<'_>,
    tool: &str,
    manifest: &Manifest,
    own: &[FileEntry],
) -> Result<Vec<File>, SpaceError> {
    let mut files = BTreeMap::new();
    let names = &manifest.lib_imports;
    let entrypoint = manifest.entrypoint.as_deref().unwrap_or(tool);
    let language = entrypoint.rsplit_once('.').map_or("", |(_, extension)| extension);
    for name in names {
        if !is_inside(name) {
            return Err(SpaceError::BadPath {
                path: format!("{tool}: {}", name.escape_debug()),
                problem: PathProblem::NotInside,
            });
        }
        if is_own(name, own) {
            continue;
        }
        let found = find(gatherer, name, language)?;
        if found.is_empty() {
            let folder = gatherer.root.absolute(&format!("tools/{LIB}"));
            return Err(SpaceError::MissingModule { tool: tool.to_owned(), module: name.clone(), folder });
        }
        for file in found {
            if own.iter().any(|entry| entry.path == file.entry.path) {
                return Err(SpaceError::ModuleCollision { tool: tool.to_owned(), path: file.entry.path });
            }
            files.insert(file.entry.path.clone(), file);
        }
    }
    Ok(files.into_values().collect())
}

/// Whether a tool brings a module along, as an installed package must.
pub(crate) fn is_own(name: &str, own: &[FileEntry]) -> bool {
    spellings(name, "").iter().any(|spelling| {
        let file = format!("{LIB}/{spelling}");
        let folder = format!("{file}/");
        own.iter().any(|entry| entry.path == file || entry.path.starts_with(&folder))
    })
}

/// The paths a name can stand for: itself, itself with an extension, those of this one's language first, and Python's dotted
/// form.
fn spellings(name: &str, language: &str) -> Vec<String> {
    let mut extensions = EXTENSIONS;
    extensions.sort_by_key(|known| !known.contains(&language));
    let mut all = vec![name.to_owned()];
    all.extend(extensions.concat().into_iter().map(|extension| format!("{name}.{extension}")));
    if name.contains('.') && !name.contains('/') {
        let nested = name.replace('.', "/");
        all.push(nested.clone());
        all.push(format!("{nested}.py"));
    }
    all.retain(|spelling| is_inside(spelling));
    all
}

fn find(gatherer: &Gatherer<'_>, name: &str, language: &str) -> Result<Vec<File>, SpaceError> {
    for tree in TREES {
        for spelling in spellings(name, language) {
            let relative = format!("{tree}/{LIB}/{spelling}");
            let mut files = match gatherer.root.open_entry(&relative) {
                Ok(Entry::File(_)) => vec![gatherer.file(&relative, format!("{LIB}/{spelling}"))?],
                Ok(Entry::Folder) => {
                    let mut files = gatherer.folder(&relative)?;
                    for file in &mut files {
                        file.entry.path = format!("{LIB}/{spelling}/{}", file.entry.path);
                    }
                    files
                }
                Err(error) if error.is_absent() => continue,
                Err(error) => return Err(error),
            };
            files.extend(packages_around(gatherer, tree, &spelling)?);
            return Ok(files);
        }
    }
    Ok(Vec::new())
}

/// The `__init__.py` files that importing a nested Python module runs.
fn packages_around(gatherer: &Gatherer<'_>, tree: &str, spelling: &str) -> Result<Vec<File>, SpaceError> {
    let mut files = Vec::new();
    let mut inner = spelling;
    while let Some((outer, _)) = inner.rsplit_once('/') {
        let path = format!("{LIB}/{outer}/__init__.py");
        match gatherer.file(&format!("{tree}/{path}"), path) {
            Ok(file) => files.push(file),
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
        inner = outer;
    }
    Ok(files)
}
