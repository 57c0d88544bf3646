//! SQLite: one file, one writer, a few readers. Every call happens on a thread that may wait.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::database::{Cell, Row, Value};
use crate::error::RegistryError;

/// Readers at once; more would wait for the same disk.
const READERS: usize = 4;
/// How long another process that writes is waited on.
const PATIENCE: Duration = Duration::from_secs(10);
/// Statements that are kept prepared.
const PREPARED: usize = 128;

/// A database file.
#[derive(Clone)]
pub(crate) struct Sqlite {
    writer: Arc<tokio::sync::Mutex<Connection>>,
    readers: Arc<Readers>,
    turns: Arc<Semaphore>,
}

struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Sqlite {
    /// Opens a file, or makes it.
    pub async fn open(path: &Path) -> Result<Self, RegistryError> {
        let path = path.to_owned();
        blocking(move || {
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs_err::create_dir_all(folder).map_err(|error| RegistryError::files(folder, error))?;
            }
            let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => {
                    let problem = format!("`{}` is not a database", path.display());
                    RegistryError::Options { problem }
                }
                _ => RegistryError::files(&path, error),
            };
            let writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
                .map_err(failed)?;
            // Readers and the writer do not wait for each other; what was committed survives a loss of power.
            writer
                .execute_batch(
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
                )
                .map_err(failed)?;
            Ok(Self {
                writer: Arc::new(tokio::sync::Mutex::new(writer)),
                readers: Arc::new(Readers { path, idle: Mutex::default() }),
                turns: Arc::new(Semaphore::new(READERS)),
            })
        })
        .await
    }

    pub async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(RegistryError::broken)?;
        let readers = Arc::clone(&self.readers);
        blocking(move || {
            let reader = readers.take()?;
            let rows = run(&reader, sql, &values);
            readers.give(reader);
            drop(turn);
            rows
        })
        .await
    }

    pub async fn begin(&self) -> Result<SqliteTransaction, RegistryError> {
        let writing = Writing(Arc::clone(&self.writer).lock_owned().await);
        let mut transaction = SqliteTransaction { writing: Some(writing) };
        transaction.batch("BEGIN IMMEDIATE").await?;
        Ok(transaction)
    }
}

impl Readers {
    fn take(&self) -> Result<Connection, RegistryError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(reader) = idle {
            return Ok(reader);
        }
        let reader = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
        reader.execute_batch("PRAGMA query_only = ON").map_err(failed)?;
        Ok(reader)
    }

    fn give(&self, reader: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.execute_batch("PRAGMA cache_size = -32768; PRAGMA mmap_size = 1073741824;")?;
    Ok(connection)
}

/// The writer, which belongs to one transaction at a time.
struct Writing(OwnedMutexGuard<Connection>);

impl Drop for Writing {
    /// Whoever goes away in the middle, for whatever reason, leaves nothing behind for the next one.
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// A transaction.
pub(crate) struct SqliteTransaction {
    /// Away while a thread works with it.
    writing: Option<Writing>,
}

impl SqliteTransaction {
    pub async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        self.with(move |connection| run(connection, sql, &values)).await
    }

    pub async fn batch(&mut self, sql: &'static str) -> Result<(), RegistryError> {
        self.with(move |connection| connection.execute_batch(sql).map_err(failed)).await
    }

    pub async fn commit(mut self) -> Result<(), RegistryError> {
        self.batch("COMMIT").await
    }

    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, RegistryError> + Send + 'static,
    ) -> Result<T, RegistryError> {
        let writing = self.writing.take().ok_or_else(|| RegistryError::broken("the transaction is over"))?;
        let (writing, done) = blocking(move || {
            let done = work(&writing.0);
            Ok((writing, done))
        })
        .await?;
        self.writing = Some(writing);
        done
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.map_err(RegistryError::broken)?
}

fn run(connection: &Connection, sql: &str, values: &[Value]) -> Result<Vec<Row>, RegistryError> {
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    for (number, value) in values.iter().enumerate() {
        // `$1` is a name to SQLite, numbered by where it first stands.
        let name = format!("${}", number + 1);
        let Some(index) = statement.parameter_index(&name).map_err(failed)? else {
            return Err(RegistryError::broken(format!("a statement has no {name}")));
        };
        match value {
            Value::Text(text) => statement.raw_bind_parameter(index, text),
            Value::Integer(number) => statement.raw_bind_parameter(index, number),
            Value::Bytes(bytes) => statement.raw_bind_parameter(index, bytes),
        }
        .map_err(failed)?;
    }
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        let cells = (0..columns).map(|column| row.get_ref(column).map_err(failed).and_then(cell));
        found.push(Row::new(cells.collect::<Result<_, _>>()?));
    }
    Ok(found)
}

fn cell(value: ValueRef<'_>) -> Result<Cell, RegistryError> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8(text.to_vec()).map_err(RegistryError::broken)?),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(RegistryError::broken("a column holds a fraction")),
    })
}

fn failed(error: rusqlite::Error) -> RegistryError {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull) => {
            RegistryError::Away { problem: error.to_string() }
        }
        _ => RegistryError::broken(error),
    }
}
