//! Having versions with all their bytes, each hashed before anybody sees it.

use kiwi_model::{Digest, ToolId, Version, VersionReq, integrity_of};
use kiwi_space::{ItemSignature, NewFile};
use std::collections::HashMap;
use tokio::task::JoinSet;

use super::{Cache, ClientError, Registry};
use crate::protocol::{Chain, FileInfo, MOST_LINKS, Release, problems};

/// Blobs that are under way at a time.
const AT_ONCE: usize = 8;

/// Fetches from one registry into a cache.
pub struct Fetching<'a> {
    /// From where.
    pub registry: &'a Registry,
    /// What is here already, and where the rest goes.
    pub cache: &'a Cache,
    /// Told how many bytes of how many are here.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// A version with the bytes of its files.
#[derive(Debug)]
pub struct Fetched {
    /// What the registry says about it, found to be so.
    pub release: Release,
    files: Vec<(FileInfo, Vec<u8>)>,
}

impl Fetched {
    /// Its files, for whoever installs them; its signature among them.
    pub fn with_files<T>(&self, work: impl FnOnce(&[NewFile<'_>]) -> T) -> T {
        let signature =
            self.release.item_signature().map(|it| serde_json::to_vec_pretty(&it).unwrap_or_default());
        let mut files: Vec<NewFile<'_>> = self
            .files
            .iter()
            .map(|(file, bytes)| NewFile { path: &file.path, bytes, is_executable: file.is_executable })
            .collect();
        if let Some(signature) = &signature {
            files.push(NewFile { path: SIGNATURE, bytes: signature, is_executable: false });
        }
        work(&files)
    }
}

/// Where the signature of a package lies in it.
const SIGNATURE: &str = "kiwi.sig";

impl Release {
    /// `id@version`, as messages name it.
    pub fn name(&self) -> String {
        format!("{}@{}", self.tool_id, self.version)
    }

    /// Its signature in the form that lies beside an item.
    pub fn item_signature(&self) -> Option<ItemSignature> {
        let signature = self.signature.as_ref()?;
        Some(ItemSignature {
            integrity: self.integrity.to_string(),
            key: signature.key.clone(),
            signature: signature.signature.clone(),
        })
    }

    /// Whether what it says about itself agrees: its hash with its document and its files' hashes, its signature with its hash.
    pub fn check(&self) -> Result<(), ClientError> {
        let tool = self.name();
        let unfit = |why: String| ClientError::Unfit { tool: tool.clone(), why };
        if let Some(problem) = problems(&self.files).first() {
            return Err(unfit(problem.to_string()));
        }
        let entries: Vec<_> = self.files.iter().map(FileInfo::entry).collect();
        let computed = integrity_of(&self.tool_id, &self.version, &self.manifest, &entries)
            .map_err(|error| unfit(error.to_string()))?;
        if computed != self.integrity {
            return Err(ClientError::Differs {
                what: "the manifest".to_owned(),
                tool,
                computed: computed.to_string(),
                expected: self.integrity.to_string(),
            });
        }
        match self.item_signature() {
            Some(signature) if !signature.is_sound() => Err(ClientError::WrongSignature { tool }),
            _ => Ok(()),
        }
    }
}

impl Fetching<'_> {
    /// A tool with everything it runs on, as the registry says now, or where nobody answers as it said last (`true`).
    pub async fn chain(
        &self,
        id: &ToolId,
        requirement: Option<&VersionReq>,
    ) -> Result<(Chain, bool), ClientError> {
        let url = self.registry.url();
        let kept = self.cache.chain(url, id, requirement);
        // Where there is something to fall back on, nobody waits long.
        let asked = if kept.is_some() { self.registry.clone().hurried() } else { self.registry.clone() };
        let (chain, is_kept) = match (asked.resolve(id, requirement).await, kept) {
            (Ok(chain), _) => (chain, false),
            (Err(error), Some(kept)) if error.is_offline() => (kept, true),
            (Err(error), _) => return Err(error),
        };
        let nonsense = |why: &str| ClientError::Nonsense { url: url.to_owned(), why: why.to_owned() };
        let first = chain.links.first().ok_or_else(|| nonsense("a chain has no links"))?;
        if first.release.tool_id != *id || chain.links.len() > MOST_LINKS {
            return Err(nonsense("a chain is not the one that was asked for"));
        }
        for link in &chain.links {
            link.release.check()?;
        }
        if !is_kept {
            self.cache.keep_chain(url, id, requirement, &chain)?;
            for link in &chain.links {
                self.cache.keep_release(url, &link.release)?;
            }
        }
        Ok((chain, is_kept))
    }

    /// One version, from the cache where it was fetched before: it cannot have changed.
    pub async fn release(&self, id: &ToolId, version: &Version) -> Result<Release, ClientError> {
        let url = self.registry.url();
        if let Some(release) = self.cache.release(url, id, version)
            && release.check().is_ok()
        {
            return Ok(release);
        }
        let release = self.registry.release(id, version).await?;
        if release.tool_id != *id || release.version != *version {
            let why = format!("it answers with {} where {id}@{version} was asked for", release.name());
            return Err(ClientError::Nonsense { url: url.to_owned(), why });
        }
        release.check()?;
        self.cache.keep_release(url, &release)?;
        Ok(release)
    }

    /// These versions with their bytes.
    pub async fn files(&self, releases: Vec<Release>) -> Result<Vec<Fetched>, ClientError> {
        let mut wanted: HashMap<Digest, (u64, String, String)> = HashMap::new();
        for release in &releases {
            for file in &release.files {
                wanted.insert(file.sha256, (file.size, release.name(), file.path.clone()));
            }
        }
        let total: u64 = wanted.values().map(|(size, ..)| size).sum();
        let mut bytes: HashMap<Digest, Vec<u8>> = HashMap::with_capacity(wanted.len());
        let mut lacking = Vec::new();
        let mut done = 0;
        for (digest, (size, tool, path)) in wanted {
            match self.cache.blob(&digest) {
                Some(here) if here.len() as u64 == size => {
                    done += size;
                    bytes.insert(digest, here);
                }
                _ => lacking.push((digest, size, tool, path)),
            }
        }
        (self.progress)(done, total);
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some((digest, size, tool, path)) = lacking.pop()
            {
                let registry = self.registry.clone();
                under_way.spawn(async move {
                    let came = registry.blob(&digest, size).await?;
                    let computed = Digest::of(&came);
                    if computed == digest && came.len() as u64 == size {
                        return Ok((digest, came));
                    }
                    let (computed, expected) = (computed.to_string(), digest.to_string());
                    Err(ClientError::Differs { what: format!("`{path}`"), tool, computed, expected })
                });
            }
            let Some(came) = under_way.join_next().await else { break };
            let (digest, came) = came.map_err(|error| ClientError::Nonsense {
                url: self.registry.url().to_owned(),
                why: error.to_string(),
            })??;
            // At once, so that what is cut off goes on from here.
            self.cache.keep_blob(&digest, &came)?;
            done += came.len() as u64;
            (self.progress)(done, total);
            bytes.insert(digest, came);
        }
        let with_files = |release: Release| Fetched {
            files: release
                .files
                .iter()
                .map(|file| (file.clone(), bytes.get(&file.sha256).cloned().unwrap_or_default()))
                .collect(),
            release,
        };
        Ok(releases.into_iter().map(with_files).collect())
    }
}
