//! The file of credentials: read whole, written whole, one writer at a time.

use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::credential::{Credential, Written};
use super::seal::Key;
use crate::durable;
use crate::error::SpaceError;

const IDENTITY: &str = "identity.txt";
const STORE: &str = "store.age";
const LOCK: &str = ".lock";
/// Nobody but the owner.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

/// The user's credentials.
#[derive(Debug, Clone)]
pub struct Credentials {
    folder: PathBuf,
}

/// All of them, by name.
type All = BTreeMap<String, Credential>;

impl Credentials {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The credential of this name.
    pub fn get(&self, name: &str) -> Result<Option<Credential>, SpaceError> {
        Ok(self.all()?.remove(name))
    }

    /// All of them, by name.
    pub fn all(&self) -> Result<BTreeMap<String, Credential>, SpaceError> {
        let path = self.folder.join(STORE);
        let Some(sealed) = read_private(&path)? else { return Ok(All::new()) };
        let key = self.key()?.ok_or_else(|| self.unreadable("its identity file is gone".into()))?;
        let plain = key.open(&sealed).map_err(|why| self.unreadable(why))?;
        let written: BTreeMap<String, Written> =
            serde_json::from_slice(&plain).map_err(|_| self.unreadable("it holds no credentials".into()))?;
        Ok(written.into_iter().map(|(name, written)| (name, written.into())).collect())
    }

    /// Stores a credential under a name; says whether there was one before.
    pub fn set(&self, name: &str, credential: Credential) -> Result<bool, SpaceError> {
        check_name(name)?;
        self.change(|all| all.insert(name.to_owned(), credential).is_some())
    }

    /// Removes a credential; says whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, SpaceError> {
        self.change(|all| all.remove(name).is_some())
    }

    fn change(&self, change: impl FnOnce(&mut All) -> bool) -> Result<bool, SpaceError> {
        DirBuilder::new()
            .recursive(true)
            .mode(PRIVATE_FOLDER)
            .create(&self.folder)
            .map_err(|error| SpaceError::unwritable(&self.folder, error))?;
        let _lock = self.lock()?;
        let mut all = self.all()?;
        let answer = change(&mut all);
        let key = if let Some(key) = self.key()? {
            key
        } else {
            let key = Key::generate();
            write_private(&self.folder.join(IDENTITY), key.to_text().as_bytes())?;
            key
        };
        let written: BTreeMap<&str, Written> =
            all.iter().map(|(name, credential)| (name.as_str(), credential.into())).collect();
        let plain = serde_json::to_vec(&written).map_err(|error| self.unreadable(error.to_string()))?;
        let sealed = key.seal(&plain).map_err(|why| self.unreadable(why))?;
        write_private(&self.folder.join(STORE), &sealed)?;
        Ok(answer)
    }

    fn key(&self) -> Result<Option<Key>, SpaceError> {
        let Some(bytes) = read_private(&self.folder.join(IDENTITY))? else { return Ok(None) };
        let key = std::str::from_utf8(&bytes).ok().and_then(Key::parse);
        key.map(Some).ok_or_else(|| self.unreadable("its identity file holds no key".into()))
    }

    fn lock(&self) -> Result<File, SpaceError> {
        let path = self.folder.join(LOCK);
        let unwritable = |error: std::io::Error| SpaceError::unwritable(&path, error);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(PRIVATE_FILE).open(&path);
        let file = file.map_err(unwritable)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        Ok(file)
    }

    fn unreadable(&self, why: String) -> SpaceError {
        SpaceError::Credentials { path: self.folder.join(STORE), why }
    }
}

/// A name that can be a variable of a tool's environment.
fn check_name(name: &str) -> Result<(), SpaceError> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let good = starts_well
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if good { Ok(()) } else { Err(SpaceError::CredentialName { name: name.escape_debug().to_string() }) }
}

/// A file that only its owner can read; others' eyes on it make it useless.
fn read_private(path: &Path) -> Result<Option<Vec<u8>>, SpaceError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SpaceError::unreadable(path, error)),
    };
    let metadata = file.metadata().map_err(|error| SpaceError::unreadable(path, error))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(SpaceError::Exposed { path: path.to_owned(), mode: metadata.mode() & 0o777 });
    }
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut &file, &mut bytes)
        .map_err(|error| SpaceError::unreadable(path, error))?;
    Ok(Some(bytes))
}

/// Written beside it, for the owner alone from the first byte on, synced, renamed over it, the folder synced.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), SpaceError> {
    let folder = path.parent().unwrap_or(path);
    let unwritable = |error| SpaceError::unwritable(path, error);
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(unwritable)?;
    file.write_all(bytes).map_err(unwritable)?;
    file.as_file().sync_all().map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error))?;
    durable::sync_folder(folder)
}
