//! Folders that nobody else has, for as long as a run takes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::rand::GetRandomFlags;

pub use crate::kernel::files::remove_tree;
use crate::kernel::files::remove_tree_in;
use crate::wire::{Opening, Raw};

/// The private folder of a run. It goes away with this, also where nothing of the host can be seen any more.
pub struct Folder {
    around: OwnedFd,
    name: Raw,
}

impl Folder {
    /// The one that an opening tells of, if it does.
    pub fn of(opening: Opening, descriptors: Vec<OwnedFd>) -> Result<Option<Self>> {
        let Some(name) = opening.folder else { return Ok(None) };
        let around = descriptors.into_iter().next().ok_or(Errno::INVAL)?;
        Ok(Some(Self { around, name }))
    }

    /// The folder it is made in.
    pub fn around(&self) -> BorrowedFd<'_> {
        self.around.as_fd()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove_tree_in(&self.around, self.name.bytes());
    }
}

/// A name nobody can guess, so nobody can have prepared it.
pub fn random_name() -> Result<String> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
