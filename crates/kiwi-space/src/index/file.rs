//! The index file: a head with the category folders, then the buckets.
//!
//! Written beside and renamed over, never in place: a reader that has the old one open keeps a whole old one. It is a
//! cache, so nothing is synced and any doubt about it means that it is built again.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use super::buckets::{self, Buckets, Bytes};
use super::{Corrupt, Row, Snapshot, Spot, Spots};
use crate::checksum::checksum;
use crate::kind::TREES;
use crate::root::{Root, is_inside, length};
use crate::stamp::Stamp;

const MAGIC: &[u8; 8] = b"kiwiidx\x01";
/// Magic, checksum, length of the file, bytes of the folder table, number of folders, number of buckets.
const HEAD: usize = 8 + 8 + 8 + 4 + 4 + 4;
/// Read at once: enough for the folder table of nearly every space.
const FIRST_READ: usize = 16 << 10;
const MAX_TABLE: usize = 64 << 20;
const FOLDER: &str = "cache";
const NAME: &str = "tools.index";

/// Reads the head of the index file; `None` if there is none that can be used.
pub(super) fn load(root: &Root) -> Option<Snapshot> {
    let opened = root.open_file(&format!("{FOLDER}/{NAME}")).ok()?;
    read(opened.file, length(&opened.stat)).ok()
}

fn read(file: File, size: u64) -> Result<Snapshot, Corrupt> {
    let wanted = usize::try_from(size).unwrap_or(usize::MAX);
    let mut bytes = vec![0; FIRST_READ.min(wanted)];
    file.read_exact_at(&mut bytes, 0).map_err(|_| Corrupt)?;
    let mut head = Bytes(&bytes);
    if head.take(MAGIC.len())? != MAGIC {
        return Err(Corrupt);
    }
    let sum = head.u64()?;
    let (end, table, folders, count) = (head.u64()?, head.u32()? as usize, head.u32()?, head.u32()?);
    let start = HEAD + table;
    if table > MAX_TABLE || size != end || size < start as u64 {
        return Err(Corrupt);
    }
    if bytes.len() < start {
        bytes = vec![0; start];
        file.read_exact_at(&mut bytes, 0).map_err(|_| Corrupt)?;
    }
    let summed = bytes.get(MAGIC.len() + 8..start).ok_or(Corrupt)?;
    if sum != checksum(summed) {
        return Err(Corrupt);
    }
    let mut table = Bytes(bytes.get(HEAD..start).ok_or(Corrupt)?);
    let rows = (0..folders).map(|_| read_row(&mut table)).collect::<Result<Vec<Row>, Corrupt>>()?;
    // Without a row for each tree a lookup would check nothing and find nothing.
    if !table.0.is_empty() || !TREES.iter().all(|tree| rows.iter().any(|row| row.path == *tree)) {
        return Err(Corrupt);
    }
    Ok(Snapshot::new(rows, Spots::File(Buckets { file, start: start as u64, count, end })))
}

fn read_row(table: &mut Bytes<'_>) -> Result<Row, Corrupt> {
    let flags = table.u8()?;
    let mut numbers = [0; 6];
    for number in &mut numbers {
        *number = table.i64()?;
    }
    let [device, inode, modified, modified_ns, changed, changed_ns] = numbers;
    let stamp =
        Stamp { device, inode, size: 0, modified: (modified, modified_ns), changed: (changed, changed_ns) };
    let length = usize::from(table.u16()?);
    let path = std::str::from_utf8(table.take(length)?).map_err(|_| Corrupt)?.to_owned();
    let in_tree = TREES.contains(&path.split('/').next().unwrap_or_default());
    if flags > 3 || !is_inside(&path) || !in_tree {
        return Err(Corrupt);
    }
    Ok(Row { path, stamp: (flags & 1 != 0).then_some(stamp), settled: flags & 2 != 0 })
}

/// Writes the index file, replacing the one that is there.
pub(super) fn save(root: &Root, rows: &[Row], spots: &[Spot]) -> io::Result<()> {
    let bytes = encode(rows, spots)?;
    let folder = cache_folder(root)?;
    let temporary = format!("{NAME}.{}-{:x}", std::process::id(), checksum(&thread_mark()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(&folder, temporary.as_str(), flags, Mode::from(0o644))?);
    let written = file
        .write_all(&bytes)
        .and_then(|()| Ok(rustix::fs::renameat(&folder, temporary.as_str(), &folder, NAME)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, temporary.as_str(), rustix::fs::AtFlags::empty());
    }
    written
}

/// Tells the threads of one process apart.
fn thread_mark() -> Vec<u8> {
    format!("{:?}", std::thread::current().id()).into_bytes()
}

/// Opens `cache/`, making it if need be. A symlink is not followed: a cloned project could point it anywhere.
fn cache_folder(root: &Root) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(root.fd(), FOLDER, flags, Mode::empty());
    match open() {
        Err(rustix::io::Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    match rustix::fs::mkdirat(root.fd(), FOLDER, Mode::from(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = open()?;
    // Whoever did not run `kiwi init` should not find the cache in git.
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(ignore) = rustix::fs::openat(&folder, ".gitignore", create, Mode::from(0o644)) {
        let _ = File::from(ignore).write_all(b"*\n");
    }
    Ok(folder)
}

fn encode(rows: &[Row], spots: &[Spot]) -> io::Result<Vec<u8>> {
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let mut table = Vec::new();
    for row in rows {
        let stamp =
            row.stamp.unwrap_or(Stamp { device: 0, inode: 0, size: 0, modified: (0, 0), changed: (0, 0) });
        table.push(u8::from(row.stamp.is_some()) | u8::from(row.settled) << 1);
        for number in
            [stamp.device, stamp.inode, stamp.modified.0, stamp.modified.1, stamp.changed.0, stamp.changed.1]
        {
            table.extend_from_slice(&number.to_le_bytes());
        }
        table.extend_from_slice(&u16::try_from(row.path.len()).map_err(too_large)?.to_le_bytes());
        table.extend_from_slice(row.path.as_bytes());
    }
    let (count, buckets) = buckets::encode(spots).ok_or(io::ErrorKind::FileTooLarge)?;
    let mut summed = ((HEAD + table.len() + buckets.len()) as u64).to_le_bytes().to_vec();
    for number in [table.len(), rows.len(), count as usize] {
        summed.extend_from_slice(&u32::try_from(number).map_err(too_large)?.to_le_bytes());
    }
    summed.append(&mut table);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&checksum(&summed).to_le_bytes());
    out.append(&mut summed);
    out.extend_from_slice(&buckets);
    Ok(out)
}
