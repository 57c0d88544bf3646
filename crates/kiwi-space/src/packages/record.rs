//! What was written down when a package was installed.
//!
//! The record lies beside the packages and travels with a project. A copy of it, the *note*, lies in the user space,
//! where whoever changes a project cannot reach it: deleting or editing the record does not turn a package into one that
//! was put there by hand.

use kiwi_chain::Cache;
use kiwi_chain::Identity;
use kiwi_model::{Digest, FileEntry, Integrity, ToolId, Version};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::sync::Arc;

use crate::counters::{Counter, Counters};
use crate::error::SpaceError;
use crate::root::Root;

/// A record of 20,000 files with long names stays below this.
const MAX_BYTES: u64 = 16 << 20;

/// The folder that holds the records of a space's packages.
pub(crate) const RECORDS: &str = "packages/.records";

/// The record of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// Its integrity.
    pub integrity: Integrity,
    /// Its files, by path.
    pub files: Vec<RecordedFile>,
    /// Where it came from.
    pub source: String,
    /// When, RFC 3339.
    pub installed_at: String,
}

/// One file of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFile {
    /// What is hashed of it.
    #[serde(flatten)]
    pub entry: FileEntry,
    /// Its length in bytes.
    pub size: u64,
}

impl Record {
    pub(crate) fn entries(&self) -> Vec<FileEntry> {
        self.files.iter().map(|file| file.entry.clone()).collect()
    }

    /// Whether two records speak of the same bytes; where they came from may differ.
    fn agrees_with(&self, other: &Self) -> bool {
        self.integrity == other.integrity && self.entries() == other.entries()
    }
}

/// Where the record of a package lies, from the space's root.
pub(crate) fn record_path(id: &ToolId, version: &Version) -> String {
    format!("{RECORDS}/{id}@{version}.json")
}

/// Where the note of a package lies, from the user space's root. `owner` names the space it was installed in.
pub(crate) fn note_path(owner: &str, id: &ToolId, version: &Version) -> String {
    format!("{}/{id}@{version}.json", notes(owner))
}

/// The folder of the user space that holds the notes of a space's packages.
pub(crate) fn notes(owner: &str) -> String {
    format!("packages/.noted/{owner}")
}

/// Parsed records, by their bytes.
pub(crate) struct Records {
    known: Cache<Digest, Arc<Record>>,
}

/// What is known about a package from when it was installed.
#[derive(Default)]
pub(crate) struct Evidence {
    record: Option<(Digest, Arc<Record>)>,
    note: Option<(Digest, Arc<Record>)>,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(4096) }
    }

    /// Reads record and note of a package.
    pub(crate) fn evidence(
        &self,
        root: &Root,
        user: Option<&Root>,
        owner: &str,
        (id, version): (&ToolId, &Version),
        counters: &Counters,
    ) -> Result<Evidence, SpaceError> {
        let record = self.read(root, &record_path(id, version), (id, version), counters)?;
        let note = match user {
            Some(user) => self.read(user, &note_path(owner, id, version), (id, version), counters)?,
            None => None,
        };
        if let (Some((_, record)), Some((_, note))) = (&record, &note)
            && !record.agrees_with(note)
        {
            return Err(SpaceError::RecordDiffers {
                tool: format!("{id}@{version}"),
                record: root.absolute(&record_path(id, version)),
                recorded: record.integrity,
                noted: note.integrity,
            });
        }
        Ok(Evidence { record, note })
    }

    fn read(
        &self,
        root: &Root,
        relative: &str,
        (id, version): (&ToolId, &Version),
        counters: &Counters,
    ) -> Result<Option<(Digest, Arc<Record>)>, SpaceError> {
        // Whatever is wrong with a record, it must not count as absent.
        let broken = |why: String| SpaceError::RecordBroken {
            tool: format!("{id}@{version}"),
            record: root.absolute(relative),
            why,
        };
        let opened = match root.open_file(relative) {
            Ok(opened) => opened,
            Err(error) if error.is_absent() => return Ok(None),
            Err(error) => return Err(broken(error.to_string())),
        };
        let mut bytes = Vec::new();
        opened.file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| broken(error.to_string()))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(broken(format!("it has more than {MAX_BYTES} bytes")));
        }
        let digest = Digest::of(&bytes);
        let known = self.known.get(&digest);
        counters.add(if known.is_some() { Counter::RecordHits } else { Counter::RecordMisses });
        let record = match known {
            Some(record) => record,
            None => serde_json::from_slice(&bytes)
                .map(Arc::<Record>::new)
                .map_err(|error| broken(error.to_string()))?,
        };
        self.known.insert(digest, Arc::clone(&record));
        if record.tool_id != *id || record.version != *version {
            return Err(broken(format!("it speaks of {}@{}", record.tool_id, record.version)));
        }
        Ok(Some((digest, record)))
    }
}

impl Evidence {
    /// What tells two states of the evidence apart.
    pub(crate) fn key(&self) -> (Option<Digest>, Option<Digest>) {
        (self.record.as_ref().map(|(digest, _)| *digest), self.note.as_ref().map(|(digest, _)| *digest))
    }

    /// The files as they were installed, where that is known.
    pub(crate) fn files(&self) -> Option<Vec<FileEntry>> {
        self.note.as_ref().or(self.record.as_ref()).map(|(_, record)| record.entries())
    }

    /// What the package must be.
    pub(crate) fn identity(&self) -> Identity {
        match (&self.record, &self.note) {
            (Some((_, record)), _) => {
                Identity::Recorded { integrity: record.integrity, files: record.entries() }
            }
            (None, Some((_, note))) => Identity::RecordMissing { noted: note.integrity },
            (None, None) => Identity::Computed,
        }
    }
}
