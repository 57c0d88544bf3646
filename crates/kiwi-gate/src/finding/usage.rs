//! What was used after it was found: a nudge for later searches, and what an empty search shows.
//!
//! A log of lines in the user space, where it stays: what was shown, and what of it was used. Uses fade. Nothing depends on
//! it, so whatever cannot be read or written is passed over.

use kiwi_search::{Filter, Hit, Item, Kind, Prospect, SearchError, View};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::request::Session;

const FILE: &str = "vectors/usage.jsonl";
/// As much of the log as is read, and from which length on it is cut to that.
const KEPT: u64 = 128 << 10;
const MOST: u64 = 512 << 10;
/// After so many seconds a use counts half.
const HALF_LIFE: f64 = 14.0 * 86_400.0;
/// A use so many seconds after an item was shown came of that.
const AFTER: i64 = 1800;
/// Uses at which the nudge is half of what it can be.
const HALFWAY: f64 = 4.0;
/// Items of one search that are remembered as shown.
const SHOWN: usize = 10;

/// The log.
pub(super) struct Usage {
    /// Nothing where it is switched off, or where there is no user.
    file: Option<PathBuf>,
    read: Mutex<Option<Read>>,
}

/// What the log says.
#[derive(Default)]
struct Read {
    /// By name, the times of uses.
    uses: HashMap<String, Vec<i64>>,
    /// By name, when it was last shown, and to which session.
    shown: HashMap<String, (i64, String)>,
}

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Shown { at: i64, session: String, ids: Vec<String> },
    Used { at: i64, id: String },
}

impl Usage {
    pub fn new(user: Option<&Path>, is_on: bool) -> Self {
        Self { file: user.filter(|_| is_on).map(|user| user.join(FILE)), read: Mutex::default() }
    }

    /// Notes what a search showed.
    pub fn shown<'i>(&self, session: Session, items: impl Iterator<Item = &'i Item>) {
        let tools = items.filter(|item| matches!(item.kind, Kind::Tool | Kind::Mcp));
        let ids: Vec<String> = tools.take(SHOWN).map(|item| item.id.clone()).collect();
        if !ids.is_empty() {
            self.note(Line::Shown { at: now(), session: session.to_string(), ids });
        }
    }

    /// Notes that a tool was used, if it had been shown.
    pub fn used(&self, session: Session, id: &str) {
        let at = now();
        let is_meant = self.with(|read| {
            read.shown.get(id).is_some_and(|(shown, by)| *by == session.to_string() || at - shown < AFTER)
        });
        if is_meant {
            self.note(Line::Used { at, id: id.to_owned() });
        }
    }

    /// How much the use of an item speaks for it, from 0 to 1.
    pub fn of(&self, item: &Item) -> f32 {
        let at = now();
        let uses = self.with(|read| read.uses.get(&item.id).map_or(0.0, |times| faded(times, at)));
        #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1")]
        let nudge = (uses / (uses + HALFWAY)) as f32;
        nudge
    }

    /// What was used lately and often, most used first; then whatever there is, by name.
    pub fn lately(
        &self,
        tiers: &[&View],
        filter: &Filter,
        limit: usize,
        may_see: &dyn Fn(&Prospect<'_>) -> bool,
    ) -> Result<Vec<Hit>, SearchError> {
        let at = now();
        let mut names: Vec<(String, f64)> =
            self.with(|read| read.uses.iter().map(|(id, times)| (id.clone(), faded(times, at))).collect());
        names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let names: Vec<&str> = names.iter().map(|(id, _)| id.as_str()).collect();
        kiwi_search::list(tiers, &names, filter, limit, may_see)
    }

    fn with<T>(&self, ask: impl FnOnce(&Read) -> T) -> T {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = read.get_or_insert_with(|| self.file.as_deref().map(Read::of).unwrap_or_default());
        ask(read)
    }

    fn note(&self, line: Line) {
        let Some(file) = &self.file else { return };
        let _ = append(file, &line);
        if let Some(read) = self.read.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            read.take(line);
        }
    }
}

impl Read {
    fn of(file: &Path) -> Self {
        let mut read = Self::default();
        for line in tail(file).unwrap_or_default().lines() {
            if let Ok(line) = serde_json::from_str(line) {
                read.take(line);
            }
        }
        read
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Shown { at, session, ids } => {
                self.shown.extend(ids.into_iter().map(|id| (id, (at, session.clone()))));
            }
            Line::Used { at, id } => self.uses.entry(id).or_default().push(at),
        }
    }
}

/// What uses come to by now.
fn faded(times: &[i64], now: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds of a life")]
    times.iter().map(|at| 0.5_f64.powf((now - at).max(0) as f64 / HALF_LIFE)).sum()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// The end of the log.
fn tail(file: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
    let mut text = Vec::new();
    file.take(KEPT).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn append(file: &Path, line: &Line) -> std::io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.is_dir()) {
        std::fs::create_dir_all(folder)?;
    }
    if file.metadata().is_ok_and(|metadata| metadata.len() > MOST) {
        let kept = tail(file)?;
        // The first line may have lost its beginning.
        let whole = kept.split_once('\n').map_or("", |(_, rest)| rest);
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&beside, whole)?;
        std::fs::rename(&beside, file)?;
    }
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}
