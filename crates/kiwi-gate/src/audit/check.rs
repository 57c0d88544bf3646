//! Holding the files against the journal, and the journal against the head.

use kiwi_model::Digest;
use kiwi_model::record::JournalEntry;
use kiwi_space::{KeyPurpose, PublicKey};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::head::Head;
use super::place::Place;
use super::signed::Signed;

/// More is not worth reading.
const MOST_FINDINGS: usize = 100;
/// Days are one folder deep; who hides a file deeper than this hides it from readers too.
const DEEPEST: usize = 8;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind: `edited`, `missing`, `moved`, `repeated`, `foreign`, `cut_off`, `file_missing`, `foreign_file`,
    /// `head_missing`, `head`, `unproven`, `signature`, `anchor`.
    pub kind: &'static str,
    /// In which file, below the log's folder or beside it.
    pub file: String,
    /// At which line, from 1.
    pub line: Option<u64>,
    /// What is wrong there.
    pub message: String,
}

/// What came of holding everything against everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Lines that the journal names.
    pub records: u64,
    /// Files that it names.
    pub files: usize,
    /// Signatures that were checked.
    pub checkpoints: usize,
    /// Lines that were put back after crashes, as far as anybody remembers.
    pub restored: u64,
    /// What does not hold; nothing, if all is well.
    pub findings: Vec<Finding>,
}

/// The head as `verify` found it.
pub(super) enum Vouched<'a> {
    By(&'a Head),
    Nobody,
    Damaged(String),
}

/// Checks everything. The caller holds the lock.
pub(super) fn check(place: &Place, vouched: &Vouched<'_>) -> std::io::Result<Verification> {
    let mut check = Check { place, out: Verification::default(), lines: BTreeMap::new(), at: HashMap::new() };
    let key = check.key(vouched);
    let signatures = check.signatures(vouched, key.as_ref());
    check.at.extend(signatures.iter().map(|(signed, _)| (signed.n, None)));
    check.journal(vouched)?;
    for (signed, place) in &signatures {
        check.signature(signed, place);
    }
    let is_whole = check.out.findings.iter().all(|finding| finding.file != place.journal_name());
    check.files(is_whole)?;
    Ok(check.out)
}

struct Check<'a> {
    place: &'a Place,
    out: Verification,
    /// What each file should hold: digests of its lines, by number.
    lines: BTreeMap<String, BTreeMap<u64, Digest>>,
    /// The hashes of those entries that somebody signed.
    at: HashMap<u64, Option<Digest>>,
}

impl Check<'_> {
    fn find(&mut self, kind: &'static str, file: &str, line: Option<u64>, message: impl Into<String>) {
        if self.out.findings.len() < MOST_FINDINGS {
            self.out.findings.push(Finding { kind, file: file.to_owned(), line, message: message.into() });
        }
    }

    /// The key that should have signed.
    fn key(&mut self, vouched: &Vouched<'_>) -> Option<PublicKey> {
        match self.place.keys.get(KeyPurpose::User) {
            Ok(Some(key)) => return Some(key.public()),
            Ok(None) if matches!(vouched, Vouched::Nobody) => {}
            Ok(None) => self.find("signature", "head", None, "the key that signed the log is gone"),
            Err(error) => self.find("signature", "head", None, error.to_string()),
        }
        None
    }

    /// Every signature in the head and the anchor that is somebody's. The hash it speaks of is compared later.
    fn signatures(&mut self, vouched: &Vouched<'_>, key: Option<&PublicKey>) -> Vec<(Signed, Spot)> {
        let mut all = Vec::new();
        if let Vouched::By(head) = vouched {
            all.extend(head.signed.iter().cloned().map(|signed| (signed, Spot { file: "head", line: None })));
        }
        if let Some(anchor) = &self.place.anchor {
            match std::fs::read_to_string(anchor) {
                Ok(text) => {
                    for (number, line) in (1..).zip(text.lines()) {
                        match serde_json::from_str::<Signed>(line) {
                            // An anchor may serve many spaces.
                            Ok(signed) if signed.root != self.place.root => {}
                            Ok(signed) => all.push((signed, Spot { file: "anchor", line: Some(number) })),
                            Err(_) => self.find("anchor", "anchor", Some(number), "it is not a checkpoint"),
                        }
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    if self.place.journal.exists() {
                        self.find("anchor", "anchor", None, missing(anchor));
                    }
                }
                Err(error) => {
                    let why = format!("the anchor `{}` cannot be read: {error}", anchor.display());
                    self.find("anchor", "anchor", None, why);
                }
            }
        }
        let Some(key) = key else { return all };
        for (signed, place) in &all {
            if signed.root != self.place.root {
                let message = format!("the checkpoint is about `{}`, not about this space", signed.root);
                self.find("signature", place.file, place.line, message);
            } else if !signed.is_by(key) {
                let message = format!("the checkpoint at entry {} is not signed by the user's key", signed.n);
                self.find("signature", place.file, place.line, message);
            }
        }
        self.out.checkpoints = all.len();
        all
    }

    fn signature(&mut self, signed: &Signed, place: &Spot) {
        let found = if signed.n == 0 { None } else { self.at.get(&signed.n).copied().flatten() };
        if found != signed.hash {
            let message = match found {
                None if signed.n > 0 => {
                    format!("a checkpoint was signed at entry {}, which the journal does not have", signed.n)
                }
                _ => format!("entry {} is not the one that was signed", signed.n),
            };
            self.find("signature", place.file, place.line, message);
        }
    }

    /// Reads the journal once: each entry as it was written, each behind the one before, up to where the head is.
    fn journal(&mut self, vouched: &Vouched<'_>) -> std::io::Result<()> {
        let name = self.place.journal_name();
        let end = match vouched {
            Vouched::By(head) => Some((head.n(), head.hash())),
            Vouched::Nobody | Vouched::Damaged(_) => None,
        };
        let (mut n, mut hash, mut number) = (0, None, 0);
        let mut is_whole = true;
        match std::fs::File::open(&self.place.journal) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(file) => {
                let mut reader = BufReader::with_capacity(1 << 16, file);
                let mut line = Vec::new();
                while reader.read_until(b'\n', &mut line)? > 0 {
                    number += 1;
                    let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
                    let entry = text.and_then(JournalEntry::parse);
                    line.clear();
                    let Some(entry) = entry else {
                        is_whole = false;
                        self.find("edited", &name, Some(number), "the entry is not as it was written");
                        continue;
                    };
                    if let Some((kind, message)) = out_of_place(&entry, n, hash, end.map(|(n, _)| n)) {
                        // Behind an entry that is not as it was, the next one cannot fit either.
                        if is_whole || kind != "edited" {
                            self.find(kind, &name, Some(number), message);
                        }
                        is_whole = false;
                    }
                    (n, hash) = (entry.n, Some(entry.hash));
                    self.expect(&entry);
                }
            }
        }
        match vouched {
            Vouched::Nobody if number > 0 => {
                let message = "the user space has no head for this log: nobody can tell whether it is whole";
                self.find("head_missing", &name, Some(1), message);
            }
            Vouched::Nobody => {}
            Vouched::Damaged(why) => {
                self.find("head", "head", None, format!("the head cannot be read: {why}"));
            }
            Vouched::By(head) => {
                if head.base.unproven {
                    let message = "the journal was there before its head: nobody vouches for its beginning";
                    self.find("unproven", &name, Some(1), message);
                }
                if n < head.n() {
                    let message = format!("the journal ends at entry {n}; the head says {}", head.n());
                    self.find("cut_off", &name, Some(number + 1), message);
                } else if n == head.n() && hash != head.hash() && is_whole {
                    self.find("edited", &name, Some(number), "the last entry is not the one the head names");
                }
                head.kept.iter().for_each(|kept| self.expect(&kept.entry));
                self.out.restored = head.base.restored;
            }
        }
        self.out.records = n;
        self.out.files = self.lines.len();
        Ok(())
    }

    fn expect(&mut self, entry: &JournalEntry) {
        if let Some(file) = self.lines.get_mut(&entry.file) {
            file.insert(entry.seq, entry.text);
        } else {
            self.lines.insert(entry.file.clone(), BTreeMap::from([(entry.seq, entry.text)]));
        }
        if let Some(hash) = self.at.get_mut(&entry.n) {
            *hash = Some(entry.hash);
        }
    }

    /// Reads each file once: all lines that were written, in their order, and no others.
    fn files(&mut self, journal_is_whole: bool) -> std::io::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        for (name, expected) in &lines {
            match std::fs::read(self.place.folder.join(name)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    self.find(
                        "file_missing",
                        name,
                        Some(1),
                        format!("the file with {} lines is gone", expected.len()),
                    );
                }
                Err(error) => self.find("file_missing", name, Some(1), format!("it cannot be read: {error}")),
                Ok(bytes) => {
                    if let Some((kind, line, message)) = compare(&bytes, expected, journal_is_whole) {
                        self.find(kind, name, Some(line), message);
                    }
                }
            }
        }
        let mut others = Vec::new();
        walk(&self.place.folder, "", 0, &mut |name| {
            if !lines.contains_key(name) {
                others.push(name.to_owned());
            }
        })?;
        others.sort();
        for name in others {
            // A file that was made for a line that was then taken back says nothing.
            let is_empty = std::fs::metadata(self.place.folder.join(&name))
                .is_ok_and(|file| file.is_file() && file.len() == 0);
            if !is_empty && journal_is_whole {
                self.find("foreign_file", &name, Some(1), "the journal does not know this file");
            }
        }
        Ok(())
    }
}

/// Where a signature stands.
struct Spot {
    file: &'static str,
    line: Option<u64>,
}

fn out_of_place(
    entry: &JournalEntry,
    n: u64,
    hash: Option<Digest>,
    end: Option<u64>,
) -> Option<(&'static str, String)> {
    if end.is_some_and(|end| entry.n > end) {
        return Some((
            "foreign",
            format!("entry {} is behind where the head says the journal ends", entry.n),
        ));
    }
    if entry.n > n + 1 {
        return Some(("missing", format!("entries {} to {} are missing", n + 1, entry.n - 1)));
    }
    if entry.n <= n {
        return Some(("repeated", format!("entry {} stands behind entry {n}", entry.n)));
    }
    (entry.prev != hash).then(|| ("edited", format!("entry {} does not follow from the one before", entry.n)))
}

/// The first place where a file is not what it should be.
fn compare(
    bytes: &[u8],
    expected: &BTreeMap<u64, Digest>,
    journal_is_whole: bool,
) -> Option<(&'static str, u64, String)> {
    let mut actual: Vec<Digest> = Vec::with_capacity(expected.len());
    let (mut rest, mut line) = (bytes, Vec::new());
    while rest.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        actual.push(Digest::of(&line));
        line.clear();
    }
    let is_torn = bytes.last().is_some_and(|last| *last != b'\n');
    let last = expected.last_key_value().map_or(0, |(seq, _)| *seq);
    let at = |seq: u64| usize::try_from(seq).ok().and_then(|seq| actual.get(seq.checked_sub(1)?)).copied();
    let should = |seq: u64| expected.get(&seq).copied();
    for seq in 1..=last.max(actual.len() as u64) {
        let (is, wanted) = (at(seq), should(seq));
        match (is, wanted) {
            (Some(is), Some(wanted)) if is == wanted => {}
            (None, Some(_)) => {
                return Some((
                    "cut_off",
                    seq,
                    format!("the file ends here; {} lines were written", expected.len()),
                ));
            }
            (Some(_), None) if journal_is_whole => {
                return Some(("foreign", seq, "nobody wrote this line".into()));
            }
            (_, None) => {}
            (Some(_), Some(_)) if is_torn && seq == actual.len() as u64 => {
                return Some(("cut_off", seq, "the file ends within this line".into()));
            }
            (Some(is), Some(wanted)) => {
                let is_known = || expected.values().any(|digest| *digest == is);
                let follows = Some(is) == should(seq + 1);
                return Some(if follows && at(seq + 1) == Some(wanted) {
                    ("moved", seq, "this line and the next have changed places".into())
                } else if follows {
                    ("missing", seq, "the line that was here is gone".into())
                } else if at(seq + 1) == Some(wanted) {
                    let kind = if is_known() { "repeated" } else { "foreign" };
                    (kind, seq, "this line was put in between".into())
                } else if is_known() {
                    ("moved", seq, "this line was written elsewhere in the file".into())
                } else {
                    ("edited", seq, "the line is not as it was written".into())
                });
            }
        }
    }
    None
}

/// What an anchor that is not there means for the next call.
fn missing(anchor: &Path) -> String {
    let shown = anchor.display();
    match anchor.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            format!("the anchor `{shown}` is not there, nor is its folder: every call is refused until it is")
        }
        _ => format!("the anchor `{shown}` is not there; the next call begins one"),
    }
}

/// Every file that ends in `.jsonl`, by its name below the folder.
fn walk(folder: &Path, below: &str, depth: usize, found: &mut impl FnMut(&str)) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type()?.is_dir() {
            if depth < DEEPEST {
                walk(&entry.path(), &name, depth + 1, found)?;
            }
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "jsonl") {
            found(&name);
        }
    }
    Ok(())
}
