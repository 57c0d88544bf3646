//! Prepares the vocabulary of the built-in embedder, so that a process that starts has nothing to read or hash.

/// The hash itself, so that what is stored here is what is looked for at run time.
#[path = "src/embed/static_table/mix.rs"]
mod mix;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Slots of the table, as a power of two: a quarter of them are taken, so a search ends after one or two.
const BITS: u32 = 17;
/// A slot without a word.
const FREE: u16 = u16::MAX;
/// Bytes before the scales.
const HEADER: usize = 32;

fn main() -> io::Result<()> {
    // From the folder of this package, where cargo runs it: this script may have been compiled in another checkout.
    let folder = Path::new("models/tool-embed");
    for path in ["build.rs", "src/embed/static_table/mix.rs", "models/tool-embed"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let table = fs::read(folder.join("table.bin"))?;
    let vocabulary = fs::read_to_string(folder.join("vocab.txt"))?;
    let (rows, dimensions) = shape(&table)?;
    let words: Vec<&str> = vocabulary.lines().collect();
    if words.len() != rows || rows >= usize::from(FREE) {
        return refuse(&format!("{} words for {rows} rows", words.len()));
    }
    let longest = words.iter().map(|word| word.len()).max().unwrap_or_default();

    let out = out_folder();
    fs::write(out.join("offsets.bin"), offsets(&words)?)?;
    fs::write(out.join("slots.bin"), slots(&words)?)?;
    let print = [table.as_slice(), vocabulary.as_bytes()].concat().into_iter().fold(mix::START, mix::step);
    let text = format!(
        "/// Words of the vocabulary, and rows of the table.\npub(super) const ROWS: usize = {rows};\n\
         /// Numbers of a row.\npub(super) const DIMENSIONS: usize = {dimensions};\n\
         /// Bytes of the longest word, marks included.\npub(super) const LONGEST: usize = {longest};\n\
         /// Slots of the hash table, as a power of two.\npub(super) const BITS: u32 = {BITS};\n\
         /// A slot without a word.\npub(super) const FREE: u16 = {FREE};\n\
         /// Names the rules of version 1 and these very numbers.\npub(super) const ID: &str = \"static-{rows}x{dimensions}-v1-{:08x}\";\n",
        print >> 32
    );
    fs::write(out.join("tool_embed.rs"), text)
}

/// Rows and dimensions, as the header tells them and the length confirms.
fn shape(table: &[u8]) -> io::Result<(usize, usize)> {
    let number = |at: usize| {
        let bytes = table.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    match (table.get(..8), number(8), number(12), number(16)) {
        (Some(b"KTSTATIC"), Some(1), Some(rows), Some(dimensions))
            if table.len() == HEADER + rows * 4 + rows * dimensions =>
        {
            Ok((rows, dimensions))
        }
        _ => refuse("table.bin is no table of version 1"),
    }
}

/// Where each word starts in the vocabulary's text, and where one after the last would.
fn offsets(words: &[&str]) -> io::Result<Vec<u8>> {
    let mut offsets = Vec::with_capacity(4 * words.len() + 4);
    let mut start = 0_u32;
    offsets.extend(start.to_le_bytes());
    for word in words {
        start += u32::try_from(word.len() + 1).map_err(io::Error::other)?;
        offsets.extend(start.to_le_bytes());
    }
    Ok(offsets)
}

/// The number of a word in the first free slot from where its hash points.
fn slots(words: &[&str]) -> io::Result<Vec<u8>> {
    let mut slots = vec![FREE; 1 << BITS];
    for (number, word) in words.iter().enumerate() {
        let mut at = mix::slot(word.bytes().fold(mix::START, mix::step), BITS);
        while slots.get(at).is_some_and(|taken| *taken != FREE) {
            at = (at + 1) % slots.len();
        }
        if let Some(free) = slots.get_mut(at) {
            *free = u16::try_from(number).map_err(io::Error::other)?;
        }
    }
    Ok(slots.into_iter().flat_map(u16::to_le_bytes).collect())
}

fn refuse<T>(why: &str) -> io::Result<T> {
    Err(io::Error::other(why))
}

#[expect(clippy::disallowed_methods, reason = "this is how cargo says where generated files go")]
fn out_folder() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default())
}
