//! The index of one tier: a folder that any number of processes read and one at a time writes.
//!
//! Text and vectors live in the same segments and become visible by one commit, so a process that is killed leaves the last
//! commit and some files that the next writer removes. An index is a cache of the items: whatever is wrong with it, it can be
//! made again.

mod check;
mod known;
mod view;
mod writer;

pub use check::Check;
pub use known::Known;
pub use view::{Counts, View};
pub use writer::{Prepared, Writer};

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use tantivy::directory::error::LockError;
use tantivy::directory::{Directory, MmapDirectory, RamDirectory};
use tantivy::tokenizer::TokenizerManager;
use tantivy::{IndexReader, ReloadPolicy, TantivyError};

use crate::contained::contained;
use crate::embed::Embedder;
use crate::error::SearchError;
use crate::text::{Fields, register};
use crate::vectors::{Coder, VectorPlugin};

/// Changes whenever an index of an earlier Kiwi cannot be used.
const FORMAT: &str = "1.2";
const LOCK: &str = "lock";
/// The file that names the segments.
const META: &str = "meta.json";

/// One index.
pub struct Index {
    /// Where it lies, and the folder of its lock; nothing for one in memory.
    folder: Option<PathBuf>,
    embedder: Arc<dyn Embedder>,
    coder: Coder,
    fields: Fields,
    tantivy: tantivy::Index,
    reader: IndexReader,
    current: Mutex<Option<Arc<View>>>,
    /// Whether its files were read and found as they were written.
    is_checked: AtomicBool,
}

/// What is written beside each commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Payload {
    /// Whether everything there was has been indexed.
    complete: bool,
}

/// Tells commits apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(u64, i64, i64);

impl Index {
    /// Opens the index for an embedder in a folder, making it if need be. What cannot be read is thrown away and made anew;
    /// the reason is returned beside it.
    pub fn open(
        folder: &Path,
        embedder: Arc<dyn Embedder>,
    ) -> Result<(Self, Option<SearchError>), SearchError> {
        let own = folder.join(name(embedder.id()));
        make_folder(folder)?;
        make_folder(&own)?;
        // Two that begin at once must not each write an empty beginning: the later one would undo what the first has indexed.
        let beginning = if own.join(META).exists() { None } else { Some(turn(&own)?) };
        let opened = Self::open_there(&own, Arc::clone(&embedder));
        drop(beginning);
        match opened {
            Ok(index) => Ok((index, None)),
            Err(why @ SearchError::Unusable { .. }) => Err(why),
            Err(damage) => {
                let _turn = turn(&own)?;
                // Whoever had the turn before may have mended it.
                if let Ok(index) = Self::open_there(&own, Arc::clone(&embedder)) {
                    return Ok((index, None));
                }
                clear(&own)?;
                Ok((Self::open_there(&own, embedder)?, Some(damage)))
            }
        }
    }

    /// Throws an index away and begins a new one.
    pub fn anew(folder: &Path, embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        let own = folder.join(name(embedder.id()));
        make_folder(folder)?;
        make_folder(&own)?;
        let _turn = turn(&own)?;
        clear(&own)?;
        Self::open_there(&own, embedder)
    }

    /// An index that lasts as long as the process.
    pub fn in_memory(embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        Self::of(None, RamDirectory::create(), embedder)
            .map_err(|error| SearchError::damaged(Path::new("memory"), &error))
    }

    /// Whether a folder has an index for an embedder.
    pub fn exists(folder: &Path, embedder: &dyn Embedder) -> bool {
        folder.join(name(embedder.id())).join(META).exists()
    }

    /// Throws away what other embedders and older versions left in a folder, as far as it can be and nobody writes there.
    pub fn remove_others(folder: &Path, embedder: &dyn Embedder) {
        let own = name(embedder.id());
        remove_where(folder, |name| name != own);
    }

    /// Throws away what older versions left in a folder for the same embedder, as far as it can be and nobody writes there.
    pub fn remove_older(folder: &Path, embedder: &dyn Embedder) {
        let own = name(embedder.id());
        let of_embedder = own.trim_start_matches(&format!("v{FORMAT}")).to_owned();
        remove_where(folder, |name| name != own && name.starts_with('v') && name.ends_with(&of_embedder));
    }

    fn open_there(own: &Path, embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        let directory = MmapDirectory::open(own)
            .map_err(|error| SearchError::unusable(own, std::io::Error::other(error)))?;
        let index = contained(|| Self::of(Some(own.to_owned()), directory, embedder))
            .ok_or_else(|| SearchError::unreadable(own))?
            .map_err(|error| judged(own, error))?;
        // Damage that shows at once shows here.
        index.view()?;
        Ok(index)
    }

    fn of(
        folder: Option<PathBuf>,
        directory: impl Into<Box<dyn Directory>>,
        embedder: Arc<dyn Embedder>,
    ) -> Result<Self, TantivyError> {
        let coder = Coder::new(embedder.dimensions());
        let (schema, fields) = Fields::schema(embedder.dimensions());
        let tokenizers = TokenizerManager::default();
        register(&tokenizers);
        let tantivy = tantivy::Index::builder()
            .schema(schema)
            .tokenizers(tokenizers)
            .register_plugin(Arc::new(VectorPlugin::new(coder.clone())))
            .open_or_create(directory)?;
        let reader = tantivy.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self {
            folder,
            embedder,
            coder,
            fields,
            tantivy,
            reader,
            current: Mutex::default(),
            is_checked: AtomicBool::default(),
        })
    }

    /// What the last commit made visible, whoever made it.
    pub fn view(&self) -> Result<Arc<View>, SearchError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mark = self.mark();
            if let Some(view) = current.as_ref().filter(|view| view.mark == mark) {
                return Ok(Arc::clone(view));
            }
            let looked = contained(|| self.look(mark)).unwrap_or_else(|| Err(self.unreadable()));
            match looked {
                Ok(view) => {
                    let view = Arc::new(view);
                    *current = Some(Arc::clone(&view));
                    return Ok(view);
                }
                // Another process has committed meanwhile, and what it no longer needs is gone: that is no damage.
                Err(_) if self.mark() != mark => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn look(&self, mark: Option<Mark>) -> Result<View, SearchError> {
        self.reader.reload().map_err(|error| self.judged(error))?;
        let meta = self.tantivy.load_metas().map_err(|error| self.judged(error))?;
        let payload: Payload =
            meta.payload.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        View::open(self, self.reader.searcher(), payload.complete, mark).map_err(|error| self.judged(error))
    }

    /// Waits for the turn to write.
    pub fn write(&self) -> Result<Writer<'_>, SearchError> {
        Writer::begin(self)
    }

    /// Where it lies.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Whose vectors it has.
    pub fn embedder(&self) -> &Arc<dyn Embedder> {
        &self.embedder
    }

    /// What changes with every commit: on disk, the file that names the segments is another one.
    fn mark(&self) -> Option<Mark> {
        use std::os::unix::fs::MetadataExt as _;
        match &self.folder {
            Some(folder) => {
                let meta = folder.join(META).metadata().ok()?;
                Some(Mark(meta.ino(), meta.mtime(), meta.mtime_nsec()))
            }
            None => self.tantivy.load_metas().ok().map(|meta| Mark(meta.opstamp, 0, 0)),
        }
    }

    fn judged(&self, error: TantivyError) -> SearchError {
        judged(self.place(), error)
    }

    fn unreadable(&self) -> SearchError {
        SearchError::unreadable(self.place())
    }

    fn place(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new("memory"))
    }
}

/// What the system refused is not the index's fault: only a file that is gone, or is another than it should be, is.
fn judged(folder: &Path, error: TantivyError) -> SearchError {
    match error {
        TantivyError::IoError(source) if is_of_the_system(&source) => {
            SearchError::unusable(folder, std::io::Error::new(source.kind(), source.to_string()))
        }
        TantivyError::LockFailure(LockError::IoError(source), _) => {
            SearchError::unusable(folder, std::io::Error::new(source.kind(), source.to_string()))
        }
        TantivyError::LockFailure(LockError::LockBusy, _) => {
            SearchError::unusable(folder, std::io::Error::other("another process writes to it"))
        }
        TantivyError::ErrorInThread(_) => SearchError::unusable(folder, std::io::Error::other(error)),
        error => SearchError::damaged(folder, &error),
    }
}

fn is_of_the_system(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull)
        || (error.raw_os_error().is_some() && error.kind() != NotFound)
}

/// Removes the indexes of such names from a folder. What somebody writes to or what cannot be removed now stays: nothing
/// depends on it, and whoever comes later tries again.
fn remove_where(folder: &Path, is_meant: impl Fn(&str) -> bool) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_meant)) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(_turn) = turn_now(&entry.path())
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A name for a folder.
fn name(embedder: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    format!("v{FORMAT}-{}", embedder.chars().map(plain).collect::<String>())
}

/// Makes a folder that git does not look into.
fn make_folder(folder: &Path) -> Result<(), SearchError> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|error| SearchError::unusable(folder, error))?;
    let _ = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(folder.join(".gitignore"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"*\n"));
    Ok(())
}

/// Waits until nobody else writes. The kernel gives the turn on when its holder is gone, however it went.
fn turn(folder: &Path) -> Result<File, SearchError> {
    let path = folder.join(LOCK);
    let unusable = |error| SearchError::unusable(&path, error);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(unusable)?;
    file.lock().map_err(unusable)?;
    Ok(file)
}

/// The turn, where nobody has it and it can be had.
fn turn_now(folder: &Path) -> Option<File> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Some(lock)
}

/// Removes everything but the lock.
fn clear(folder: &Path) -> Result<(), SearchError> {
    let unusable = |error| SearchError::unusable(folder, error);
    for entry in std::fs::read_dir(folder).map_err(unusable)?.flatten() {
        if entry.file_name() != LOCK {
            std::fs::remove_file(entry.path()).map_err(unusable)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
