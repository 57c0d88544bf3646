//! The sorted part of the index file: pages of a fixed size, each with its own checksum.
//!
//! A search reads some ten pages of an index of a hundred thousand tools; nothing else of the file is touched.

use kiwi_model::ToolId;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Corrupt, Spot};
use crate::kind::Kind;

pub(super) const PAGE: usize = 4096;
/// Checksum and number of entries.
const HEAD: usize = 10;

/// The pages of an index file.
pub(super) struct Pages {
    pub(super) file: File,
    /// Where the first page starts.
    pub(super) start: u64,
    pub(super) count: u32,
}

impl Pages {
    /// Every spot called `id`. `folders` is how many rows the index has: a spot outside them is corrupt.
    pub(super) fn find(&self, id: &ToolId, folders: usize) -> Result<Vec<Spot>, Corrupt> {
        // The last page that starts before `id`: its spots can begin there and run on into the next pages.
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.page(middle, folders)?.first() {
                Some(first) if first.id < *id => low = middle + 1,
                _ => high = middle,
            }
        }
        let mut found = Vec::new();
        for number in low.saturating_sub(1)..self.count {
            let page = self.page(number, folders)?;
            let past = page.last().is_some_and(|last| last.id > *id);
            found.extend(page.into_iter().filter(|spot| spot.id == *id));
            if past {
                break;
            }
        }
        Ok(found)
    }

    /// Every spot there is.
    pub(super) fn all(&self, folders: usize) -> Result<Vec<Spot>, Corrupt> {
        let mut spots = Vec::new();
        for number in 0..self.count {
            spots.extend(self.page(number, folders)?);
        }
        if spots.is_sorted() { Ok(spots) } else { Err(Corrupt) }
    }

    fn page(&self, number: u32, folders: usize) -> Result<Vec<Spot>, Corrupt> {
        let mut page = [0; PAGE];
        let offset = self.start + u64::from(number) * PAGE as u64;
        self.file.read_exact_at(&mut page, offset).map_err(|_| Corrupt)?;
        let mut reader = Bytes(&page);
        let checksum = reader.u64()?;
        if checksum != self::checksum(reader.0) {
            return Err(Corrupt);
        }
        let count = reader.u16()?;
        let mut spots = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let length = usize::from(reader.u8()?);
            let id = std::str::from_utf8(reader.take(length)?).map_err(|_| Corrupt)?;
            let id = ToolId::parse(id).map_err(|_| Corrupt)?;
            let folder = reader.u32()?;
            let kind = Kind::of_code(reader.u8()?).ok_or(Corrupt)?;
            if folder as usize >= folders {
                return Err(Corrupt);
            }
            spots.push(Spot { id, folder, kind });
        }
        Ok(spots)
    }
}

/// The pages of some sorted spots.
pub(super) fn encode(spots: &[Spot]) -> Vec<u8> {
    let mut out = Vec::with_capacity(spots.len() * 32 + PAGE);
    let mut body = Vec::with_capacity(PAGE);
    let mut count: u16 = 0;
    for spot in spots {
        let id = spot.id.as_str().as_bytes();
        if HEAD + body.len() + id.len() + 6 > PAGE {
            close(&mut out, &mut body, count);
            count = 0;
        }
        // An id has at most 128 bytes.
        body.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
        body.extend_from_slice(id);
        body.extend_from_slice(&spot.folder.to_le_bytes());
        body.push(spot.kind.code());
        count += 1;
    }
    if count > 0 {
        close(&mut out, &mut body, count);
    }
    out
}

fn close(out: &mut Vec<u8>, body: &mut Vec<u8>, count: u16) {
    let mut page = count.to_le_bytes().to_vec();
    page.append(body);
    page.resize(PAGE - 8, 0);
    out.extend_from_slice(&checksum(&page).to_le_bytes());
    out.extend_from_slice(&page);
}

/// Against accidents, not against people: whoever can write the index can write the tools.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    });
    words.fold(mix(MULTIPLIER, bytes.len() as u64), mix)
}

/// Bytes that are taken from the front, or found too short.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        self.take(N)?.try_into().map_err(|_| Corrupt)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Corrupt> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Corrupt> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Corrupt> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Corrupt> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Corrupt> {
        self.array().map(i64::from_le_bytes)
    }
}
