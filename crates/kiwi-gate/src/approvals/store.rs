//! The files: one for each request, one for each grant, in the user space.

use jiff::Timestamp;
use kiwi_model::Space;
use kiwi_space::{KeyPurpose, Keys, PrivateFolder, PublicKey, SpaceError, Spaces, Turn, UserKey};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::grant::Grant;
use super::request::{Approval, ApprovalState, Verdict};

/// A file of the store: what it holds, or why that cannot be told.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// The name of the file without `.json`: what a person calls it by.
    pub id: String,
    /// What it holds.
    pub item: Result<T, String>,
    name: String,
}

/// Where a request stands once its signature was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// As its state says.
    Is(ApprovalState),
    /// It says that it was decided, but the user's key did not sign that. It counts as pending.
    Unsigned,
}

pub(crate) struct Store {
    pub approvals: PrivateFolder,
    pub grants: PrivateFolder,
    keys: Keys,
}

/// What has a name and can be kept.
pub(crate) trait Kept: Serialize + DeserializeOwned {
    fn id(&self) -> &str;
}

impl Kept for Approval {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Kept for Grant {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Store {
    pub fn open(spaces: &Spaces) -> Result<Self, SpaceError> {
        let user = spaces.ai(Space::User).ok_or(SpaceError::NoSpace { space: Space::User })?;
        let folder = |name: &str| PrivateFolder::new(user.join(name));
        Ok(Self { approvals: folder("approvals"), grants: folder("grants"), keys: spaces.keys()? })
    }

    /// The right to change requests and grants.
    pub fn turn(&self) -> Result<Turn, SpaceError> {
        self.approvals.make()?;
        self.approvals.turn()
    }

    pub fn signer(&self) -> Result<UserKey, SpaceError> {
        self.keys.get_or_make(KeyPurpose::Approval)
    }

    /// Who could have signed; nobody where no key was made yet.
    pub fn verifier(&self) -> Result<Option<PublicKey>, SpaceError> {
        Ok(self.keys.get(KeyPurpose::Approval)?.map(|key| key.public()))
    }
}

/// Everything in a folder. A file that makes no sense is an entry too: it may be somebody's answer.
pub(crate) fn all<T: Kept>(folder: &PrivateFolder) -> Result<Vec<Entry<T>>, SpaceError> {
    let mut entries = Vec::new();
    for name in folder.names()? {
        let stem = name.strip_suffix(".json");
        let id = stem.unwrap_or(&name).to_owned();
        let item = match folder.read(&name) {
            Ok(None) => continue,
            Ok(Some(_)) if stem.is_none() => Err("it has no business here".to_owned()),
            Ok(Some(bytes)) => parse::<T>(&bytes, &id),
            Err(error) => Err(error.to_string()),
        };
        entries.push(Entry { id, item, name });
    }
    Ok(entries)
}

fn parse<T: Kept>(bytes: &[u8], id: &str) -> Result<T, String> {
    let item: T = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if item.id() == id { Ok(item) } else { Err(format!("it says that it is `{}`", item.id().escape_debug())) }
}

pub(crate) fn save<T: Kept>(folder: &PrivateFolder, item: &T) -> Result<(), SpaceError> {
    let bytes = serde_json::to_vec_pretty(item).map_err(|error| SpaceError::Unwritable {
        path: folder.file(item.id()),
        source: std::io::Error::other(error),
    })?;
    folder.write(&format!("{}.json", item.id()), &bytes)
}

pub(crate) fn remove<T>(folder: &PrivateFolder, entry: &Entry<T>) -> Result<bool, SpaceError> {
    folder.remove(&entry.name)
}

impl Approval {
    /// Where it stands now.
    pub fn standing(&self, key: Option<&PublicKey>, now: Timestamp) -> Standing {
        let is_late = now >= self.expires_at;
        let signed = self.decided.as_ref().filter(|decided| {
            let text = self.signed_text();
            key.zip(text.ok()).is_some_and(|(key, text)| key.verifies(text.as_bytes(), &decided.signature))
        });
        let state = match (self.state, signed) {
            // Somebody who claims less than there is gains nothing.
            (ApprovalState::Used | ApprovalState::Expired, _) => self.state,
            (ApprovalState::Pending, _) if is_late => ApprovalState::Expired,
            (ApprovalState::Pending, None) if self.decided.is_none() => ApprovalState::Pending,
            (_, Some(decided)) if now >= decided.until => ApprovalState::Expired,
            (ApprovalState::Approved, Some(decided)) if decided.verdict == Verdict::Approved => self.state,
            (ApprovalState::Rejected, Some(decided)) if decided.verdict == Verdict::Rejected => self.state,
            _ if is_late => ApprovalState::Expired,
            _ => return Standing::Unsigned,
        };
        Standing::Is(state)
    }
}

impl Grant {
    /// Whether the user's key signed it.
    pub fn is_signed(&self, key: Option<&PublicKey>) -> bool {
        let text = self.signed_text();
        key.zip(text.ok()).is_some_and(|(key, text)| key.verifies(text.as_bytes(), &self.signature))
    }
}
