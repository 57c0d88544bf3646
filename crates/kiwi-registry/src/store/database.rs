//! Two engines behind one door: values in, rows out, transactions that undo themselves.
//!
//! Both understand `$1`, so nearly every statement is written once. Truths are the numbers 0 and 1, documents are texts, times
//! are RFC 3339: what both hold alike.

use std::path::Path;

use super::postgres::{Postgres, PostgresTransaction};
use super::sqlite::{Sqlite, SqliteTransaction};
use crate::error::RegistryError;

/// A value that a statement is given.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
    Bytes(Vec<u8>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(Some(number))
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Self {
        Self::Integer(Some(i64::from(is_so)))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// The values of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::database::Value::from($value)),*] };
}
pub(crate) use values;

/// A value that a statement gave.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Integer(i64),
    Bytes(Vec<u8>),
}

/// One row, read from left to right.
#[derive(Debug, Clone)]
pub(crate) struct Row(std::vec::IntoIter<Cell>);

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    /// The next column: a text.
    pub fn text(&mut self) -> Result<String, RegistryError> {
        self.optional_text()?.ok_or_else(|| unexpected("nothing"))
    }

    /// The next column: a text or nothing.
    pub fn optional_text(&mut self) -> Result<Option<String>, RegistryError> {
        match self.0.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected(&format!("{other:?}"))),
        }
    }

    /// The next column: a number.
    pub fn integer(&mut self) -> Result<i64, RegistryError> {
        match self.0.next() {
            Some(Cell::Integer(number)) => Ok(number),
            other => Err(unexpected(&format!("{other:?}"))),
        }
    }

    /// The next column: a number that counts something.
    pub fn count(&mut self) -> Result<u64, RegistryError> {
        u64::try_from(self.integer()?).map_err(RegistryError::broken)
    }

    /// The next column: a truth.
    pub fn truth(&mut self) -> Result<bool, RegistryError> {
        Ok(self.integer()? != 0)
    }

    /// The next column: bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, RegistryError> {
        match self.0.next() {
            Some(Cell::Bytes(bytes)) => Ok(bytes),
            other => Err(unexpected(&format!("{other:?}"))),
        }
    }
}

fn unexpected(found: &str) -> RegistryError {
    RegistryError::broken(format!("a column holds {}", found.chars().take(40).collect::<String>()))
}

/// A statement: one text for both engines, or one for each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Sql {
    /// Where the engines differ.
    pub const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}

impl From<&'static str> for Sql {
    fn from(both: &'static str) -> Self {
        Self { sqlite: both, postgres: both }
    }
}

/// Which engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// A database.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Database {
    /// Opens a file or an address.
    pub async fn open(database: &str) -> Result<Self, RegistryError> {
        if database.starts_with("postgres://") || database.starts_with("postgresql://") {
            return Postgres::open(database).await.map(Self::Postgres);
        }
        Sqlite::open(Path::new(database)).await.map(Self::Sqlite)
    }

    pub fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Reads.
    pub async fn rows(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(sqlite) => sqlite.rows(sql.sqlite, values).await,
            Self::Postgres(postgres) => postgres.rows(sql.postgres, values).await,
        }
    }

    /// Reads one row, where there is one.
    pub async fn row(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<Option<Row>, RegistryError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Begins what is done whole or not at all.
    pub async fn begin(&self) -> Result<Transaction, RegistryError> {
        Ok(match self {
            Self::Sqlite(sqlite) => Transaction::Sqlite(sqlite.begin().await?),
            Self::Postgres(postgres) => Transaction::Postgres(Box::new(postgres.begin().await?)),
        })
    }
}

/// Statements that are done together. Dropped, none of them was.
pub(crate) enum Transaction {
    Sqlite(SqliteTransaction),
    Postgres(Box<PostgresTransaction>),
}

impl Transaction {
    pub fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }

    /// Reads or writes; rows come from `SELECT` and `RETURNING`.
    pub async fn rows(&mut self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(sqlite) => sqlite.rows(sql.sqlite, values).await,
            Self::Postgres(postgres) => postgres.rows(sql.postgres, values).await,
        }
    }

    /// The first row, where there is one.
    pub async fn row(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, RegistryError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Several statements without values: a migration.
    pub async fn batch(&mut self, sql: &'static str) -> Result<(), RegistryError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.batch(sql).await,
            Self::Postgres(postgres) => postgres.batch(sql).await,
        }
    }

    /// Makes it last.
    pub async fn commit(self) -> Result<(), RegistryError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.commit().await,
            Self::Postgres(postgres) => postgres.commit().await,
        }
    }
}
