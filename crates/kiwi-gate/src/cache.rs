//! What Kiwi keeps to be faster, and what calls left behind: listing it, and removing what nobody used for long.

use jiff::Timestamp;
use kiwi_exec::{
    Environments, KeptEnvironment, KeptImage, KeptInterpreter, KeptSnapshot, Launcher, Leftover,
};
use kiwi_model::{Explain, Fault};
use kiwi_registry::KeptBlob;
use serde::Serialize;
use std::time::{Duration, SystemTime};

use crate::kernel::Kernel;
use crate::sharing::fetched;

/// A copy that no process knows about is left behind for certain after this long.
const CERTAIN: Duration = Duration::from_hours(24);

/// The cache of a kernel.
#[derive(Clone, Copy)]
pub struct Cache<'k>(&'k Kernel);

/// One thing that is kept.
#[derive(Debug, Clone, Serialize)]
pub struct CacheItem {
    /// What it is.
    pub kind: CacheKind,
    /// Its folder, file or name.
    pub name: String,
    /// What is in it.
    pub detail: String,
    /// Bytes on disk, where that is known.
    pub size: Option<u64>,
    /// When it was last used, where that is known.
    pub last_used: Option<String>,
    /// Whether it is in use now.
    pub in_use: bool,
    #[serde(skip)]
    kept: Kept,
    #[serde(skip)]
    used: Option<SystemTime>,
}

/// What something kept is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// A prepared environment of language packages.
    Environment,
    /// An environment whose making was interrupted.
    Unfinished,
    /// The version of an interpreter.
    Interpreter,
    /// An image built from a tool's files.
    Image,
    /// A container whose Kiwi is dead.
    Container,
    /// A private copy of a tool's files.
    Snapshot,
    /// A file that was fetched from a registry.
    Fetched,
}

#[derive(Debug, Clone)]
enum Kept {
    Environment(KeptEnvironment),
    Interpreter(KeptInterpreter),
    Image(KeptImage),
    Container(Leftover),
    Snapshot(KeptSnapshot),
    Fetched(KeptBlob),
}

impl Kernel {
    /// What is kept.
    pub fn cache(&self) -> Cache<'_> {
        Cache(self)
    }
}

impl Cache<'_> {
    /// Everything that is kept.
    pub async fn list(&self) -> Vec<CacheItem> {
        let preparer = &self.0.preparer;
        let mut items: Vec<CacheItem> = preparer.environments.kept().into_iter().map(environment).collect();
        items.extend(preparer.environments.interpreters().into_iter().map(interpreter));
        items.extend(preparer.containers.images().await.into_iter().map(image));
        items.extend(preparer.containers.leftovers().await.into_iter().map(container));
        items.extend(preparer.environments.launcher.snapshots().into_iter().map(snapshot));
        let fetched_files = fetched(self.0.spaces());
        items.extend(fetched_files.iter().flat_map(kiwi_registry::Cache::kept).map(fetched_file));
        items
    }

    /// Removes what was not used for so long, what was never finished and what was left behind; nothing that is in
    /// use. Gives what was removed, or with `dry_run` what would be.
    pub async fn prune(
        &self,
        older_than: Duration,
        now: SystemTime,
        dry_run: bool,
    ) -> Result<Vec<CacheItem>, Fault> {
        let mut gone = Vec::new();
        for item in self.list().await {
            if item.goes(older_than, now) && (dry_run || self.remove(&item.kept).await?) {
                gone.push(item);
            }
        }
        Ok(gone)
    }

    async fn remove(&self, kept: &Kept) -> Result<bool, Fault> {
        let preparer = &self.0.preparer;
        let removed = match kept {
            Kept::Environment(kept) => preparer.environments.remove(kept),
            Kept::Interpreter(kept) => Ok(Environments::forget(kept)),
            Kept::Image(kept) => preparer.containers.remove_image(kept).await,
            Kept::Container(kept) => preparer.containers.remove_leftover(kept).await,
            Kept::Snapshot(kept) => Ok(Launcher::remove_snapshot(kept)),
            Kept::Fetched(kept) => Ok(kiwi_registry::Cache::remove(kept)),
        };
        removed.map_err(|error| error.fault())
    }
}

impl CacheItem {
    fn goes(&self, older_than: Duration, now: SystemTime) -> bool {
        let is_older = |than: Duration| {
            let age = self.used.map(|used| now.duration_since(used).unwrap_or_default());
            age.is_none_or(|age| age >= than)
        };
        !self.in_use
            && match self.kind {
                CacheKind::Unfinished | CacheKind::Container => true,
                CacheKind::Snapshot => is_older(older_than.min(CERTAIN)),
                CacheKind::Environment | CacheKind::Interpreter | CacheKind::Image | CacheKind::Fetched => {
                    is_older(older_than)
                }
            }
    }

    fn new(kind: CacheKind, name: String, detail: String, used: Option<SystemTime>, kept: Kept) -> Self {
        let last_used = used.and_then(|used| Timestamp::try_from(used).ok()).map(|used| used.to_string());
        Self { kind, name, detail, size: None, last_used, in_use: false, kept, used }
    }
}

fn environment(kept: KeptEnvironment) -> CacheItem {
    let packages: Vec<String> =
        kept.installed.iter().map(|pin| format!("{}=={}", pin.name, pin.version)).collect();
    let (kind, detail) = match &kept.interpreter {
        Some(version) => {
            (CacheKind::Environment, format!("{} {version}: {}", kept.language.as_str(), packages.join(", ")))
        }
        None => (CacheKind::Unfinished, kept.language.as_str().to_owned()),
    };
    let name = kept.folder.display().to_string();
    let (size, in_use) = (Some(kept.size), kept.is_used);
    CacheItem {
        size,
        in_use,
        ..CacheItem::new(kind, name, detail, Some(kept.last_used), Kept::Environment(kept))
    }
}

fn interpreter(kept: KeptInterpreter) -> CacheItem {
    let name = kept.file.display().to_string();
    CacheItem::new(
        CacheKind::Interpreter,
        name,
        kept.version.clone(),
        Some(kept.asked),
        Kept::Interpreter(kept),
    )
}

fn image(kept: KeptImage) -> CacheItem {
    let detail = format!("{}, {}", kept.engine.kind.as_str(), kept.size);
    CacheItem::new(CacheKind::Image, kept.name.clone(), detail, kept.last_used, Kept::Image(kept))
}

fn container(kept: Leftover) -> CacheItem {
    let detail = kept.engine.kind.as_str().to_owned();
    CacheItem::new(CacheKind::Container, kept.name.clone(), detail, None, Kept::Container(kept))
}

fn snapshot(kept: KeptSnapshot) -> CacheItem {
    let name = kept.folder.display().to_string();
    let in_use = kept.is_used;
    let item =
        CacheItem::new(CacheKind::Snapshot, name, String::new(), Some(kept.made), Kept::Snapshot(kept));
    CacheItem { in_use, ..item }
}

fn fetched_file(kept: KeptBlob) -> CacheItem {
    let name = kept.file.display().to_string();
    let (size, used) = (Some(kept.size), Some(kept.last_used));
    CacheItem { size, ..CacheItem::new(CacheKind::Fetched, name, String::new(), used, Kept::Fetched(kept)) }
}
