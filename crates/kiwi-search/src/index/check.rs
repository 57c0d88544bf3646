//! Whether an index holds what it should: every file as it was written, every vector as its text gives it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tantivy::DocAddress;

use std::sync::atomic::Ordering;

use super::{Index, turn};
use crate::document::{Item, KeyHash};
use crate::error::SearchError;
use crate::vectors::{SegmentVectors, pack};

/// Documents that are embedded again at a time.
const BATCH: usize = 256;
/// What a vector may differ from the one that its text gives: engines add in other orders on other machines.
const ALIKE: f32 = 0.999;

/// What the library reads to find what is to go: terms, where they are, and which documents are gone already.
const READ_TO_CHANGE: [&str; 5] = ["term", "idx", "fieldnorm", "fast", "del"];

/// What was looked at and what was found wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Documents that were compared.
    pub documents: u64,
    /// What is wrong, a line each.
    pub faults: Vec<String>,
}

impl Index {
    /// Looks at everything. `tick` is told how many documents are done.
    pub fn check(&self, tick: &mut dyn FnMut(u64)) -> Result<Check, SearchError> {
        let mut check = Check::default();
        let damaged = self.damaged_files()?;
        check.faults.extend(damaged.iter().map(|path| format!("`{}` is damaged", path.display())));
        // Reading on would only show what damage looks like from inside.
        if !check.faults.is_empty() {
            return Ok(check);
        }
        let view = self.view()?;
        let mut keys = HashSet::new();
        for (segment, (reader, vectors)) in
            view.searcher.segment_readers().iter().zip(&view.vectors).enumerate()
        {
            let segment = u32::try_from(segment).unwrap_or(u32::MAX);
            let mut batch = Vec::with_capacity(BATCH);
            for document in reader.doc_ids_alive() {
                check.documents += 1;
                match view.stored(DocAddress::new(segment, document)) {
                    Err(_) => {
                        check.faults.push(format!("document {document} of segment {segment} is unreadable"));
                    }
                    Ok((key, _)) if !keys.insert(KeyHash::of(&key)) => {
                        check.faults.push(format!("`{key}` is there twice"));
                    }
                    Ok((key, Some(item))) => batch.push((key, item, document)),
                    Ok((_, None)) => {}
                }
                if batch.len() == BATCH {
                    self.compare(&mut batch, vectors, &mut check)?;
                    tick(check.documents);
                }
            }
            self.compare(&mut batch, vectors, &mut check)?;
        }
        tick(check.documents);
        Ok(check)
    }

    /// Reads every file, and fails where one is not as it was written.
    pub fn check_files(&self) -> Result<(), SearchError> {
        match self.damaged_files()?.first() {
            None => {
                self.is_checked.store(true, Ordering::Release);
                Ok(())
            }
            Some(file) => Err(self.not_as_written(file)),
        }
    }

    /// Reads, before the first change of a process, the files that a change reads: the library reads them on a thread whose
    /// panic ends the process. Whoever asks has the turn to write.
    pub(super) fn check_before_change(&self) -> Result<(), SearchError> {
        if self.folder.is_none() || self.is_checked.load(Ordering::Acquire) {
            return Ok(());
        }
        let metas = self.tantivy.load_metas().map_err(|error| self.judged(error))?;
        let directory = self.tantivy.directory();
        let managed = directory.list_managed_files();
        let is_read =
            |file: &Path| READ_TO_CHANGE.iter().any(|it| file.extension().is_some_and(|own| own == *it));
        for file in metas.list_segment_files().intersection(&managed).filter(|file| is_read(file)) {
            if !directory.validate_checksum(file).map_err(|error| self.judged(error.into()))? {
                return Err(self.not_as_written(file));
            }
        }
        self.is_checked.store(true, Ordering::Release);
        Ok(())
    }

    fn not_as_written(&self, file: &Path) -> SearchError {
        let why = format!("`{}` is not as it was written", file.display());
        SearchError::damaged(self.place(), &why)
    }

    /// The files that are not as they were written.
    fn damaged_files(&self) -> Result<Vec<PathBuf>, SearchError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        // Whoever writes removes files that are not needed any more. Where nothing can be written, nobody does.
        let _turn = turn(folder).ok();
        let damaged = self.tantivy.validate_checksum().map_err(|error| self.judged(error))?;
        let mut damaged: Vec<PathBuf> = damaged.into_iter().collect();
        damaged.sort();
        Ok(damaged)
    }

    fn compare(
        &self,
        batch: &mut Vec<(String, Item, u32)>,
        vectors: &SegmentVectors,
        check: &mut Check,
    ) -> Result<(), SearchError> {
        let texts: Vec<String> = batch.iter().map(|(_, item, _)| item.embedded_text()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let again = self.embedder.embed(&texts)?;
        for ((key, _, document), vector) in batch.drain(..).zip(again) {
            let row = vectors.row(document).unwrap_or_default();
            let is_same = row == pack(&vector)
                || vectors.likenesses(&vector, &[document]).into_iter().flatten().any(|it| it > ALIKE);
            if !is_same {
                check.faults.push(format!("the vector of `{key}` is not that of its text"));
            }
        }
        Ok(())
    }
}
