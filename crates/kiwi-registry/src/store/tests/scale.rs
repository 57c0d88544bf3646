//! How long a chain and a search take, with few tools and with many. `KIWI_SOAK=1` makes them a hundred thousand.

use super::{block_on, postgres};
use crate::protocol::{core_key, version_key};
use crate::store::database::{Sql, values};
use crate::store::{Caller, Store};
use kiwi_model::{Digest, ToolId, Version};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

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

/// Words that descriptions are made of: some everywhere, some rare.
fn description(number: u64) -> String {
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

/// Adds tools `from..to`, each of which runs on a tool that runs on a tool.
async fn load(store: &Store, from: u64, to: u64) {
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
        let mut transaction = store.database.begin().await.unwrap();
        transaction.rows(TOOLS, values![json!(tools).to_string()]).await.unwrap();
        let versions = json!(versions).to_string();
        transaction.rows(RELEASES, values![&versions]).await.unwrap();
        transaction.rows(FILES, values![versions]).await.unwrap();
        transaction.commit().await.unwrap();
    }
    store.catch_up().await.unwrap();
}

struct Times {
    resolve: Duration,
    search: Duration,
}

async fn measure(store: &Store, tools: u64) -> Times {
    let nobody = Caller::default();
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (mut resolve, mut search) = (Vec::new(), Vec::new());
    for round in 0..300_u64 {
        let number = (round * 7919) % tools / 3 * 3 + 2;
        let id = ToolId::parse(&format!("t{}", number.min(tools - 1))).unwrap();
        let begun = Instant::now();
        let chain = store.resolve(&nobody, &id, None).await.unwrap();
        resolve.push(begun.elapsed());
        assert!(!chain.links.is_empty() && chain.links.len() <= 3);
    }
    for round in 0..60_u64 {
        let query = description(round * 31);
        let begun = Instant::now();
        let found = store.search(&nobody, &query, 50).await.unwrap();
        search.push(begun.elapsed());
        assert!(!found.is_empty());
    }
    Times { resolve: median(resolve), search: median(search) }
}

#[expect(clippy::disallowed_methods, reason = "a test is told how much it is to do")]
async fn scale(database: &str, bar: Duration) {
    let store = Store::open(database, None).await.unwrap();
    store.ensure_user("one").await.unwrap();
    let mut transaction = store.database.begin().await.unwrap();
    let blob = "INSERT INTO blobs (digest, size, place, created_at) VALUES ($1, 5, 'database', '')";
    transaction.rows(blob, values![Digest::of(b"x").to_string()]).await.unwrap();
    transaction.commit().await.unwrap();
    let is_soak = std::env::var_os("KIWI_SOAK").is_some();
    let (few, many) = if is_soak { (1_000, 100_000) } else { (150, 450) };
    load(&store, 0, few).await;
    let before = measure(&store, few).await;
    load(&store, few, many).await;
    let after = measure(&store, many).await;
    println!(
        "{few} tools: resolve {:?}, search {:?}; {many} tools: resolve {:?}, search {:?}",
        before.resolve, before.search, after.resolve, after.search
    );
    if is_soak {
        assert!(after.resolve <= bar, "{:?}", after.resolve);
        assert!(after.resolve <= before.resolve * 2, "{:?} and {:?}", before.resolve, after.resolve);
    }
}

#[test]
fn sqlite_does_not_slow_down() {
    let folder = tempfile::tempdir().unwrap();
    block_on(scale(folder.path().join("registry.sqlite").to_str().unwrap(), Duration::from_millis(1)));
}

#[test]
fn postgres_does_not_slow_down() {
    block_on(async { scale(&postgres().await, Duration::from_millis(5)).await });
}
