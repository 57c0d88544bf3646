//! Checksums of the index and of stamps: whoever can write the index can write the tools.

pub(crate) use kiwi_model::checksum;

/// The same over two numbers.
pub(crate) fn join(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(first.to_le_bytes().into_iter().chain(second.to_le_bytes())) {
        *to = from;
    }
    checksum(&bytes)
}
