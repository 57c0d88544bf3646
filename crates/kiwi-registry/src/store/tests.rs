//! Upgrades: what an earlier version wrote is there afterwards, and everything works.

mod scale;

use super::database::values;
use super::migrate::LAST;
use super::{Caller, Store};
use crate::error::RegistryError;
use crate::protocol::Scope;
use kiwi_model::{Digest, ToolId};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// A database of its own on PostgreSQL.
#[expect(clippy::disallowed_methods, reason = "a test is told where its PostgreSQL is")]
async fn postgres() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let base = std::env::var("KIWI_TEST_POSTGRES").expect("KIWI_TEST_POSTGRES: `cargo xtask postgres …`");
    let (count, now) = (COUNT.fetch_add(1, Ordering::Relaxed), jiff::Timestamp::now().as_microsecond());
    let name = format!("kiwi_store_{}_{count}_{now}", std::process::id());
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(1).connect(&base).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&pool).await.unwrap();
    pool.close().await;
    format!("{}/{name}", base.rsplit_once('/').unwrap().0)
}

/// Fills the tables as the first version would have.
async fn fill(store: &Store) {
    let mut transaction = store.database.begin().await.unwrap();
    for (sql, values) in [
        ("INSERT INTO users (name, created_at) VALUES ($1, $2)", values!["one", "2026-01-01T00:00:00Z"]),
        (
            "INSERT INTO namespaces (name, created_at) VALUES ($1, $2)",
            values!["team", "2026-01-01T00:00:00Z"],
        ),
        ("INSERT INTO namespace_owners (namespace, user_name) VALUES ($1, $2)", values!["team", "one"]),
    ] {
        transaction.rows(sql, values).await.unwrap();
    }
    for (id, visibility) in [("team.weather", "public"), ("team.secret", "private")] {
        let manifest = json!({"tool_id": id, "description": "tells the weather forecast"}).to_string();
        transaction
            .rows(
                "INSERT INTO tools (tool_id, namespace, visibility, description, tool_type, revision, created_at) \
                 VALUES ($1, 'team', $2, 'tells the weather', 'script', 0, '2026-01-01T00:00:00Z')",
                values![id, visibility],
            )
            .await
            .unwrap();
        transaction
            .rows(
                "INSERT INTO tool_versions (tool_id, version, version_key, core_key, is_early, integrity, manifest, tool_type, \
                 description, is_latest, published_at, publisher) VALUES ($1, '1.0.0', $2, $3, 0, $4, $5, 'script', \
                 'tells the weather', 1, '2026-01-01T00:00:00Z', 'one')",
                values![
                    id,
                    crate::protocol::version_key(&kiwi_model::Version::new(1, 0, 0)),
                    crate::protocol::core_key(1, 0, 0),
                    Digest::of(id.as_bytes()).to_string(),
                    manifest
                ],
            )
            .await
            .unwrap();
    }
    transaction.commit().await.unwrap();
}

async fn upgrade(database: &str, from: i64) {
    let old = Store::open_at(database, None, from).await.unwrap();
    fill(&old).await;
    let has_embeddings = old.database.rows("SELECT tool_number FROM embeddings", values![]).await.is_ok();
    assert_eq!(has_embeddings, from > 1);
    drop(old);
    // Several servers of the new version start at once.
    let opened = [0, 1, 2].map(|_| {
        let database = database.to_owned();
        tokio::spawn(async move { Store::open(&database, None).await })
    });
    let mut store = None;
    for opened in opened {
        store = Some(opened.await.unwrap().unwrap());
    }
    let store = store.unwrap();
    let (nobody, owner) =
        (Caller::default(), Caller { user: "one".to_owned(), scopes: vec![Scope::Read, Scope::Publish] });
    let found = store.search(&nobody, "forecast", 10).await.unwrap();
    assert_eq!(found.iter().map(|hit| hit.tool_id.as_str()).collect::<Vec<_>>(), ["team.weather"]);
    assert_eq!(store.search(&owner, "forecast", 10).await.unwrap().len(), 2);
    let id = ToolId::parse("team.weather").unwrap();
    let chain = store.resolve(&nobody, &id, None).await.unwrap();
    assert_eq!(chain.links.first().unwrap().release.integrity, Digest::of(b"team.weather"));
    let rows = store.database.rows("SELECT number FROM kiwi_migrations ORDER BY number", values![]).await;
    assert_eq!(i64::try_from(rows.unwrap().len()).unwrap(), LAST);

    // A database of a later version, or with another past, is left alone.
    let change = |sql: &'static str| {
        let store = store.clone();
        async move {
            let mut transaction = store.database.begin().await.unwrap();
            transaction.rows(sql, values![]).await.unwrap();
            transaction.commit().await.unwrap();
        }
    };
    change("INSERT INTO kiwi_migrations (number, name, checksum, at) VALUES (99, 'later', '', '')").await;
    let later = Store::open(database, None).await.map(drop);
    assert_eq!(later, Err(RegistryError::Later { number: 99 }));
    change("DELETE FROM kiwi_migrations WHERE number = 99").await;
    change("UPDATE kiwi_migrations SET checksum = 'x' WHERE number = 1").await;
    let altered = Store::open(database, None).await.map(drop);
    assert_eq!(altered, Err(RegistryError::Altered { number: 1, name: "base".to_owned() }));
}

#[test]
fn sqlite_is_upgraded() {
    for from in 1..LAST {
        let folder = tempfile::tempdir().unwrap();
        block_on(upgrade(folder.path().join("registry.sqlite").to_str().unwrap(), from));
    }
}

#[test]
fn postgres_is_upgraded() {
    for from in 1..LAST {
        block_on(async { upgrade(&postgres().await, from).await });
    }
}

/// What is dropped in the middle leaves nothing, and the next one finds the door open.
async fn abandoned(database: &str) {
    let store = Store::open(database, None).await.unwrap();
    let insert = "INSERT INTO users (name, created_at) VALUES ($1, '')";
    let mut transaction = store.database.begin().await.unwrap();
    transaction.rows(insert, values!["gone"]).await.unwrap();
    drop(transaction);
    let mut transaction = store.database.begin().await.unwrap();
    // Dropped while a statement is on its way.
    let _ = tokio::time::timeout(std::time::Duration::ZERO, transaction.rows(insert, values!["gone"])).await;
    drop(transaction);
    let mut transaction = store.database.begin().await.unwrap();
    transaction.rows(insert, values!["stays"]).await.unwrap();
    assert!(transaction.rows("SELECT nonsense", values![]).await.is_err());
    drop(transaction);
    let mut transaction = store.database.begin().await.unwrap();
    transaction.rows(insert, values!["stays"]).await.unwrap();
    transaction.commit().await.unwrap();
    let rows = store.database.rows("SELECT name FROM users", values![]).await.unwrap();
    let names: Vec<String> = rows.into_iter().map(|mut row| row.text().unwrap()).collect();
    assert_eq!(names, ["stays"]);
}

#[test]
fn sqlite_undoes_what_was_abandoned() {
    let folder = tempfile::tempdir().unwrap();
    block_on(abandoned(folder.path().join("registry.sqlite").to_str().unwrap()));
}

#[test]
fn postgres_undoes_what_was_abandoned() {
    block_on(async { abandoned(&postgres().await).await });
}
