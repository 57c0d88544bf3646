//! PostgreSQL: a pool of connections, each with its statements prepared.

use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::{Column as _, Connection as _, PgPool, Row as _, TypeInfo as _};
use std::str::FromStr as _;
use std::time::Duration;

use super::database::{Cell, Row, Value};
use crate::error::RegistryError;

/// Connections of one server; several servers share what the database allows.
const CONNECTIONS: u32 = 16;
/// How long a free connection is waited on.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often something is tried over a connection that turns out to be dead.
const TRIES: u32 = 3;

/// What the database says where there is none of that name, where there is one already, and where two make it at once.
const NO_DATABASE: &str = "3D000";
const HAS_DATABASE: &str = "42P04";
const HAS_ROW: &str = "23505";

/// A database somewhere.
#[derive(Clone)]
pub(crate) struct Postgres {
    pool: PgPool,
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

impl Postgres {
    pub async fn open(url: &str) -> Result<Self, RegistryError> {
        // The address may hold a password, so it is not repeated.
        let options = PgConnectOptions::from_str(url)
            .map_err(|error| RegistryError::Options {
                problem: format!("this is no address of a PostgreSQL database: {error}"),
            })?
            .application_name("kiwi-registry")
            // Whoever wants more of the nearest than are looked at first is served by looking on.
            .options([
                ("statement_timeout", "60000"),
                ("hnsw.ef_search", "64"),
                ("hnsw.iterative_scan", "strict_order"),
                ("jit", "off"),
            ]);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            // A question before every question would double the way; a dead connection is noticed when it is used.
            .test_before_acquire(false);
        // A pool tries until its patience ends and forgets why; one connection says at once what is wrong.
        match sqlx::PgConnection::connect_with(&options).await {
            Ok(connection) => connection.close().await.map_err(failed)?,
            Err(error) if code(&error).as_deref() == Some(NO_DATABASE) => make_database(&options).await?,
            Err(error) => return Err(failed(error)),
        }
        let pool = pool.connect_with(options).await;
        Ok(Self { pool: pool.map_err(failed)? })
    }

    pub async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        let mut tries = 1;
        loop {
            match query(sql, values.clone()).fetch_all(&self.pool).await {
                Err(error) if is_cut(&error) && tries < TRIES => tries += 1,
                done => return done.map_err(failed)?.iter().map(row).collect(),
            }
        }
    }

    pub async fn begin(&self) -> Result<PostgresTransaction, RegistryError> {
        let mut tries = 1;
        loop {
            match self.pool.begin().await {
                Err(error) if is_cut(&error) && tries < TRIES => tries += 1,
                done => return done.map(|inner| PostgresTransaction { inner }).map_err(failed),
            }
        }
    }
}

/// Makes the database that is named, as a file is made for the other engine.
async fn make_database(options: &PgConnectOptions) -> Result<(), RegistryError> {
    let name = options.get_database().unwrap_or_default().replace('"', "\"\"");
    let around = options.clone().database("postgres");
    let mut connection = sqlx::PgConnection::connect_with(&around).await.map_err(failed)?;
    let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""));
    match sqlx::raw_sql(create).execute(&mut connection).await {
        // Another server was faster.
        Err(error) if matches!(code(&error).as_deref(), Some(HAS_DATABASE | HAS_ROW)) => Ok(()),
        done => done.map(drop).map_err(failed),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(std::borrow::Cow::into_owned)
}

/// A transaction.
pub(crate) struct PostgresTransaction {
    inner: sqlx::Transaction<'static, sqlx::Postgres>,
}

impl PostgresTransaction {
    pub async fn rows(&mut self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, RegistryError> {
        let rows = query(sql, values).fetch_all(&mut *self.inner).await.map_err(failed)?;
        rows.iter().map(row).collect()
    }

    pub async fn batch(&mut self, sql: &'static str) -> Result<(), RegistryError> {
        sqlx::raw_sql(sql).execute(&mut *self.inner).await.map(drop).map_err(failed)
    }

    pub async fn commit(self) -> Result<(), RegistryError> {
        self.inner.commit().await.map_err(failed)
    }
}

fn query(sql: &'static str, values: Vec<Value>) -> Query<'static> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Bytes(bytes) => query.bind(bytes),
    })
}

fn row(row: &PgRow) -> Result<Row, RegistryError> {
    let cells = row.columns().iter().map(|column| {
        let at = column.ordinal();
        Ok(match column.type_info().name() {
            "TEXT" => row.try_get::<Option<String>, _>(at).map_err(failed)?.map_or(Cell::Null, Cell::Text),
            "INT8" => row.try_get::<Option<i64>, _>(at).map_err(failed)?.map_or(Cell::Null, Cell::Integer),
            "BYTEA" => row.try_get::<Option<Vec<u8>>, _>(at).map_err(failed)?.map_or(Cell::Null, Cell::Bytes),
            "VOID" => Cell::Null,
            other => return Err(RegistryError::broken(format!("a column is of type {other}"))),
        })
    });
    Ok(Row::new(cells.collect::<Result<_, RegistryError>>()?))
}

/// Whether the connection was dead, so that another one may do.
fn is_cut(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
        _ => false,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in `map_err`")]
fn failed(error: sqlx::Error) -> RegistryError {
    let is_away = match &error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // Connections, transactions that met, resources, whoever runs the database.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "40", "53", "57", "28", "3D"].iter().any(|class| code.starts_with(class))
        }),
        _ => false,
    };
    let problem = error.to_string();
    if is_away { RegistryError::Away { problem } } else { RegistryError::Broken { problem } }
}
