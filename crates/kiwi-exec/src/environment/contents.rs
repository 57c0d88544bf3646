//! One digest over the files of a package.

use kiwi_model::{Digest, Hasher};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PIECE: usize = 128 << 10;

/// The files of one package by their path in it; the same on every machine that has the same package.
#[derive(Default)]
pub struct Contents(BTreeMap<String, Digest>);

impl Contents {
    /// Adds a file by its bytes on disk.
    pub fn add(&mut self, path: String, file: &Path) -> io::Result<()> {
        self.0.insert(path, digest_of(file)?);
        Ok(())
    }

    /// Adds a link by what it names; it is not followed.
    pub fn add_link(&mut self, path: String, link: &Path) -> io::Result<()> {
        self.0.insert(path, Digest::of(fs::read_link(link)?.as_os_str().as_bytes()));
        Ok(())
    }

    /// The digest over all of them: sorted lines of path, NUL and digest.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        for (path, digest) in &self.0 {
            hasher.update(path.as_bytes());
            hasher.update(b"\0");
            hasher.update(digest.to_string().as_bytes());
            hasher.update(b"\n");
        }
        hasher.finish()
    }
}

fn digest_of(file: &Path) -> io::Result<Digest> {
    let mut file = File::open(file)?;
    let mut hasher = Hasher::default();
    let mut piece = vec![0; PIECE];
    loop {
        let count = file.read(&mut piece)?;
        match piece.get(..count) {
            Some([]) | None => return Ok(hasher.finish()),
            Some(bytes) => hasher.update(bytes),
        }
    }
}
