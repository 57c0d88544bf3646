//! Folders that nobody else has, for as long as a run takes.

use alloc::format;
use alloc::string::String;
use rustix::io::Result;
use rustix::rand::GetRandomFlags;

pub use crate::kernel::files::remove_tree;

/// A name nobody can guess, so nobody can have prepared it.
pub fn random_name() -> Result<String> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
