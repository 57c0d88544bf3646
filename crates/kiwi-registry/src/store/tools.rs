//! Tools, and what changes about them: who sees them, what is yanked, which version is the newest.

use kiwi_model::{ToolId, Version};

use super::Store;
use super::caller::{Caller, owned, visible};
use super::database::{Row, Transaction, Value, values};
use super::release::{digest, read, release, tool_id as read_id, version as read_version};
use crate::error::RegistryError;
use crate::protocol::{Release, ToolInfo, VersionInfo, Visibility, version_key};

const RELEASE: &str = concat!(
    "SELECT ",
    release!(),
    " FROM tools t JOIN tool_versions v ON v.tool_id = t.tool_id WHERE t.tool_id = $3 AND v.version_key = $4 AND ",
    visible!()
);
const TOOL: &str = concat!(
    "SELECT t.tool_id, t.description, t.tool_type, t.visibility, t.owner, t.namespace FROM tools t WHERE t.tool_id = $3 AND ",
    visible!()
);
/// Takes hold of a tool, so that whoever changes it does so one after another.
const HOLD: &str = "UPDATE tools SET revision = revision + 1 WHERE tool_id = $1 RETURNING number";
/// Whose a tool is that was taken hold of.
const WHOSE: &str = concat!(
    "SELECT CASE WHEN ",
    owned!(),
    " THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END, t.visibility FROM tools t WHERE t.number = $3"
);

/// The spelling of who sees a tool.
pub(super) fn visibility_name(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Public => "public",
        Visibility::Unlisted => "unlisted",
        Visibility::Private => "private",
    }
}

fn read_visibility(text: &str) -> Result<Visibility, RegistryError> {
    [Visibility::Public, Visibility::Unlisted, Visibility::Private]
        .into_iter()
        .find(|visibility| visibility_name(*visibility) == text)
        .ok_or_else(|| RegistryError::broken("a tool is visible in an unknown way"))
}

/// A tool that was taken hold of.
pub(super) struct Held {
    pub number: i64,
    pub is_public: bool,
}

/// Takes hold of a tool that is the caller's.
pub(super) async fn hold(
    transaction: &mut Transaction,
    caller: &Caller,
    tool_id: &ToolId,
) -> Result<Held, RegistryError> {
    let unknown = || RegistryError::unknown("tool", tool_id.as_str());
    let held = transaction.row(HOLD, values![tool_id.as_str()]).await?;
    let number = held.ok_or_else(unknown)?.integer()?;
    let whose = transaction.row(WHOSE, caller.values([Value::from(number)])).await?;
    let mut row = whose.ok_or_else(unknown)?;
    let (is_own, visibility) = (row.truth()?, row.text()?);
    match (is_own, visibility.as_str()) {
        (true, visibility) => Ok(Held { number, is_public: visibility == "public" }),
        // What a caller may not see is not there.
        (false, "private") => Err(unknown()),
        (false, _) => Err(RegistryError::NotOwner { what: "the tool", name: tool_id.to_string() }),
    }
}

impl Store {
    /// Whether there is a tool that the caller may see.
    pub(super) async fn is_there(&self, caller: &Caller, tool_id: &ToolId) -> Result<bool, RegistryError> {
        Ok(self.database.row(TOOL, caller.values([Value::from(tool_id.as_str())])).await?.is_some())
    }

    /// A tool and its versions.
    pub async fn tool(&self, caller: &Caller, tool_id: &ToolId) -> Result<ToolInfo, RegistryError> {
        let row = self.database.row(TOOL, caller.values([Value::from(tool_id.as_str())])).await?;
        let mut row = row.ok_or_else(|| RegistryError::unknown("tool", tool_id.as_str()))?;
        let (tool_id, description, tool_type) = (read_id(&row.text()?)?, row.text()?, row.text()?);
        let visibility = read_visibility(&row.text()?)?;
        let (owner, namespace) = (row.optional_text()?, row.optional_text()?);
        let owners = match (owner, namespace) {
            (Some(owner), _) => vec![owner],
            (None, Some(namespace)) => self.namespace(&namespace).await?.owners,
            (None, None) => Vec::new(),
        };
        let rows = self
            .database
            .rows(
                "SELECT version, integrity, published_at, publisher, yanked, is_latest FROM tool_versions WHERE tool_id = $1 ORDER BY version_key DESC",
                values![tool_id.as_str()],
            )
            .await?;
        let mut latest = None;
        let mut versions = Vec::with_capacity(rows.len());
        for mut row in rows {
            let info = VersionInfo {
                version: read_version(&row.text()?)?,
                integrity: digest(&row.text()?)?,
                published_at: row.text()?,
                publisher: row.text()?,
                yanked: row.optional_text()?,
            };
            if row.truth()? {
                latest = Some(info.version.clone());
            }
            versions.push(info);
        }
        Ok(ToolInfo { tool_id, description, tool_type, visibility, owners, latest, versions })
    }

    /// One version.
    pub async fn release(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        version: &Version,
    ) -> Result<Release, RegistryError> {
        let values = caller.values([Value::from(tool_id.as_str()), Value::from(version_key(version))]);
        let found =
            self.database.row(RELEASE, values).await?.map(|mut row: Row| read(&mut row)).transpose()?;
        found
            .filter(|release| release.version == *version)
            .ok_or_else(|| RegistryError::unknown("version", format!("{tool_id}@{version}")))
    }

    /// Changes who sees a tool.
    pub async fn change_tool(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        visibility: Visibility,
    ) -> Result<ToolInfo, RegistryError> {
        let mut transaction = self.database.begin().await?;
        let held = hold(&mut transaction, caller, tool_id).await?;
        let update = "UPDATE tools SET visibility = $2 WHERE number = $1";
        transaction.rows(update, values![held.number, visibility_name(visibility)]).await?;
        super::search::show(&mut transaction, held.number, visibility == Visibility::Public).await?;
        transaction.commit().await?;
        self.tool(caller, tool_id).await
    }

    /// Yanks a version, or takes the yank back.
    pub async fn yank(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        version: &Version,
        reason: Option<String>,
    ) -> Result<Release, RegistryError> {
        let mut transaction = self.database.begin().await?;
        let held = hold(&mut transaction, caller, tool_id).await?;
        let update = "UPDATE tool_versions SET yanked = $4 WHERE tool_id = $1 AND version_key = $2 AND version = $3 RETURNING number";
        let values = values![tool_id.as_str(), version_key(version), version.to_string(), reason];
        let found = transaction.row(update, values).await?;
        found.ok_or_else(|| RegistryError::unknown("version", format!("{tool_id}@{version}")))?;
        settle(&mut transaction, tool_id, &held).await?;
        transaction.commit().await?;
        self.release(caller, tool_id, version).await
    }
}

/// Finds out anew which version is the newest, and what is told and found of the tool by it.
pub(super) async fn settle(
    transaction: &mut Transaction,
    tool_id: &ToolId,
    held: &Held,
) -> Result<(), RegistryError> {
    let id = tool_id.as_str();
    // An early version is the newest only where there is no other.
    let newest = transaction
        .row(
            "SELECT number, version, tool_type, description, manifest FROM tool_versions WHERE tool_id = $1 AND yanked IS NULL \
             ORDER BY is_early, version_key DESC LIMIT 1",
            values![id],
        )
        .await?;
    let forget = "UPDATE tool_versions SET is_latest = 0 WHERE tool_id = $1 AND is_latest = 1";
    transaction.rows(forget, values![id]).await?;
    let Some(mut newest) = newest else {
        return super::search::forget(transaction, held.number).await;
    };
    let (number, version) = (newest.integer()?, newest.text()?);
    let (tool_type, description, manifest) = (newest.text()?, newest.text()?, newest.text()?);
    transaction.rows("UPDATE tool_versions SET is_latest = 1 WHERE number = $1", values![number]).await?;
    let update = "UPDATE tools SET tool_type = $2, description = $3 WHERE number = $1";
    transaction.rows(update, values![held.number, &tool_type, &description]).await?;
    let manifest = serde_json::from_str(&manifest).map_err(RegistryError::broken)?;
    let item = super::item::item(id, &version, &tool_type, &manifest);
    super::search::remember(transaction, held, &item).await
}
