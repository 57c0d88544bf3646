//! Users and their tokens. A token is shown once; what is kept is its digest.

use base64::Engine as _;
use kiwi_model::{Digest, Secret};

use super::caller::Caller;
use super::database::{Transaction, values};
use super::{Store, migrate, now};
use crate::error::RegistryError;
use crate::protocol::{MadeToken, NewToken, Scope, TokenInfo};

/// The user that a server's first token belongs to.
pub(crate) const FIRST_USER: &str = "admin";
/// A token lives at most this long, where it ends at all.
const MOST_DAYS: u32 = 36_500;

/// A token as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub id: String,
    digest: Digest,
}

impl Kept {
    pub fn of(token: &str) -> Self {
        // The id is a digest of its own, so that looking it up says nothing about the one that is compared.
        let id = Digest::of(format!("kiwi token id\n{token}").as_bytes()).hex();
        Self { id: id.chars().take(16).collect(), digest: Digest::of(token.as_bytes()) }
    }

    /// Whether both are of one token. Digests compare in constant time.
    pub fn is(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// A token that nobody can guess.
pub(crate) fn unguessable() -> Result<Secret, RegistryError> {
    let mut bytes = [0_u8; 32];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        return Err(RegistryError::NoRandomness);
    }
    Ok(Secret::new(format!("kiwi_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))))
}

/// Whether a name can be a user's.
pub(crate) fn is_user(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

impl Store {
    /// Whose token it is; nothing where it is not good.
    pub async fn caller(&self, token: &str) -> Result<Option<Caller>, RegistryError> {
        let shown = Kept::of(token);
        let row = self
            .database
            .row("SELECT digest, user_name, scopes, expires_at FROM tokens WHERE id = $1", values![&shown.id])
            .await?;
        let Some(mut row) = row else { return Ok(None) };
        let digest = Digest::parse(&row.text()?).map_err(RegistryError::broken)?;
        let (user, scopes, expires_at) = (row.text()?, row.text()?, row.optional_text()?);
        let is_over = expires_at
            .is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok_and(|at| at <= jiff::Timestamp::now()));
        let is_it = Kept { id: shown.id.clone(), digest }.is(&shown);
        Ok((is_it && !is_over).then(|| Caller { user, scopes: read_scopes(&scopes) }))
    }

    /// Makes the first token of a database that has none.
    pub async fn first_token(&self) -> Result<Option<Secret>, RegistryError> {
        let mut transaction = self.database.begin().await?;
        migrate::alone(&mut transaction).await?;
        if transaction.row("SELECT id FROM tokens LIMIT 1", values![]).await?.is_some() {
            return Ok(None);
        }
        let token = unguessable()?;
        ensure_user(&mut transaction, FIRST_USER).await?;
        keep(&mut transaction, &token, FIRST_USER, &[Scope::Admin], None).await?;
        transaction.commit().await?;
        Ok(Some(token))
    }

    /// Makes sure that there is a user of that name.
    pub async fn ensure_user(&self, name: &str) -> Result<(), RegistryError> {
        let mut transaction = self.database.begin().await?;
        ensure_user(&mut transaction, name).await?;
        transaction.commit().await
    }

    /// Makes a token.
    pub async fn make_token(&self, wanted: &NewToken) -> Result<MadeToken, RegistryError> {
        if !is_user(&wanted.user) {
            return Err(RegistryError::unfit(
                "`user` must be lowercase letters, digits, `_` and `-`, beginning with a letter",
            ));
        }
        if wanted.scopes.is_empty() || wanted.scopes.len() > 8 {
            return Err(RegistryError::unfit("`scopes` must name what the token may do"));
        }
        if wanted.days.is_some_and(|days| days == 0 || days > MOST_DAYS) {
            return Err(RegistryError::unfit(format!("`days` must be from 1 to {MOST_DAYS}")));
        }
        let mut scopes = wanted.scopes.clone();
        scopes.sort_unstable();
        scopes.dedup();
        let expires_at = wanted.days.map(|days| {
            let after = jiff::SignedDuration::from_hours(i64::from(days) * 24);
            jiff::Timestamp::now().saturating_add(after).map_or_else(|_| now(), |at| at.to_string())
        });
        let token = unguessable()?;
        let mut transaction = self.database.begin().await?;
        ensure_user(&mut transaction, &wanted.user).await?;
        let about = keep(&mut transaction, &token, &wanted.user, &scopes, expires_at).await?;
        transaction.commit().await?;
        Ok(MadeToken { token: token.expose().to_owned(), about })
    }

    /// Tokens that are good.
    pub async fn tokens(&self) -> Result<Vec<TokenInfo>, RegistryError> {
        let rows = self
            .database
            .rows(
                "SELECT id, user_name, scopes, created_at, expires_at FROM tokens ORDER BY created_at, id",
                values![],
            )
            .await?;
        let read = |mut row: super::database::Row| {
            Ok(TokenInfo {
                id: row.text()?,
                user: row.text()?,
                scopes: read_scopes(&row.text()?),
                created_at: row.text()?,
                expires_at: row.optional_text()?,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Ends a token.
    pub async fn end_token(&self, id: &str) -> Result<(), RegistryError> {
        let mut transaction = self.database.begin().await?;
        let gone = transaction.row("DELETE FROM tokens WHERE id = $1 RETURNING id", values![id]).await?;
        gone.ok_or_else(|| RegistryError::unknown("token", id))?;
        transaction.commit().await
    }
}

pub(super) async fn ensure_user(transaction: &mut Transaction, name: &str) -> Result<(), RegistryError> {
    let insert = "INSERT INTO users (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    transaction.rows(insert, values![name, now()]).await.map(drop)
}

async fn keep(
    transaction: &mut Transaction,
    token: &Secret,
    user: &str,
    scopes: &[Scope],
    expires_at: Option<String>,
) -> Result<TokenInfo, RegistryError> {
    let kept = Kept::of(token.expose());
    let about = TokenInfo {
        id: kept.id,
        user: user.to_owned(),
        scopes: scopes.to_vec(),
        created_at: now(),
        expires_at,
    };
    let names: Vec<&str> = scopes.iter().map(|scope| scope_name(*scope)).collect();
    transaction
        .rows(
            "INSERT INTO tokens (id, digest, user_name, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)",
            values![
                &about.id,
                kept.digest.to_string(),
                user,
                names.join(" "),
                &about.created_at,
                about.expires_at.clone()
            ],
        )
        .await?;
    Ok(about)
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Publish => "publish",
        Scope::Admin => "admin",
    }
}

fn read_scopes(text: &str) -> Vec<Scope> {
    [Scope::Read, Scope::Publish, Scope::Admin]
        .into_iter()
        .filter(|scope| text.split(' ').any(|name| name == scope_name(*scope)))
        .collect()
}
