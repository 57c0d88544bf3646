//! Bytes by their digest: small ones in the database, large ones in a folder where there is one.

use kiwi_model::{Digest, Hasher};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

use super::caller::{Caller, visible};
use super::database::{Value, values};
use super::{Store, now};
use crate::error::RegistryError;

/// Up to here a blob lies in the database, where reading it costs no file.
const SMALL: usize = 128 << 10;
/// Larger ones are handled in pieces of this size, wherever they lie.
const PIECE: usize = 1 << 20;

/// Readable is what a version uses that the caller may see; a blob alone belongs to nobody.
const READABLE: &str = concat!(
    "SELECT b.size, b.place FROM blobs b WHERE b.digest = $3 AND EXISTS (SELECT 1 FROM tool_version_files f \
     JOIN tool_versions v ON v.number = f.version_number JOIN tools t ON t.tool_id = v.tool_id WHERE f.sha256 = $3 AND ",
    visible!(),
    ")"
);

/// A folder of blobs, each named by its digest.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub fn new(path: PathBuf) -> Result<Self, RegistryError> {
        fs_err::create_dir_all(&path).map_err(|error| RegistryError::files(&path, error))?;
        Ok(Self(path))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let (first, rest) = hex.split_at_checked(2).unwrap_or_default();
        self.0.join(first).join(rest)
    }

    /// Whole and lasting, or not at all.
    fn keep(&self, digest: &Digest, file: NamedTempFile) -> Result<(), RegistryError> {
        let path = self.path(digest);
        if path.exists() {
            return Ok(());
        }
        let failed = |error: std::io::Error| RegistryError::files(&path, error);
        let folder = path.parent().unwrap_or(&self.0);
        fs_err::create_dir_all(folder).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        for folder in [folder, &self.0] {
            fs_err::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        Ok(())
    }
}

/// Bytes on their way in.
pub(crate) struct Spool {
    hasher: Hasher,
    size: u64,
    held: Vec<u8>,
    file: Option<NamedTempFile>,
    place: PathBuf,
}

impl Spool {
    /// Takes more bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), RegistryError> {
        self.hasher.update(bytes);
        self.size += bytes.len() as u64;
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PIECE { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), RegistryError> {
        let (held, file, place) = (std::mem::take(&mut self.held), self.file.take(), self.place.clone());
        let file = blocking(move || {
            let failed = |error: std::io::Error| RegistryError::files(&place, error);
            let mut file = match file {
                Some(file) => file,
                None => tempfile::Builder::new().prefix(".new-").tempfile_in(&place).map_err(failed)?,
            };
            file.write_all(&held).map_err(failed)?;
            Ok(file)
        })
        .await?;
        self.file = Some(file);
        Ok(())
    }
}

/// A blob that may be read.
pub(crate) struct BlobFound {
    pub digest: Digest,
    pub size: u64,
    is_in_folder: bool,
}

/// Its bytes, piece by piece.
pub(crate) struct BlobBytes {
    store: Store,
    found: BlobFound,
    given: u64,
    file: Option<std::fs::File>,
}

impl BlobBytes {
    /// The next piece; nothing at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, RegistryError> {
        if self.given >= self.found.size {
            return Ok(None);
        }
        let piece = match self.file.take() {
            Some(mut file) => {
                let (file, piece) = blocking(move || {
                    let mut piece = Vec::new();
                    (&mut file).take(PIECE as u64).read_to_end(&mut piece).map_err(RegistryError::broken)?;
                    Ok((file, piece))
                })
                .await?;
                self.file = Some(file);
                piece
            }
            None => self.piece().await?,
        };
        if piece.is_empty() {
            return Err(RegistryError::broken(format!("the blob {} is cut", self.found.digest)));
        }
        self.given += piece.len() as u64;
        Ok(Some(piece))
    }

    async fn piece(&self) -> Result<Vec<u8>, RegistryError> {
        let position = i64::try_from(self.given).map_err(RegistryError::broken)?;
        let select = "SELECT bytes FROM blob_pieces WHERE digest = $1 AND position = $2";
        let row = self.store.database.row(select, values![self.found.digest.to_string(), position]).await?;
        row.map(|mut row| row.bytes()).transpose().map(Option::unwrap_or_default)
    }
}

impl Store {
    /// A place for bytes that are coming.
    pub fn spool(&self) -> Spool {
        let place = self.folder.as_ref().map_or_else(std::env::temp_dir, |folder| folder.0.clone());
        Spool { hasher: Hasher::default(), size: 0, held: Vec::new(), file: None, place }
    }

    /// Keeps what came, if it is what it was said to be.
    pub async fn keep_blob(
        &self,
        caller: &Caller,
        said: Digest,
        mut spool: Spool,
    ) -> Result<(), RegistryError> {
        let computed = spool.hasher.clone().finish();
        if computed != said {
            return Err(RegistryError::Mismatch { what: "the blob".to_owned(), computed, said });
        }
        let size = i64::try_from(spool.size).map_err(RegistryError::broken)?;
        let folder = self.folder.clone().filter(|_| spool.size > SMALL as u64);
        let place = if folder.is_some() { "folder" } else { "database" };
        if let Some(folder) = folder {
            spool.flush().await?;
            if let Some(file) = spool.file.take() {
                blocking(move || folder.keep(&said, file)).await?;
            }
        }
        let digest = said.to_string();
        let mut transaction = self.database.begin().await?;
        let insert = "INSERT INTO blobs (digest, size, place, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (digest) DO NOTHING RETURNING digest";
        let is_new = transaction.row(insert, values![&digest, size, place, now()]).await?.is_some();
        if is_new && place == "database" {
            let mut position = 0;
            let mut file = spool.file.take().map(|file| reopened(&file)).transpose()?;
            while let Some(piece) = next_piece(&mut file, &mut spool.held).await? {
                let length = i64::try_from(piece.len()).map_err(RegistryError::broken)?;
                let insert = "INSERT INTO blob_pieces (digest, position, bytes) VALUES ($1, $2, $3)";
                transaction.rows(insert, values![&digest, position, piece]).await?;
                position += length;
            }
        }
        let insert = "INSERT INTO blob_uploads (digest, user_name) VALUES ($1, $2) ON CONFLICT (digest, user_name) DO NOTHING";
        transaction.rows(insert, values![&digest, &caller.user]).await?;
        transaction.commit().await
    }

    /// A blob, where the caller may read it.
    pub async fn blob(&self, caller: &Caller, digest: Digest) -> Result<BlobFound, RegistryError> {
        let row = self.database.row(READABLE, caller.values([Value::from(digest.to_string())])).await?;
        let mut row = row.ok_or_else(|| RegistryError::unknown("blob", digest.to_string()))?;
        Ok(BlobFound { digest, size: row.count()?, is_in_folder: row.text()? == "folder" })
    }

    /// The bytes of a blob, whoever asks.
    pub async fn read_blob(&self, digest: Digest) -> Result<Vec<u8>, RegistryError> {
        let select = "SELECT size, place FROM blobs WHERE digest = $1";
        let row = self.database.row(select, values![digest.to_string()]).await?;
        let mut row = row.ok_or(RegistryError::MissingBlobs { digests: vec![digest] })?;
        let found = BlobFound { digest, size: row.count()?, is_in_folder: row.text()? == "folder" };
        let mut bytes = self.bytes(found).await?;
        let mut whole = Vec::new();
        while let Some(piece) = bytes.next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    }

    /// The bytes of a blob that was found.
    pub async fn bytes(&self, found: BlobFound) -> Result<BlobBytes, RegistryError> {
        let mut file = None;
        if found.is_in_folder {
            let folder = self.folder.clone();
            let digest = found.digest;
            let opened = blocking(move || {
                let folder = folder.ok_or_else(|| RegistryError::Options {
                    problem: "the database has blobs in a folder, and none is given".to_owned(),
                })?;
                let path = folder.path(&digest);
                std::fs::File::open(&path).map_err(|error| RegistryError::files(&path, error))
            });
            file = Some(opened.await?);
        }
        Ok(BlobBytes { store: self.clone(), found, given: 0, file })
    }
}

/// What was written to a file so far, from its beginning.
fn reopened(file: &NamedTempFile) -> Result<std::fs::File, RegistryError> {
    let path: &Path = file.path();
    file.reopen().map_err(|error| RegistryError::files(path, error))
}

/// First what lies in the file, then what was still held.
async fn next_piece(
    file: &mut Option<std::fs::File>,
    held: &mut Vec<u8>,
) -> Result<Option<Vec<u8>>, RegistryError> {
    if let Some(mut open) = file.take() {
        let (open, piece) = blocking(move || {
            let mut piece = Vec::new();
            (&mut open).take(PIECE as u64).read_to_end(&mut piece).map_err(RegistryError::broken)?;
            Ok((open, piece))
        })
        .await?;
        if !piece.is_empty() {
            *file = Some(open);
            return Ok(Some(piece));
        }
    }
    let rest = std::mem::take(held);
    Ok((!rest.is_empty()).then_some(rest))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.map_err(RegistryError::broken)?
}
