//! After a crash: what the head has kept is put where it belongs.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::head::Head;
use super::place::Place;

/// Writes the lines from number `from` on into their files, and their entries into the journal, where they are missing.
/// Says how many lines were. Everything, from the checkpoint on, is written again where the machine was down or a sync
/// failed, also where it can be read: it may not be on disk.
pub(super) fn complete(place: &Place, head: &Head, from: usize) -> std::io::Result<u64> {
    let again = from == 0;
    let mut files: BTreeMap<&str, (u64, String, Vec<u64>)> = BTreeMap::new();
    let (mut before, mut entries) = (head.base.journal, String::new());
    for (number, kept) in head.kept.iter().enumerate() {
        let entry = kept.entry.clone().sealed().1 + "\n";
        if number < from {
            before += entry.len() as u64;
            continue;
        }
        entries.push_str(&entry);
        let (_, text, ends) =
            files.entry(&kept.entry.file).or_insert_with(|| (kept.entry.at, String::new(), Vec::new()));
        let line = kept.text.as_ref();
        text.push_str(line.ok_or_else(|| std::io::Error::other("the words of a line were not kept"))?);
        ends.push(text.len() as u64);
    }
    let mut restored = 0;
    for (name, (at, text, ends)) in &files {
        let path = place.folder.join(name);
        fs_err::create_dir_all(path.parent().unwrap_or(&place.folder))?;
        let good = lay(&path, *at, text.as_bytes(), again)?;
        restored += ends.iter().filter(|end| **end > good).count() as u64;
    }
    lay(&place.journal, before, entries.as_bytes(), again)?;
    Ok(restored)
}

/// Makes a file hold these bytes from `at` on. Says how many of them it held before.
///
/// Only a file that ends within them, and so far agrees, is one that a crash left behind. Anything else is left alone for
/// `verify` to report, except where everything is written again. Nothing is ever cut off: whoever is killed here leaves
/// behind no less than he found.
fn lay(path: &Path, at: u64, bytes: &[u8], again: bool) -> std::io::Result<u64> {
    let mut options = fs_err::OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).open(path)?.into_parts().0;
    if file.metadata()?.len() < at {
        return Ok(bytes.len() as u64);
    }
    let mut there = Vec::new();
    (&file).seek(SeekFrom::Start(at))?;
    (&file).read_to_end(&mut there)?;
    let good = there.iter().zip(bytes).take_while(|(is, should)| is == should).count();
    let is_cut_short = good == there.len() && good < bytes.len();
    if again || is_cut_short {
        file.write_all_at(bytes, at)?;
    }
    Ok(good as u64)
}
