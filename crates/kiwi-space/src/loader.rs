//! Loading an item of the project or user space.

use kiwi_chain::{Cache, Identity, Tool};
use kiwi_model::{File, FileEntry, Manifest, Space, ToolId, Version};
use std::path::PathBuf;
use std::sync::Arc;

use crate::assemble::{Meaning, Raw};
use crate::counters::{Counter, Counters};
use crate::error::{SpaceError, show};
use crate::gather::Gatherer;
use crate::kind::{Item, Kind, MANIFEST};
use crate::modules::{is_own, modules};
use crate::packages::{Evidence, Records};
use crate::root::Root;
use crate::signature;
use crate::take::LargeFiles;

/// Tools of this many bytes together are kept.
const KEPT_BYTES: usize = 64 << 20;
/// What a tool weighs beside its files: parsed documents, paths, digests.
const TOOL_WEIGHT: usize = 4096;

/// What is remembered between loads. Everything is keyed by content, so nothing here can be out of date.
pub(crate) struct Caches {
    pub(crate) tools: Cache<ToolKey, Arc<Tool>>,
    pub(crate) large: LargeFiles,
    pub(crate) records: Records,
    pub(crate) counters: Counters,
}

/// Everything a tool was made from, shared modules aside.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ToolKey {
    pub(crate) space: Space,
    pub(crate) path: String,
    pub(crate) files: Vec<FileEntry>,
    pub(crate) evidence: (Option<kiwi_model::Digest>, Option<kiwi_model::Digest>),
    pub(crate) signature: Option<Vec<u8>>,
}

impl Caches {
    pub(crate) fn new() -> Self {
        let weigh = |key: &ToolKey, tool: &Arc<Tool>| {
            let bytes: usize = tool.files.iter().map(size_in_memory).sum();
            bytes + TOOL_WEIGHT + key.files.len() * 256
        };
        Self {
            tools: Cache::weighted(KEPT_BYTES, weigh),
            large: LargeFiles::new(),
            records: Records::new(),
            counters: Counters::default(),
        }
    }
}

fn size_in_memory(file: &File) -> usize {
    match &file.content {
        kiwi_model::Content::Bytes(bytes) => bytes.len(),
        kiwi_model::Content::OnDisk(_) => 0,
    }
}

/// Loads items of one space.
pub(crate) struct Loader<'a> {
    pub(crate) space: Space,
    pub(crate) root: &'a Root,
    /// The user space, where packages are noted.
    pub(crate) user: Option<&'a Root>,
    /// Under which name this space's packages are noted.
    pub(crate) owner: &'a str,
    pub(crate) caches: &'a Caches,
}

impl Loader<'_> {
    fn gatherer(&self) -> Gatherer<'_> {
        Gatherer { root: self.root, large: &self.caches.large, counters: &self.caches.counters }
    }

    /// Reads an item whole. An error that [`SpaceError::is_absent`] says that there is no such tool any more.
    pub(crate) fn load(&self, item: &Item) -> Result<Arc<Tool>, SpaceError> {
        if item.id().is_reserved() {
            let path = show(&self.root.absolute(&item.main_file()));
            return Err(SpaceError::Reserved { id: item.id().clone(), space: self.space, path });
        }
        let evidence = match item {
            Item::Tool { .. } => Evidence::default(),
            Item::Package { id, version } => self.caches.records.evidence(
                self.root,
                self.user,
                self.owner,
                (id, version),
                &self.caches.counters,
            )?,
        };
        let files = self.files(item).map_err(|error| refused(item, &evidence, error))?;
        let key = ToolKey {
            space: self.space,
            path: show(&self.root.absolute(&main_file(item, &files))),
            files: files.iter().map(|file| file.entry.clone()).collect(),
            evidence: evidence.key(),
            signature: signature::read(self.root, &signature::beside(item))?,
        };
        if let Some(tool) = self.caches.tools.get(&key)
            && self.has_same_modules(item, &tool, &key)?
        {
            self.caches.counters.add(Counter::ToolHits);
            return Ok(tool);
        }
        self.caches.counters.add(Counter::ToolMisses);
        let mut tool = self.build(item, &item.relative(), key.path.clone(), files, &evidence)?;
        if let Some(bytes) = &key.signature {
            tool.signature = signature::judge(bytes, &tool, || format!(".ai/{}", signature::beside(item)));
        }
        let tool = Arc::new(tool);
        self.caches.tools.insert(key, Arc::clone(&tool));
        Ok(tool)
    }

    fn files(&self, item: &Item) -> Result<Vec<File>, SpaceError> {
        let relative = item.relative();
        match item {
            Item::Tool { kind: Kind::Folder, .. } => {
                // Not a tool, perhaps a large folder: found out before everything in it is read.
                if lacks_manifest(self.root, item) {
                    return Err(SpaceError::unreadable(
                        self.root.absolute(&item.main_file()),
                        std::io::ErrorKind::NotFound,
                    ));
                }
                self.gatherer().folder(&relative)
            }
            Item::Package { .. } => self.gatherer().folder(&relative),
            Item::Tool { .. } => Ok(vec![self.gatherer().file(&relative, file_name(&relative).to_owned())?]),
        }
    }

    /// Makes a tool from the files of an item; `relative` is where they lie.
    pub(crate) fn build(
        &self,
        item: &Item,
        relative: &str,
        path: String,
        files: Vec<File>,
        evidence: &Evidence,
    ) -> Result<Tool, SpaceError> {
        let (kind, main) = match item {
            Item::Package { id, .. } => main_of_package(id, &files),
            Item::Tool { kind: Kind::Folder, .. } => (Kind::Folder, MANIFEST.to_owned()),
            Item::Tool { kind, .. } => (*kind, file_name(relative).to_owned()),
        };
        let raw = Raw {
            id: item.id(),
            space: self.space,
            kind,
            path,
            main: &main,
            category: item.category(),
            files,
            reading: None,
        };
        self.build_raw(item, raw, evidence)
    }

    fn build_raw(&self, item: &Item, mut raw: Raw<'_>, evidence: &Evidence) -> Result<Tool, SpaceError> {
        let own = raw.entries();
        let understood = raw.understand().and_then(|meaning| match item {
            Item::Package { version, .. } => has_version(&raw, meaning, version),
            Item::Tool { .. } => Ok(meaning),
        });
        let mut meaning = match (understood, evidence.files()) {
            (Ok(meaning), _) => meaning,
            (Err(error), Some(recorded)) => return Err(raw.judge(&recorded, &name(item), error)),
            (Err(error), None) => return Err(error),
        };
        raw.files.extend(self.modules(item, &raw.path, &meaning.manifest, &own)?);
        let identity = evidence.identity();
        if matches!(item, Item::Package { .. }) && identity == Identity::Computed {
            meaning.warnings.push(format!("{} was put there by hand: it has no install record", raw.path));
        }
        raw.finish(meaning, identity)
    }

    fn modules(
        &self,
        item: &Item,
        path: &str,
        manifest: &Manifest,
        own: &[FileEntry],
    ) -> Result<Vec<File>, SpaceError> {
        match item {
            Item::Tool { .. } => modules(&self.gatherer(), path, manifest, own),
            Item::Package { .. } => {
                let folder = || self.root.absolute(&format!("{}/lib", item.relative()));
                brings_modules(path, &manifest.lib_imports, own, folder).map(|()| Vec::new())
            }
        }
    }

    /// A remembered tool is the right one only if the modules it imports did not change either.
    fn has_same_modules(&self, item: &Item, tool: &Tool, key: &ToolKey) -> Result<bool, SpaceError> {
        if tool.manifest.lib_imports.is_empty() {
            return Ok(true);
        }
        let now = self.modules(item, &key.path, &tool.manifest, &key.files)?;
        let then = tool.files.iter().skip(key.files.len());
        Ok(now.iter().map(|file| &file.entry).eq(then.map(|file| &file.entry)))
    }
}

/// What a package is read from: its manifest, or else the one file that has its id for a name. So a tool of one file is the
/// same tool as a package.
pub(crate) fn main_of_package(id: &ToolId, files: &[File]) -> (Kind, String) {
    let names = || files.iter().map(|file| file.entry.path.as_str());
    let one = names()
        .filter_map(|name| Some((Kind::of_file(name)?, name)))
        .find(|((stem, _), _)| *stem == id.as_str())
        .filter(|_| !names().any(|name| name == MANIFEST));
    one.map_or((Kind::Folder, MANIFEST.to_owned()), |((_, kind), name)| (kind, name.to_owned()))
}

/// What a package says, if it says the version that it lies under.
pub(crate) fn has_version(raw: &Raw<'_>, meaning: Meaning, version: &Version) -> Result<Meaning, SpaceError> {
    if meaning.manifest.version == *version {
        return Ok(meaning);
    }
    let (path, manifest) = (raw.path.clone(), meaning.manifest.version);
    Err(SpaceError::PackageVersion { path, manifest, folder: version.clone() })
}

/// A package brings its modules along: what lies in the space it lands in must not change it.
pub(crate) fn brings_modules(
    path: &str,
    names: &[String],
    own: &[FileEntry],
    folder: impl FnOnce() -> PathBuf,
) -> Result<(), SpaceError> {
    match names.iter().find(|name| !is_own(name, own)) {
        None => Ok(()),
        Some(name) => {
            Err(SpaceError::MissingModule { tool: path.to_owned(), module: name.clone(), folder: folder() })
        }
    }
}

/// The manifest or script of an item with these files, from the space's root.
fn main_file(item: &Item, files: &[File]) -> String {
    match item {
        Item::Package { id, .. } => format!("{}/{}", item.relative(), main_of_package(id, files).1),
        Item::Tool { .. } => item.main_file(),
    }
}

/// Whether an item has a folder, and no manifest in it.
pub(crate) fn lacks_manifest(root: &Root, item: &Item) -> bool {
    root.stat(&item.main_file()).is_none() && root.open_folder(&item.relative()).is_ok()
}

/// Something that cannot be a file of a package, in a package whose files were recorded, is a change like any other.
fn refused(item: &Item, evidence: &Evidence, error: SpaceError) -> SpaceError {
    match evidence.files() {
        Some(_) => SpaceError::Unfit { tool: name(item), why: error.to_string() },
        None => error,
    }
}

fn name(item: &Item) -> String {
    match item {
        Item::Package { id, version } => format!("{id}@{version}"),
        Item::Tool { id, .. } => id.to_string(),
    }
}

fn file_name(relative: &str) -> &str {
    relative.rsplit('/').next().unwrap_or_default()
}
