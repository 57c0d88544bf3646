//! A tool with everything it runs on: one question, however long the chain.

use kiwi_model::{ToolId, ToolRef, VersionReq};
use semver::Op;

use super::Store;
use super::caller::{Caller, visible};
use super::database::Value;
use super::release::{read, release};
use crate::error::RegistryError;
use crate::protocol::{Beyond, Bounds, Chain, Link, MOST_LINKS};

/// The newest version that is in bounds and that the caller may see: of `$tool`, between `$from` and `$below`.
macro_rules! newest {
    ($tool:literal, $from:literal, $below:literal, $early:literal, $yanked:literal) => {
        concat!(
            "(SELECT c.number FROM tools t JOIN tool_versions c ON c.tool_id = t.tool_id WHERE t.tool_id = ",
            $tool,
            " AND c.version_key >= ",
            $from,
            " AND c.version_key < ",
            $below,
            " AND (c.is_early = 0 OR ",
            $early,
            " LIKE '%|' || c.core_key || '%') AND ",
            $yanked,
            " AND ",
            visible!(),
            " ORDER BY c.version_key DESC LIMIT 1)"
        )
    };
}

/// Walks from executor to executor. A tool that was met already ends the walk, and so does the depth; what the last link
/// runs on tells which of the two it was, or that the registry goes no further.
const WALK: &str = concat!(
    "WITH RECURSIVE walk (depth, number, met) AS (\
     SELECT CAST(0 AS BIGINT), v.number, '|' || v.tool_id || '|' FROM tool_versions v WHERE v.number = ",
    newest!("$3", "$4", "$5", "$6", "(c.yanked IS NULL OR $7 = 1)"),
    " UNION ALL \
     SELECT walk.depth + 1, v.number, walk.met || v.tool_id || '|' FROM walk \
     JOIN tool_versions p ON p.number = walk.number JOIN tool_versions v ON v.number = ",
    newest!("p.executor_id", "p.executor_from", "p.executor_below", "p.executor_early", "c.yanked IS NULL"),
    " WHERE walk.depth < $8 AND replace(walk.met, '|' || p.executor_id || '|', '') = walk.met) \
     SELECT walk.depth, (SELECT count(*) FROM tools t WHERE t.tool_id = v.executor_id AND ",
    visible!(),
    "), ",
    release!(),
    " FROM walk JOIN tool_versions v ON v.number = walk.number ORDER BY walk.depth"
);

/// The newest version in bounds that was yanked.
const YANKED: &str = concat!(
    "SELECT v.number FROM tool_versions v WHERE v.number = ",
    newest!("$3", "$4", "$5", "$6", "c.yanked IS NOT NULL"),
);

impl Store {
    /// The chain of a tool.
    pub async fn resolve(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        requirement: Option<&VersionReq>,
    ) -> Result<Chain, RegistryError> {
        let bounds = requirement.map_or_else(Bounds::any, Bounds::of);
        let values = caller.values([
            Value::from(tool_id.as_str()),
            Value::from(bounds.from),
            Value::from(bounds.below),
            Value::from(bounds.early),
            // Whoever names a version has it from a lockfile, and those outlive a yank.
            Value::from(requirement.is_some_and(is_exact)),
            Value::from(i64::try_from(MOST_LINKS).unwrap_or(i64::MAX)),
        ]);
        let mut links = Vec::new();
        let mut is_known = false;
        for mut row in self.database.rows(WALK, values).await? {
            let depth = u32::try_from(row.integer()?).map_err(RegistryError::broken)?;
            is_known = row.truth()?;
            links.push(Link { depth, release: read(&mut row)? });
        }
        let Some(last) = links.last() else {
            return Err(self.nothing(caller, tool_id, requirement).await?);
        };
        if links.len() > MOST_LINKS {
            return Err(RegistryError::TooDeep { tool_id: tool_id.clone(), most: MOST_LINKS });
        }
        let executor = last.release.executor.as_deref();
        let Some(executor) = executor.and_then(|text| ToolRef::parse(text).ok()) else {
            return Ok(Chain { links, beyond: None });
        };
        if links.iter().any(|link| link.release.tool_id == executor.id) {
            return Err(RegistryError::Cycle { tool_id: tool_id.clone(), again: executor.id.to_string() });
        }
        let beyond = Beyond {
            tool_id: executor.id.to_string(),
            requirement: executor.requirement.map(|it| it.to_string()),
            is_known,
        };
        Ok(Chain { links, beyond: Some(beyond) })
    }

    /// Why there is no first link.
    async fn nothing(
        &self,
        caller: &Caller,
        tool_id: &ToolId,
        requirement: Option<&VersionReq>,
    ) -> Result<RegistryError, RegistryError> {
        if !self.is_there(caller, tool_id).await? {
            return Ok(RegistryError::unknown("tool", tool_id.as_str()));
        }
        let tool_id = tool_id.clone();
        let Some(requirement) = requirement else {
            return Ok(RegistryError::NoVersion { tool_id, requirement: None });
        };
        let bounds = Bounds::of(requirement);
        let values = caller.values([
            Value::from(tool_id.as_str()),
            Value::from(bounds.from),
            Value::from(bounds.below),
            Value::from(bounds.early),
        ]);
        let was_yanked = !self.database.rows(YANKED, values).await?.is_empty();
        let requirement = requirement.to_string();
        Ok(if was_yanked {
            RegistryError::Yanked { tool_id, requirement }
        } else {
            RegistryError::NoVersion { tool_id, requirement: Some(requirement) }
        })
    }
}

/// Whether one version alone will do.
fn is_exact(requirement: &VersionReq) -> bool {
    match requirement.comparators.as_slice() {
        [one] => one.op == Op::Exact && one.patch.is_some(),
        _ => false,
    }
}
