//! The words that have a row. Their hash table was made when Kiwi was built: nothing is read or built at run time.

use super::data::{BITS, FREE, LONGEST};
use super::mix;

static TEXT: &[u8] = include_bytes!("../../../models/tool-embed/vocab.txt");
static OFFSETS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/offsets.bin"));
static SLOTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slots.bin"));

/// Longer parts of words are hashes and keys, which mean nothing.
const MAX_PART: usize = 40;
/// What a piece that goes on inside a word starts with in the vocabulary.
const INSIDE: &[u8] = b"##";

/// The row of a whole word.
pub(super) fn word(lower: &[u8]) -> Option<u16> {
    if lower.len() > LONGEST {
        return None;
    }
    find(lower.iter().copied().fold(mix::START, mix::step), &[], lower)
}

/// The rows of a part of a word, cut into the longest pieces there are from the left; none if one is missing.
pub(super) fn pieces(lower: &[u8], rows: &mut Vec<u16>) {
    if lower.len() > MAX_PART {
        return;
    }
    let before = rows.len();
    let mut rest = lower;
    while !rest.is_empty() {
        let mark = if rest.len() == lower.len() { &[] } else { INSIDE };
        let Some((row, length)) = longest(mark, rest) else {
            rows.truncate(before);
            return;
        };
        rows.push(row);
        rest = rest.get(length..).unwrap_or_default();
    }
}

/// The longest piece that `rest` starts with: its row and its length.
fn longest(mark: &[u8], rest: &[u8]) -> Option<(u16, usize)> {
    let mut hashes = [0; LONGEST];
    let mut hash = mark.iter().copied().fold(mix::START, mix::step);
    let mut count = 0;
    for (place, byte) in hashes.iter_mut().zip(rest) {
        hash = mix::step(hash, *byte);
        *place = hash;
        count += 1;
    }
    (1..=count).rev().find_map(|length| {
        let row = find(*hashes.get(length - 1)?, mark, rest.get(..length)?)?;
        Some((row, length))
    })
}

/// The row of a word given in two parts, with the hash of both.
fn find(hash: u64, mark: &[u8], word: &[u8]) -> Option<u16> {
    let (slots, _) = SLOTS.as_chunks::<2>();
    let mut at = mix::slot(hash, BITS);
    loop {
        // Three quarters of the slots are free, so this ends.
        let row = u16::from_le_bytes(*slots.get(at)?);
        if row == FREE {
            return None;
        }
        if text_of(row).and_then(|text| text.strip_prefix(mark)) == Some(word) {
            return Some(row);
        }
        at = (at + 1) & ((1 << BITS) - 1);
    }
}

/// A word as the vocabulary writes it.
fn text_of(row: u16) -> Option<&'static [u8]> {
    let (offsets, _) = OFFSETS.as_chunks::<4>();
    let offset = |at: usize| usize::try_from(u32::from_le_bytes(*offsets.get(at)?)).ok();
    let row = usize::from(row);
    TEXT.get(offset(row)?..offset(row + 1)? - 1)
}
