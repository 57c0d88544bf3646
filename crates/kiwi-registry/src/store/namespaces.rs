//! Namespaces and who owns them.

use kiwi_model::{SYSTEM_NAMESPACES, ToolId};

use super::caller::Caller;
use super::database::{Row, Transaction, values};
use super::{Store, now};
use crate::error::RegistryError;
use crate::protocol::Namespace;

const OWNERS: &str = "SELECT user_name FROM namespace_owners WHERE namespace = $1 ORDER BY user_name";

/// Whether a name can be a namespace, and is nobody's yet.
fn check(name: &str) -> Result<(), RegistryError> {
    if name.contains('.') || ToolId::parse(name).is_err() {
        return Err(RegistryError::unfit(
            "a namespace is lowercase letters, digits and `_`, beginning with a letter",
        ));
    }
    if SYSTEM_NAMESPACES.contains(&name) {
        return Err(RegistryError::Reserved { name: name.to_owned() });
    }
    Ok(())
}

/// Gives a namespace that is nobody's to the caller; says whether it is theirs now.
pub(super) async fn claim(
    transaction: &mut Transaction,
    caller: &Caller,
    name: &str,
) -> Result<(), RegistryError> {
    let insert = "INSERT INTO namespaces (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING name";
    if transaction.row(insert, values![name, now()]).await?.is_some() {
        return add(transaction, name, &caller.user).await;
    }
    require(transaction, caller, name).await
}

async fn add(transaction: &mut Transaction, name: &str, user: &str) -> Result<(), RegistryError> {
    let insert = "INSERT INTO namespace_owners (namespace, user_name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    transaction.rows(insert, values![name, user]).await.map(drop)
}

async fn require(transaction: &mut Transaction, caller: &Caller, name: &str) -> Result<(), RegistryError> {
    let owners = names(transaction.rows(OWNERS, values![name]).await?)?;
    if caller.is_admin() || owners.contains(&caller.user) {
        return Ok(());
    }
    Err(RegistryError::NotOwner { what: "the namespace", name: name.to_owned() })
}

/// Locks a namespace that is there, so that its last two owners do not leave at once.
async fn hold(transaction: &mut Transaction, name: &str) -> Result<(), RegistryError> {
    let touch = "UPDATE namespaces SET created_at = created_at WHERE name = $1 RETURNING name";
    match transaction.row(touch, values![name]).await? {
        Some(_) => Ok(()),
        None => Err(RegistryError::unknown("namespace", name)),
    }
}

fn names(rows: Vec<Row>) -> Result<Vec<String>, RegistryError> {
    rows.into_iter().map(|mut row| row.text()).collect()
}

impl Store {
    /// A namespace that is somebody's.
    pub async fn namespace(&self, name: &str) -> Result<Namespace, RegistryError> {
        let found = self.database.row("SELECT name FROM namespaces WHERE name = $1", values![name]).await?;
        found.ok_or_else(|| RegistryError::unknown("namespace", name))?;
        Ok(Namespace {
            name: name.to_owned(),
            owners: names(self.database.rows(OWNERS, values![name]).await?)?,
        })
    }

    /// Claims a namespace.
    pub async fn claim_namespace(&self, caller: &Caller, name: &str) -> Result<Namespace, RegistryError> {
        check(name)?;
        let mut transaction = self.database.begin().await?;
        claim(&mut transaction, caller, name).await?;
        transaction.commit().await?;
        self.namespace(name).await
    }

    /// Makes somebody an owner.
    pub async fn add_owner(
        &self,
        caller: &Caller,
        name: &str,
        user: &str,
    ) -> Result<Namespace, RegistryError> {
        let mut transaction = self.database.begin().await?;
        hold(&mut transaction, name).await?;
        require(&mut transaction, caller, name).await?;
        let known = transaction.row("SELECT name FROM users WHERE name = $1", values![user]).await?;
        known.ok_or_else(|| RegistryError::unknown("user", user))?;
        add(&mut transaction, name, user).await?;
        transaction.commit().await?;
        self.namespace(name).await
    }

    /// Makes somebody an owner no more; the last one stays.
    pub async fn remove_owner(
        &self,
        caller: &Caller,
        name: &str,
        user: &str,
    ) -> Result<Namespace, RegistryError> {
        let mut transaction = self.database.begin().await?;
        hold(&mut transaction, name).await?;
        require(&mut transaction, caller, name).await?;
        let owners = names(transaction.rows(OWNERS, values![name]).await?)?;
        if !owners.iter().any(|owner| owner == user) {
            return Err(RegistryError::unknown("owner", user));
        }
        if owners.len() == 1 {
            return Err(RegistryError::LastOwner { name: name.to_owned() });
        }
        let delete = "DELETE FROM namespace_owners WHERE namespace = $1 AND user_name = $2";
        transaction.rows(delete, values![name, user]).await?;
        transaction.commit().await?;
        self.namespace(name).await
    }

    /// The namespaces of a user.
    pub async fn namespaces_of(&self, user: &str) -> Result<Vec<String>, RegistryError> {
        let select = "SELECT namespace FROM namespace_owners WHERE user_name = $1 ORDER BY namespace";
        names(self.database.rows(select, values![user]).await?)
    }
}
