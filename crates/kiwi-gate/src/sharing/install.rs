//! Having a tool from a registry, with everything it runs on.

use kiwi_chain::{Catalog as _, Pins, verify};
use kiwi_model::lockfile::LockLink;
use kiwi_model::{ErrorKind, Explain, Fault, Integrity, Space, ToolId, ToolRef, Version, VersionReq};
use kiwi_registry::protocol::{Beyond, Chain, Release};
use kiwi_registry::{ClientError, Fetched};
use kiwi_space::{Install, Slot, Staged};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

use super::{Sharing, Transfer};
use crate::lockfiles::Lockfiles;

/// What was installed.
#[derive(Debug, Clone)]
pub struct Installation {
    /// The tool first.
    pub chain: Vec<InstalledLink>,
    /// The lockfile that says so.
    pub lockfile: Option<PathBuf>,
    /// Whether nobody answered, and what the registry said before was used.
    pub is_offline: bool,
    /// Worth saying.
    pub warnings: Vec<String>,
}

/// One link of an installed chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledLink {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// Its identity.
    pub integrity: Integrity,
    /// What had to be done.
    pub state: LinkState,
}

/// What had to be done for a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// It was installed.
    Installed,
    /// It was there.
    Present,
}

impl Sharing<'_> {
    /// Installs a tool with everything it runs on, and freezes the chain.
    pub async fn install(
        &self,
        ask: &ToolRef,
        space: Space,
        progress: Transfer<'_>,
    ) -> Result<Installation, Fault> {
        self.is_lacking(&ask.id)?;
        let (chain, is_offline) = self.chain(ask, progress).await?;
        self.install_chain(&chain, space, is_offline, progress).await
    }

    /// What comes with Kiwi is here already, and no registry has it.
    fn is_lacking(&self, id: &ToolId) -> Result<(), Fault> {
        let own = self.spaces().candidates(id, Space::System).unwrap_or_default();
        let Some(own) = own.first() else { return Ok(()) };
        let message =
            format!("`{id}` comes with Kiwi, in version {}, and need not be installed", own.version);
        Err(Fault::new(ErrorKind::Usage, message).with_hint("it changes with Kiwi itself"))
    }

    /// What a registry would have installed.
    pub(super) async fn chain(&self, ask: &ToolRef, progress: Transfer<'_>) -> Result<(Chain, bool), Fault> {
        let fetching = self.fetching(progress);
        let (chain, is_offline) =
            fetching.chain(&ask.id, ask.requirement.as_ref()).await.map_err(Fault::from)?;
        if let Some(beyond) = &chain.beyond {
            self.reaches(&chain, beyond)?;
        }
        Ok((chain, is_offline))
    }

    pub(super) async fn install_chain(
        &self,
        chain: &Chain,
        space: Space,
        is_offline: bool,
        progress: Transfer<'_>,
    ) -> Result<Installation, Fault> {
        let releases: Vec<&Release> = chain.links.iter().map(|link| &link.release).collect();
        self.judge_yanked(&releases)?;
        let mut warnings = self.judge_signatures(&releases)?;
        let lacking: Vec<Release> = releases
            .iter()
            .filter(|release| !self.is_present(release, space))
            .map(|it| (*it).clone())
            .collect();
        // All of it is here and hashed before any of it lands.
        let fetched = self.fetching(progress).files(lacking).await.map_err(Fault::from)?;
        let mut landed: Vec<&Release> = Vec::new();
        for fetched in fetched.iter().rev() {
            match self.land(fetched, space) {
                Ok(more) => warnings.extend(more),
                Err(error) => {
                    self.take_back(&landed, space);
                    return Err(error);
                }
            }
            landed.push(&fetched.release);
        }
        let Some(root) = releases.first() else {
            return Err(Fault::new(ErrorKind::Internal, "a chain has no links"));
        };
        let frozen = landed.is_empty().then(|| self.frozen(&releases, space)).flatten();
        let lockfile = match frozen {
            Some(lockfile) => Ok(lockfile),
            None => self.freeze(root, space).await,
        };
        let lockfile = match lockfile {
            Ok(lockfile) => Some(lockfile),
            // What could never run is not left behind.
            Err(error) if is_unsound(&error) => {
                self.take_back(&landed, space);
                return Err(error);
            }
            Err(error) => {
                warnings.push(format!("{} is installed, but not frozen: {}", root.name(), error.message));
                None
            }
        };
        self.keep_standing(&landed, space);
        let state = |release: &Release| {
            let is_new = landed.iter().any(|it| it.tool_id == release.tool_id);
            if is_new { LinkState::Installed } else { LinkState::Present }
        };
        let link = |release: &&Release| InstalledLink {
            tool_id: release.tool_id.clone(),
            version: release.version.clone(),
            integrity: release.integrity,
            state: state(release),
        };
        Ok(Installation { chain: releases.iter().map(link).collect(), lockfile, is_offline, warnings })
    }

    /// What the registry does not have must be here.
    fn reaches(&self, chain: &Chain, beyond: &Beyond) -> Result<(), Fault> {
        let last = chain.links.last().map(|link| link.release.name()).unwrap_or_default();
        let wanted = beyond.requirement.as_ref().map_or_else(
            || beyond.tool_id.clone(),
            |requirement| format!("{}@{requirement}", beyond.tool_id),
        );
        let requirement = beyond.requirement.as_deref().and_then(|text| VersionReq::parse(text).ok());
        let here = ToolId::parse(&beyond.tool_id).ok().map(|id| ToolRef { id, requirement });
        let found = here.is_some_and(|ask| kiwi_chain::find(&self.parts.planner.catalogue, &ask).is_ok());
        if found {
            return Ok(());
        }
        let (kind, why) = if beyond.is_known {
            (ErrorKind::VersionConflict, "the registry has no such version")
        } else {
            (ErrorKind::NotFound, "neither the registry nor this machine has it")
        };
        Err(Fault::new(kind, format!("{last} runs on `{wanted}`, and {why}"))
            .with_hint("whoever publishes a tool publishes what it runs on first"))
    }

    /// Whether a version lies in a space already, as it is published. It is hashed only where it was touched since.
    fn is_present(&self, release: &Release, space: Space) -> bool {
        let spaces = self.spaces();
        let Ok(packages) = spaces.packages(space) else { return false };
        if packages.standing(&release.tool_id, &release.version) == Some(release.integrity) {
            return true;
        }
        let candidates = spaces.candidates(&release.tool_id, space).unwrap_or_default();
        let mut same = candidates.iter().filter(|candidate| candidate.version == release.version);
        let is_present = same.any(|candidate| {
            spaces
                .load(candidate)
                .is_ok_and(|tool| tool.integrity == release.integrity && verify(&tool).is_ok())
        });
        if is_present {
            self.keep_standing(&[release], space);
        }
        is_present
    }

    /// Spares the next installation the hashing of these, which were hashed just now.
    fn keep_standing(&self, releases: &[&Release], space: Space) {
        if let Ok(packages) = self.spaces().packages(space) {
            for release in releases {
                packages.keep_standing(&release.tool_id, &release.version, release.integrity);
            }
        }
    }

    /// The lockfile of this scope that says exactly this chain, which ends in what is here.
    fn frozen(&self, releases: &[&Release], space: Space) -> Option<PathBuf> {
        let root = releases.first()?;
        let category = root.manifest.get("category").and_then(serde_json::Value::as_str).unwrap_or_default();
        let stored = self.spaces().locks().load(category, &root.tool_id, &root.version).ok()??;
        let links = &stored.lock.resolved_chain;
        let has = |link: &LockLink, release: &Release| {
            (&link.tool_id, &link.version, link.integrity)
                == (&release.tool_id, &release.version, release.integrity)
        };
        let (ours, others) = links.split_at_checked(releases.len())?;
        let is_same = stored.scope == space
            && ours.iter().zip(releases).all(|(link, release)| has(link, release))
            && others.iter().all(|link| self.is_here(link));
        is_same.then_some(stored.path)
    }

    /// Whether a link is what this binary brings along.
    fn is_here(&self, link: &LockLink) -> bool {
        let candidates = self.spaces().candidates(&link.tool_id, Space::System).unwrap_or_default();
        candidates
            .iter()
            .any(|candidate| self.spaces().load(candidate).is_ok_and(|tool| tool.integrity == link.integrity))
    }

    /// Refuses what was yanked, unless somebody here agreed to it before: lockfiles outlive a yank.
    fn judge_yanked(&self, releases: &[&Release]) -> Result<(), Fault> {
        for release in releases {
            if let Some(why) = &release.yanked
                && !self.is_locked(release)
            {
                let message = format!("{} was yanked: {why}", release.name());
                return Err(Fault::new(ErrorKind::NotFound, message).with_hint(format!(
                    "`kiwi install {}` takes a version that was not; who has this one in a lockfile keeps it",
                    release.tool_id
                )));
            }
        }
        Ok(())
    }

    /// Whether a lockfile of the project or the user has a version.
    fn is_locked(&self, release: &Release) -> bool {
        let locks = self.spaces().locks();
        let has = |link: &LockLink| {
            (&link.tool_id, &link.version, link.integrity)
                == (&release.tool_id, &release.version, release.integrity)
        };
        [Space::Project, Space::User].into_iter().any(|space| {
            let entries = locks.entries(space, None, &mut |_, _| {}).into_iter().flatten();
            let mut sound = entries.filter(|entry| entry.problem.is_none());
            sound.any(|entry| locks.open(&entry).is_ok_and(|it| it.lock.resolved_chain.iter().any(has)))
        })
    }

    fn judge_signatures(&self, releases: &[&Release]) -> Result<Vec<String>, Fault> {
        let mut warnings = Vec::new();
        for release in releases {
            let key = release.signature.as_ref().map(|signature| signature.key.clone());
            let is_trusted = match &key {
                Some(key) => self.spaces().trusts(key).map_err(|error| error.fault())?,
                None => false,
            };
            if is_trusted {
                continue;
            }
            if self.requires_signature() {
                return Err(Fault::from(ClientError::Untrusted { tool: release.name(), key }));
            }
            if let Some(key) = key {
                warnings.push(format!("{} is signed by `{key}`, which is not trusted here", release.name()));
            }
        }
        Ok(warnings)
    }

    fn land(&self, fetched: &Fetched, space: Space) -> Result<Vec<String>, Fault> {
        let release = &fetched.release;
        let packages = self.spaces().packages(space).map_err(|error| error.fault())?;
        let at = format!("{:.0}", jiff::Timestamp::now());
        let installed = fetched.with_files(|files| {
            packages.install(&Install {
                id: &release.tool_id,
                version: &release.version,
                files: Staged::Memory(files),
                source: self.registry.url(),
                at: &at,
                expected: Some(release.integrity),
            })
        });
        installed.map(|installed| installed.warnings).map_err(|error| error.fault())
    }

    /// Removes what this installation brought; best effort, since it failed already.
    fn take_back(&self, landed: &[&Release], space: Space) {
        if let Ok(packages) = self.spaces().packages(space) {
            for release in landed {
                let _ = packages.remove(&release.tool_id, &release.version);
            }
        }
    }

    async fn freeze(&self, root: &Release, space: Space) -> Result<PathBuf, Fault> {
        let ask = ToolRef::exactly(root.tool_id.clone(), &root.version);
        let pins = Pins::exactly(root.tool_id.clone(), root.version.clone());
        let planner = self.parts.planner;
        let plan = planner.pinned(&planner.look(), &ask, &pins)?;
        plan.require().map_err(|error| error.fault())?;
        let lockfiles = Lockfiles { planner: self.parts.planner, preparer: self.parts.preparer };
        let mut lock = lockfiles.freeze_version(&root.tool_id, &root.version, &|_| ()).await?;
        lock.registry = Some(json!({"url": self.registry.url(), "fetched_at": lock.generated_at}));
        let saved = self.spaces().locks().save(space, &lock, Slot::Default);
        let saved = saved.map_err(|error| error.fault())?;
        Ok(saved.path)
    }
}

/// Whether a chain is wrong in itself, and not only on this machine.
fn is_unsound(error: &Fault) -> bool {
    matches!(
        error.kind,
        ErrorKind::ChainInvalid
            | ErrorKind::InvalidManifest
            | ErrorKind::IntegrityMismatch
            | ErrorKind::Cycle
            | ErrorKind::TooDeep
            | ErrorKind::VersionConflict
            | ErrorKind::SpaceViolation
            | ErrorKind::NotFound
    )
}
