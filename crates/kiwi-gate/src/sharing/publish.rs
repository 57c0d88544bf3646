//! Giving a tool to a registry.

use kiwi_chain::{Form, Tool};
use kiwi_model::{Content, Digest, ErrorKind, Explain, Fault, Integrity, Space, ToolId, ToolRef, Version};
use kiwi_registry::ClientError;
use kiwi_registry::protocol::{FileInfo, Publication, Signature, Visibility, problems};
use std::collections::BTreeMap;
use uuid::Uuid;

use super::{Sharing, Transfer};

/// How a tool is published.
#[derive(Debug, Clone, Copy, Default)]
pub struct Publish {
    /// Everything but the publishing.
    pub dry_run: bool,
    /// Who sees it, where it is new.
    pub visibility: Option<Visibility>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishState {
    /// It is published now.
    Published,
    /// The registry had exactly this already.
    Unchanged,
    /// It could be published.
    Rehearsed,
}

/// A version that is published, or could be.
#[derive(Debug, Clone)]
pub struct Published {
    /// What became of it.
    pub state: PublishState,
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// Its identity.
    pub integrity: Integrity,
    /// Whose signature it has.
    pub key: String,
    /// Its files.
    pub files: usize,
    /// Bytes that had to be sent.
    pub sent: u64,
    /// Worth saying.
    pub warnings: Vec<String>,
}

impl Sharing<'_> {
    /// Publishes a tool as a call would find it. A chain that could not run is never published.
    pub async fn publish(
        &self,
        ask: &ToolRef,
        how: Publish,
        progress: Transfer<'_>,
    ) -> Result<Published, Fault> {
        let plan = self.parts.planner.free(ask)?;
        plan.require().map_err(|error| error.fault())?;
        let Some((tool, below)) = plan.tools().split_first() else {
            return Err(Fault::new(ErrorKind::Internal, "a chain has no links"));
        };
        refuse_foreign(tool)?;
        let (contents, files) = contents(tool)?;
        if let Some(problem) = problems(&files).first() {
            return Err(Fault::new(
                ErrorKind::InvalidManifest,
                format!("{} cannot be published: {problem}", tool.name()),
            ));
        }
        for link in below.iter().filter(|link| link.space != Space::System) {
            self.has_below(tool, link).await?;
        }
        let signed = self.spaces().signature(&tool.integrity.to_string()).map_err(|error| error.fault())?;
        let mut published = Published {
            state: PublishState::Rehearsed,
            tool_id: tool.manifest.tool_id.clone(),
            version: tool.manifest.version.clone(),
            integrity: tool.integrity,
            key: signed.key.clone(),
            files: files.len(),
            sent: 0,
            warnings: plan.warnings(),
        };
        if let Some(state) = self.is_there(&published).await? {
            return Ok(Published { state, ..published });
        }
        let missing = self.registry.missing(contents.keys().copied().collect()).await.map_err(Fault::from)?;
        let total: u64 =
            missing.iter().filter_map(|digest| contents.get(digest)).map(|it| it.len() as u64).sum();
        published.sent = total;
        if how.dry_run {
            return Ok(published);
        }
        let mut done = 0;
        progress(done, total);
        for digest in &missing {
            let Some(bytes) = contents.get(digest) else { continue };
            self.registry.put_blob(digest, bytes.clone()).await.map_err(Fault::from)?;
            done += bytes.len() as u64;
            progress(done, total);
        }
        let publication = Publication {
            manifest: tool.document.clone(),
            files,
            integrity: tool.integrity,
            signature: Some(Signature { key: signed.key, signature: signed.signature }),
            visibility: how.visibility,
        };
        let attempt = Uuid::now_v7().to_string();
        let (id, version) = (&published.tool_id, &published.version);
        published.state = match self.registry.publish(id, version, &publication, &attempt).await {
            Ok(_) => PublishState::Published,
            Err(ClientError::Refused(refused)) if refused.kind == ErrorKind::VersionConflict => {
                // Somebody was faster: with the same, perhaps.
                self.is_there(&published).await?.ok_or(*refused)?
            }
            Err(error) => return Err(Fault::from(error)),
        };
        Ok(published)
    }

    /// Whether the registry has this version already. Another content under its name is a conflict.
    async fn is_there(&self, wanted: &Published) -> Result<Option<PublishState>, Fault> {
        match self.registry.release(&wanted.tool_id, &wanted.version).await {
            Ok(release) if release.integrity == wanted.integrity => Ok(Some(PublishState::Unchanged)),
            Ok(release) => Err(Fault::new(
                ErrorKind::VersionConflict,
                format!("{}@{} is published already, with another content", wanted.tool_id, wanted.version),
            )
            .with_hint("a version never changes: give it a new one")
            .with_details(serde_json::json!({"published": release.integrity, "here": wanted.integrity}))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::from(error)),
        }
    }

    /// Who installs the tool must get what it runs on.
    async fn has_below(&self, tool: &Tool, link: &Tool) -> Result<(), Fault> {
        let (id, version) = (&link.manifest.tool_id, &link.manifest.version);
        match self.registry.release(id, version).await {
            Ok(release) if release.integrity == link.integrity => Ok(()),
            Ok(_) => Err(Fault::new(
                ErrorKind::VersionConflict,
                format!(
                    "{} runs on {}, and the registry has another content under that version",
                    tool.name(),
                    link.name()
                ),
            )
            .with_hint("give it a new version and publish that first")),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(Fault::new(
                ErrorKind::NotFound,
                format!("{} runs on {}, which the registry does not have", tool.name(), link.name()),
            )
            .with_hint(format!("publish it first: `kiwi publish {id}`"))),
            Err(error) => Err(Fault::from(error)),
        }
    }
}

fn refuse_foreign(tool: &Tool) -> Result<(), Fault> {
    let why = match (tool.space, tool.form) {
        (Space::System, _) => "it comes with Kiwi: every client has it",
        (_, Form::Upstream) => "it belongs to an MCP server",
        _ => return Ok(()),
    };
    Err(Fault::new(ErrorKind::SpaceViolation, format!("{} cannot be published: {why}", tool.name())))
}

/// Bytes by their hashes.
type Contents = BTreeMap<Digest, Vec<u8>>;

/// The bytes of a tool's files, and what is said about them. Bytes that are not held are read and hashed again.
fn contents(tool: &Tool) -> Result<(Contents, Vec<FileInfo>), Fault> {
    let mut contents = Contents::new();
    let mut files = Vec::with_capacity(tool.files.len());
    for file in &tool.files {
        let bytes = match &file.content {
            Content::Bytes(bytes) => bytes.to_vec(),
            Content::OnDisk(path) => fs_err::read(path).map_err(|error| {
                Fault::new(ErrorKind::Internal, error.to_string()).with_hint("see that it can be read")
            })?,
        };
        let entry = &file.entry;
        if Digest::of(&bytes) != entry.sha256 {
            let message = format!("`{}` of {} changed while it was published", entry.path, tool.name());
            return Err(Fault::new(ErrorKind::IntegrityMismatch, message).with_hint("try again"));
        }
        files.push(FileInfo {
            path: entry.path.clone(),
            sha256: entry.sha256,
            is_executable: entry.is_executable,
            size: bytes.len() as u64,
        });
        contents.insert(entry.sha256, bytes);
    }
    Ok((contents, files))
}
