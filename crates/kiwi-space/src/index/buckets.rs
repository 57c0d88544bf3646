//! The larger part of the index file: spots in buckets by the hash of their id, each with its own checksum.
//!
//! A lookup reads one line of the directory and one bucket, however many tools there are.

use kiwi_model::ToolId;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Corrupt, Spot};
use crate::checksum::checksum;
use crate::kind::Kind;

/// Spots in a bucket, on average: about one kilobyte.
const LOAD: usize = 32;
/// A line of the directory: offset and length of a bucket, and its checksum.
const LINE: usize = 16;
/// Longer buckets are not written: some thousand tools of one name would be needed.
const MAX_BUCKET: u32 = 16 << 20;

/// The buckets of an index file.
pub(super) struct Buckets {
    pub(super) file: File,
    /// Where the directory starts; the buckets follow it.
    pub(super) start: u64,
    pub(super) count: u32,
    /// Length of the file.
    pub(super) end: u64,
}

impl Buckets {
    /// Every spot called `id`, in order. `folders` is how many rows the index has: a spot outside them is corrupt.
    pub(super) fn find(&self, id: &ToolId, folders: usize) -> Result<Vec<Spot>, Corrupt> {
        let mut spots =
            self.bucket(bucket_of(id.as_str(), self.count), folders, |name| name == id.as_str())?;
        spots.sort_unstable();
        Ok(spots)
    }

    /// Every spot there is, in order.
    pub(super) fn all(&self, folders: usize) -> Result<Vec<Spot>, Corrupt> {
        let mut spots = Vec::new();
        for number in 0..self.count {
            spots.extend(self.bucket(number, folders, |_| true)?);
        }
        spots.sort_unstable();
        Ok(spots)
    }

    /// Shows every spot there is, in no order: row, id and form. The ids are looked at only so far that they are
    /// names which stay in their folder.
    pub(super) fn each(&self, folders: usize, see: &mut dyn FnMut(u32, &str, Kind)) -> Result<(), Corrupt> {
        let size = self.end.checked_sub(self.start).and_then(|size| usize::try_from(size).ok());
        let mut bytes = vec![0; size.ok_or(Corrupt)?];
        // At once: a read for each bucket would cost as much as the stats that follow.
        self.file.read_exact_at(&mut bytes, self.start).map_err(|_| Corrupt)?;
        let (directory, body) = bytes.split_at_checked(self.count as usize * LINE).ok_or(Corrupt)?;
        let mut directory = Bytes(directory);
        for _ in 0..self.count {
            let (offset, length, sum) = (directory.u32()? as usize, directory.u32()?, directory.u64()?);
            let end = offset.checked_add(length as usize).ok_or(Corrupt)?;
            let bucket = body.get(offset..end).ok_or(Corrupt)?;
            if sum != checksum(bucket) {
                return Err(Corrupt);
            }
            let mut reader = Bytes(bucket);
            while !reader.0.is_empty() {
                let (id, folder, kind) = reader.spot(folders)?;
                if !is_plain(id) {
                    return Err(Corrupt);
                }
                see(folder, id, kind);
            }
        }
        Ok(())
    }

    fn bucket(
        &self,
        number: u32,
        folders: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Spot>, Corrupt> {
        if number >= self.count {
            return Ok(Vec::new());
        }
        let mut line = [0; LINE];
        self.file
            .read_exact_at(&mut line, self.start + u64::from(number) * LINE as u64)
            .map_err(|_| Corrupt)?;
        let mut line = Bytes(&line);
        let (offset, length, sum) = (u64::from(line.u32()?), line.u32()?, line.u64()?);
        let offset = self.start + u64::from(self.count) * LINE as u64 + offset;
        if length > MAX_BUCKET || offset + u64::from(length) > self.end {
            return Err(Corrupt);
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|_| Corrupt)?;
        if sum != checksum(&bytes) {
            return Err(Corrupt);
        }
        let mut reader = Bytes(&bytes);
        let mut spots = Vec::new();
        while !reader.0.is_empty() {
            let (id, folder, kind) = reader.spot(folders)?;
            if wanted(id) {
                spots.push(Spot { id: ToolId::parse(id).map_err(|_| Corrupt)?, folder, kind });
            }
        }
        Ok(spots)
    }
}

/// Directory and buckets of some spots, and how many buckets there are.
pub(super) fn encode(spots: &[Spot]) -> Option<(u32, Vec<u8>)> {
    let count = u32::try_from(spots.len().div_ceil(LOAD)).ok()?;
    let mut buckets: Vec<Vec<u8>> = vec![Vec::new(); count as usize];
    for spot in spots {
        let id = spot.id.as_str().as_bytes();
        let bucket = buckets.get_mut(bucket_of(spot.id.as_str(), count) as usize)?;
        bucket.push(u8::try_from(id.len()).ok()?);
        bucket.extend_from_slice(id);
        bucket.extend_from_slice(&spot.folder.to_le_bytes());
        bucket.push(spot.kind.code());
    }
    let (mut directory, mut body) = (Vec::with_capacity(buckets.len() * LINE), Vec::new());
    for bucket in buckets {
        let length = u32::try_from(bucket.len()).ok().filter(|length| *length <= MAX_BUCKET)?;
        directory.extend_from_slice(&u32::try_from(body.len()).ok()?.to_le_bytes());
        directory.extend_from_slice(&length.to_le_bytes());
        directory.extend_from_slice(&checksum(&bucket).to_le_bytes());
        body.extend_from_slice(&bucket);
    }
    directory.append(&mut body);
    Some((count, directory))
}

fn bucket_of(id: &str, count: u32) -> u32 {
    let hash = checksum(id.as_bytes()) >> 32;
    u32::try_from(hash % u64::from(count.max(1))).unwrap_or(0)
}

/// Whether an id is made of what ids are made of. Reading it whole would cost an allocation each.
fn is_plain(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_lowercase())
        && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.'))
}

/// Bytes that are taken from the front, or found too short.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    /// One spot: id, row and form. A row that the index does not have is corrupt.
    fn spot(&mut self, folders: usize) -> Result<(&'a str, u32, Kind), Corrupt> {
        let length = usize::from(self.u8()?);
        let id = std::str::from_utf8(self.take(length)?).map_err(|_| Corrupt)?;
        let folder = self.u32()?;
        let kind = Kind::of_code(self.u8()?).ok_or(Corrupt)?;
        if folder as usize >= folders { Err(Corrupt) } else { Ok((id, folder, kind)) }
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
