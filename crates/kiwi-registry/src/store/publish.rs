//! Publishing: everything about a version in one transaction, and a constraint that lets one of many win.

use kiwi_model::manifest::Executor;
use kiwi_model::{Digest, Integrity, ToolId, Version};
use serde_json::json;
use std::collections::HashMap;

use super::caller::{Caller, visible};
use super::database::{Sql, Transaction, Value, values};
use super::release::{digest, version as read_version};
use super::tools::{hold, settle, visibility_name};
use super::{Store, namespaces, now};
use crate::error::RegistryError;
use crate::protocol::{Bounds, FileInfo, Release, Signature, Visibility, core_key, namespace, version_key};

/// Digests that are told when they are missing.
const MOST_TOLD: usize = 100;

/// A version that was judged and is to be written.
pub(crate) struct NewVersion<'a> {
    pub tool_id: &'a ToolId,
    pub version: &'a Version,
    pub manifest: &'a serde_json::Value,
    pub integrity: Integrity,
    pub tool_type: &'a str,
    pub description: &'a str,
    pub executor: Option<&'a Executor>,
    pub files: &'a [FileInfo],
    pub signature: Option<&'a Signature>,
    pub visibility: Option<Visibility>,
    pub attempt: Option<&'a str>,
}

/// What became of it.
pub(crate) enum Published {
    New(Release),
    /// The same try was here before.
    Again(Release),
}

/// Blobs that the caller has shown to have, or may read anyway.
macro_rules! sizes {
    ($list:literal) => {
        concat!(
            "SELECT b.digest, b.size FROM blobs b WHERE b.digest IN (",
            $list,
            ") AND (EXISTS (SELECT 1 FROM blob_uploads u WHERE u.digest = b.digest AND u.user_name = $1) OR EXISTS \
             (SELECT 1 FROM tool_version_files f JOIN tool_versions v ON v.number = f.version_number \
             JOIN tools t ON t.tool_id = v.tool_id WHERE f.sha256 = b.digest AND ",
            visible!(),
            "))"
        )
    };
}
const SIZES: Sql = Sql::each(
    sizes!("SELECT value FROM json_each($3)"),
    sizes!("SELECT json_array_elements_text(CAST($3 AS json))"),
);
const FILES: Sql = Sql::each(
    "INSERT INTO tool_version_files (version_number, path, sha256, is_executable, size) \
     SELECT $1, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each($2)",
    "INSERT INTO tool_version_files (version_number, path, sha256, is_executable, size) \
     SELECT $1, value ->> 0, value ->> 1, CAST(value ->> 2 AS bigint), CAST(value ->> 3 AS bigint) \
     FROM json_array_elements(CAST($2 AS json))",
);
const VERSION: &str = "INSERT INTO tool_versions (tool_id, version, version_key, core_key, is_early, integrity, manifest, tool_type, \
     description, executor, executor_id, executor_from, executor_below, executor_early, is_latest, published_at, publisher, \
     attempt, signature_key, signature) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15, $16, $17, \
     $18, $19) ON CONFLICT (tool_id, version_key) DO NOTHING RETURNING number";
const TOOL: &str = "INSERT INTO tools (tool_id, namespace, owner, visibility, description, tool_type, revision, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, 0, $7) ON CONFLICT (tool_id) DO NOTHING";
const THERE: &str =
    "SELECT version, integrity, attempt FROM tool_versions WHERE tool_id = $1 AND version_key = $2";

impl Store {
    /// How long the blobs of these digests are, those that are there.
    pub async fn sizes(
        &self,
        caller: &Caller,
        digests: &[Digest],
    ) -> Result<HashMap<Digest, u64>, RegistryError> {
        let values = caller.values([Value::from(json!(digests).to_string())]);
        read_sizes(self.database.rows(SIZES, values).await?)
    }

    /// Whether a version is there already, and by which try. A caller who may not see it learns nothing.
    pub async fn is_taken(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        version: &Version,
    ) -> Result<bool, RegistryError> {
        if !self.is_there(caller, tool_id).await? {
            return Ok(false);
        }
        let values = values![tool_id.as_str(), version_key(version)];
        Ok(self.database.row(THERE, values).await?.is_some())
    }

    /// Writes a version, or says who was first.
    pub async fn publish(&self, caller: &Caller, new: &NewVersion<'_>) -> Result<Published, RegistryError> {
        let mut transaction = self.database.begin().await?;
        let id = new.tool_id.as_str();
        let space = namespace(new.tool_id);
        if let Some(space) = space {
            namespaces::claim(&mut transaction, caller, space).await?;
        }
        let owner = space.is_none().then(|| caller.user.clone());
        let visibility = visibility_name(new.visibility.unwrap_or_default());
        let values =
            values![id, space.map(str::to_owned), owner, visibility, new.description, new.tool_type, now()];
        transaction.rows(TOOL, values).await?;
        let held = match hold(&mut transaction, caller, new.tool_id).await {
            // Who tries to publish under a name learns that it is taken, or nobody could choose another.
            Err(RegistryError::Unknown { .. }) => {
                return Err(RegistryError::NotOwner { what: "the tool", name: id.to_owned() });
            }
            held => held?,
        };
        check_blobs(&mut transaction, caller, new.files).await?;
        let Some(mut row) = transaction.row(VERSION, version_values(caller, new)).await? else {
            return self.again(transaction, caller, new).await;
        };
        let files: Vec<_> = new
            .files
            .iter()
            .map(|file| json!([file.path, file.sha256, i64::from(file.is_executable), file.size]))
            .collect();
        transaction.rows(FILES, values![row.integer()?, json!(files).to_string()]).await?;
        settle(&mut transaction, new.tool_id, &held).await?;
        transaction.commit().await?;
        Ok(Published::New(self.release(caller, new.tool_id, new.version).await?))
    }

    /// Somebody was first: the same try, or another one.
    async fn again(
        &self,
        mut transaction: Transaction,
        caller: &Caller,
        new: &NewVersion<'_>,
    ) -> Result<Published, RegistryError> {
        let values = values![new.tool_id.as_str(), version_key(new.version)];
        let row = transaction.row(THERE, values).await?;
        drop(transaction);
        let mut row = row.ok_or_else(|| RegistryError::broken("a version is there and is not"))?;
        let (version, integrity) = (read_version(&row.text()?)?, digest(&row.text()?)?);
        let attempt = row.optional_text()?;
        let is_same = attempt.is_some() && attempt.as_deref() == new.attempt;
        if is_same && integrity == new.integrity && version == *new.version {
            return Ok(Published::Again(self.release(caller, new.tool_id, new.version).await?));
        }
        Err(RegistryError::Taken { tool_id: new.tool_id.clone(), version, integrity })
    }
}

fn version_values(caller: &Caller, new: &NewVersion<'_>) -> Vec<Value> {
    let bounds = |executor: &Executor| executor.requirement.as_ref().map_or_else(Bounds::any, Bounds::of);
    let bounds = new.executor.map(bounds);
    let executor = new.executor.map(|executor| match &executor.requirement {
        Some(requirement) => format!("{}@{requirement}", executor.id),
        None => executor.id.to_string(),
    });
    values![
        new.tool_id.as_str(),
        new.version.to_string(),
        version_key(new.version),
        core_key(new.version.major, new.version.minor, new.version.patch),
        !new.version.pre.is_empty(),
        new.integrity.to_string(),
        new.manifest.to_string(),
        new.tool_type,
        new.description,
        executor,
        new.executor.map(|executor| executor.id.to_string()),
        bounds.as_ref().map(|bounds| bounds.from.clone()),
        bounds.as_ref().map(|bounds| bounds.below.clone()),
        bounds.as_ref().map(|bounds| bounds.early.clone()),
        now(),
        &caller.user,
        new.attempt.map(str::to_owned),
        new.signature.map(|signature| signature.key.clone()),
        new.signature.map(|signature| signature.signature.clone()),
    ]
}

/// Every file must be there, as long as it was said to be.
async fn check_blobs(
    transaction: &mut Transaction,
    caller: &Caller,
    files: &[FileInfo],
) -> Result<(), RegistryError> {
    let digests: Vec<Digest> = files.iter().map(|file| file.sha256).collect();
    let values = caller.values([Value::from(json!(digests).to_string())]);
    let sizes = read_sizes(transaction.rows(SIZES, values).await?)?;
    compare(&sizes, files)
}

/// Holds what was said about files against what is there.
pub(crate) fn compare(sizes: &HashMap<Digest, u64>, files: &[FileInfo]) -> Result<(), RegistryError> {
    let mut missing: Vec<Digest> =
        files.iter().map(|file| file.sha256).filter(|digest| !sizes.contains_key(digest)).collect();
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        missing.truncate(MOST_TOLD);
        return Err(RegistryError::MissingBlobs { digests: missing });
    }
    for file in files {
        let size = sizes.get(&file.sha256).copied().unwrap_or_default();
        if size != file.size {
            return Err(RegistryError::WrongSize { path: file.path.clone(), size, said: file.size });
        }
    }
    Ok(())
}

fn read_sizes(rows: Vec<super::database::Row>) -> Result<HashMap<Digest, u64>, RegistryError> {
    rows.into_iter().map(|mut row| Ok((digest(&row.text()?)?, row.count()?))).collect()
}
