//! The tables: who owns what, which versions there are, and their bytes.

mod blobs;
mod caller;
mod chain;
mod database;
mod item;
mod lockfiles;
pub(crate) mod many;
mod migrate;
mod namespaces;
mod nearby;
mod postgres;
mod publish;
mod release;
mod search;
mod sqlite;
mod tokens;
mod tools;
mod words;

pub(crate) use blobs::{BlobBytes, Spool};
pub(crate) use caller::Caller;
pub(crate) use database::Engine;
pub(crate) use publish::{NewVersion, Published, compare};
pub(crate) use tokens::{FIRST_USER, Kept};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::blobs::Folder;
use self::database::Database;
use self::nearby::Nearby;
use self::words::Words;
use crate::error::RegistryError;

/// Everything a registry remembers.
#[derive(Clone)]
pub(crate) struct Store {
    database: Database,
    folder: Option<Folder>,
    nearby: Arc<Nearby>,
    words: Arc<Words>,
}

impl Store {
    /// Opens a database and brings it up to date.
    pub async fn open(database: &str, blobs: Option<&Path>) -> Result<Self, RegistryError> {
        let store = Self::open_at(database, blobs, migrate::LAST).await?;
        store.catch_up().await?;
        Ok(store)
    }

    /// Opens a database and brings it to a certain migration.
    pub(crate) async fn open_at(
        database: &str,
        blobs: Option<&Path>,
        last: i64,
    ) -> Result<Self, RegistryError> {
        let beside = || (!database.contains("://")).then(|| PathBuf::from(format!("{database}.blobs")));
        let folder = blobs.map(Path::to_owned).or_else(beside);
        // What cannot be opened gets no folder beside it.
        let database = Database::open(database).await?;
        let folder = folder.map(Folder::new).transpose()?;
        let mut transaction = database.begin().await?;
        migrate::migrate(&mut transaction, last).await?;
        transaction.commit().await?;
        Ok(Self { database, folder, nearby: Arc::default(), words: Arc::default() })
    }

    pub fn engine(&self) -> Engine {
        self.database.engine()
    }

    /// Whether the database answers.
    pub async fn check(&self) -> Result<(), RegistryError> {
        self.database.rows("SELECT number FROM kiwi_migrations LIMIT 1", Vec::new()).await.map(drop)
    }
}

/// Now, as it is written everywhere.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

#[cfg(test)]
mod tests;
