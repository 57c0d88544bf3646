//! Lockfiles that are shared, in sets.

use serde_json::Value;

use super::caller::Caller;
use super::database::{Row, values};
use super::{Store, now};
use crate::error::RegistryError;
use crate::protocol::{LockfileChange, SharedLockfile};

/// As much as one may have, as text.
const MOST_BYTES: usize = 1 << 20;
/// A name in a set: `category/tool@version`.
const LONGEST_KEY: usize = 512;

fn check_set(set: &str) -> Result<(), RegistryError> {
    let is_one = (1..=128).contains(&set.len())
        && set.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        && !set.starts_with('.');
    if is_one { Ok(()) } else { Err(RegistryError::bad("this is no name of a set of lockfiles")) }
}

fn check_key(key: &str) -> Result<(), RegistryError> {
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.len() <= 255;
    let is_one = (1..=LONGEST_KEY).contains(&key.len())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.@+/".contains(&b))
        && key.split('/').all(is_name);
    if is_one {
        Ok(())
    } else {
        Err(RegistryError::bad("this is no name of a lockfile: `category/tool@version`"))
    }
}

impl Store {
    /// A set; one that nobody began is empty.
    pub async fn lockfiles(&self, set: &str) -> Result<Vec<SharedLockfile>, RegistryError> {
        check_set(set)?;
        let rows = self
            .database
            .rows(
                "SELECT key, content, revision, user_name, at FROM lockfiles WHERE set_name = $1 ORDER BY key",
                values![set],
            )
            .await?;
        let read = |mut row: Row| {
            Ok(SharedLockfile {
                key: row.text()?,
                lockfile: serde_json::from_str(&row.text()?).map_err(RegistryError::broken)?,
                revision: row.count()?,
                user: row.text()?,
                at: row.text()?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Shares a lockfile, in the place of the one that the caller knows.
    pub async fn share_lockfile(
        &self,
        caller: &Caller,
        set: &str,
        key: &str,
        change: LockfileChange,
    ) -> Result<SharedLockfile, RegistryError> {
        check_set(set)?;
        check_key(key)?;
        let LockfileChange { lockfile, replaces } = change;
        if !lockfile.is_object() {
            return Err(RegistryError::unfit("a lockfile is a map of keys"));
        }
        let content = Value::to_string(&lockfile);
        if content.len() > MOST_BYTES {
            return Err(RegistryError::TooLarge { most: MOST_BYTES as u64 });
        }
        let mut transaction = self.database.begin().await?;
        // The number is taken first: on every engine it lets one writer after another in.
        let count = "UPDATE counters SET value = value + 1 WHERE name = 'lockfiles' RETURNING value";
        let mut row =
            transaction.row(count, values![]).await?.ok_or_else(|| RegistryError::broken("no counter"))?;
        let revision = row.integer()?;
        let known = transaction
            .row("SELECT revision FROM lockfiles WHERE set_name = $1 AND key = $2", values![set, key])
            .await?;
        let known = known.map(|mut row| row.count()).transpose()?;
        if known != replaces {
            return Err(RegistryError::LockfileChanged { key: key.to_owned(), revision: known });
        }
        let at = now();
        transaction
            .rows(
                "INSERT INTO lockfiles (set_name, key, content, revision, user_name, at) VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (set_name, key) DO UPDATE SET content = excluded.content, revision = excluded.revision, \
                 user_name = excluded.user_name, at = excluded.at",
                values![set, key, content, revision, &caller.user, &at],
            )
            .await?;
        transaction.commit().await?;
        let revision = u64::try_from(revision).map_err(RegistryError::broken)?;
        Ok(SharedLockfile { key: key.to_owned(), lockfile, revision, user: caller.user.clone(), at })
    }

    /// Takes a lockfile out of its set.
    pub async fn drop_lockfile(&self, set: &str, key: &str) -> Result<(), RegistryError> {
        check_set(set)?;
        check_key(key)?;
        let mut transaction = self.database.begin().await?;
        let delete = "DELETE FROM lockfiles WHERE set_name = $1 AND key = $2 RETURNING key";
        let gone = transaction.row(delete, values![set, key]).await?;
        gone.ok_or_else(|| RegistryError::unknown("lockfile", key))?;
        transaction.commit().await
    }
}
