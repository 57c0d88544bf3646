//! Migrations: numbered, forward only, each in the binary for both engines, applied under a lock and written down with what
//! they were.

use kiwi_model::Digest;

use super::database::{Engine, Transaction, values};
use crate::error::RegistryError;

/// One step.
struct Migration {
    number: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($number:literal, $name:literal, $file:literal) => {
        Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("migrations/sqlite/", $file)),
            postgres: include_str!(concat!("migrations/postgres/", $file)),
        }
    };
}

const MIGRATIONS: [Migration; 3] = [
    migration!(1, "base", "0001_base.sql"),
    migration!(2, "search", "0002_search.sql"),
    migration!(3, "hidden", "0003_hidden.sql"),
];

/// The number of the last one.
pub(crate) const LAST: i64 = 3;

/// What servers that start at once wait for: any number will do that nobody else takes.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7410000001)";

impl Migration {
    fn sql(&self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }
}

/// Waits until no other server is setting the database up. SQLite has one writer anyway.
pub(crate) async fn alone(transaction: &mut Transaction) -> Result<(), RegistryError> {
    if transaction.engine() == Engine::Postgres {
        transaction.rows(LOCK, values![]).await?;
    }
    Ok(())
}

/// Applies what is missing, up to `last`.
pub(crate) async fn migrate(transaction: &mut Transaction, last: i64) -> Result<(), RegistryError> {
    alone(transaction).await?;
    let engine = transaction.engine();
    transaction
        .batch(
            "CREATE TABLE IF NOT EXISTS kiwi_migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, at TEXT NOT NULL)",
        )
        .await?;
    let mut applied = 0;
    let rows =
        transaction.rows("SELECT number, checksum FROM kiwi_migrations ORDER BY number", values![]).await?;
    for mut row in rows {
        let (number, checksum) = (row.integer()?, row.text()?);
        let known = MIGRATIONS
            .iter()
            .find(|migration| migration.number == number)
            .ok_or(RegistryError::Later { number })?;
        if checksum != checksum_of(known.sql(engine)) {
            return Err(RegistryError::Altered { number, name: known.name.to_owned() });
        }
        applied = number;
    }
    for migration in MIGRATIONS.iter().filter(|it| it.number > applied && it.number <= last) {
        let sql = migration.sql(engine);
        transaction.batch(sql).await?;
        transaction
            .rows(
                "INSERT INTO kiwi_migrations (number, name, checksum, at) VALUES ($1, $2, $3, $4)",
                values![migration.number, migration.name, checksum_of(sql), super::now()],
            )
            .await?;
    }
    Ok(())
}

fn checksum_of(sql: &str) -> String {
    Digest::of(sql.as_bytes()).to_string()
}
