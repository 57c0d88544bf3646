//! Many tools at once, for whoever measures: written as publishing writes them, without what only publishing has to check.

use kiwi_model::{Digest, Version};
use serde_json::{Value, json};

use super::Store;
use super::database::{Sql, values};
use crate::error::RegistryError;
use crate::protocol::{core_key, version_key};

const VERSIONS: u64 = 5;
const TOOLS: Sql = Sql::each(
    "INSERT INTO tools (tool_id, owner, visibility, description, tool_type, revision, created_at) \
     SELECT value ->> 0, 'one', 'public', '', 'script', 0, '' FROM json_each($1)",
    "INSERT INTO tools (tool_id, owner, visibility, description, tool_type, revision, created_at) \
     SELECT value ->> 0, 'one', 'public', '', 'script', 0, '' FROM json_array_elements(CAST($1 AS json))",
);
macro_rules! versions {
    ($each:literal) => {
        concat!(
            "INSERT INTO tool_versions (tool_id, version, version_key, core_key, is_early, integrity, manifest, tool_type, \
             description, executor, executor_id, executor_from, executor_below, executor_early, is_latest, published_at, publisher) \
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, 0, value ->> 4, value ->> 5, 'script', '', value ->> 6, \
             value ->> 6, '', '~', '', CAST(value ->> 7 AS BIGINT), '', 'one' FROM ",
            $each
        )
    };
}
const RELEASES: Sql =
    Sql::each(versions!("json_each($1)"), versions!("json_array_elements(CAST($1 AS json))"));
macro_rules! files {
    ($each:literal) => {
        concat!(
            "INSERT INTO tool_version_files (version_number, path, sha256, is_executable, size) SELECT v.number, 'tool.yaml', \
             value ->> 8, 0, 5 FROM ",
            $each,
            " JOIN tool_versions v ON v.tool_id = value ->> 0 AND v.version_key = value ->> 2"
        )
    };
}
const FILES: Sql = Sql::each(files!("json_each($1)"), files!("json_array_elements(CAST($1 AS json))"));

/// What a tool is for, in words of which some are everywhere and some rare.
pub(crate) fn description(number: u64) -> String {
    const VERBS: [&str; 8] = ["reads", "writes", "converts", "sends", "checks", "finds", "draws", "plans"];
    const THINGS: [&str; 9] =
        ["files", "mail", "weather", "money", "pictures", "routes", "tables", "music", "people"];
    let pick = |list: &[&'static str], by: u64| {
        usize::try_from(number / by)
            .ok()
            .and_then(|at| list.get(at % list.len()))
            .copied()
            .unwrap_or_default()
    };
    format!("{} {} for project {} of a team", pick(&VERBS, 1), pick(&THINGS, 8), number % 997)
}

/// Makes what all of them need.
pub(crate) async fn begin(store: &Store) -> Result<(), RegistryError> {
    store.ensure_user("one").await?;
    let mut transaction = store.database.begin().await?;
    let blob = "INSERT INTO blobs (digest, size, place, created_at) VALUES ($1, 5, 'database', '')";
    transaction.rows(blob, values![Digest::of(b"x").to_string()]).await?;
    transaction.commit().await
}

/// Adds tools `from..to`; every third runs on one that runs on one.
pub(crate) async fn load(store: &Store, from: u64, to: u64) -> Result<(), RegistryError> {
    let digest = Digest::of(b"x").to_string();
    for begin in (from..to).step_by(2000) {
        let (mut tools, mut versions): (Vec<Value>, Vec<Value>) = Default::default();
        for number in begin..to.min(begin + 2000) {
            let id = format!("t{number}");
            tools.push(json!([id]));
            let executor = match number % 3 {
                0 => "python_runtime".to_owned(),
                _ => format!("t{}", number - 1),
            };
            for minor in 0..VERSIONS {
                let version = Version::new(1, minor, 0);
                let manifest = json!({"tool_id": id, "version": version, "description": description(number)});
                versions.push(json!([
                    id,
                    version,
                    version_key(&version),
                    core_key(1, minor, 0),
                    Digest::of(format!("{id}{minor}").as_bytes()),
                    manifest.to_string(),
                    executor,
                    u64::from(minor + 1 == VERSIONS),
                    digest,
                ]));
            }
        }
        let mut transaction = store.database.begin().await?;
        transaction.rows(TOOLS, values![json!(tools).to_string()]).await?;
        let versions = json!(versions).to_string();
        transaction.rows(RELEASES, values![&versions]).await?;
        transaction.rows(FILES, values![versions]).await?;
        transaction.commit().await?;
    }
    store.catch_up().await
}
