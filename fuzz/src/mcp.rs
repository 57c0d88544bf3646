//! What must hold for any bytes that a server of somebody else sends. Panics when it does not hold.
//!
//! Apart from the other bodies, since those are also compiled by rooms that know no servers.

use kiwi_mcp::fuzzed;

/// What a server prints is sorted or dropped, the same each time; a torn last line takes nothing from the others.
pub fn frames(bytes: &[u8]) {
    let count = fuzzed::frames(bytes);
    assert_eq!(fuzzed::frames(bytes), count, "read once, read twice");
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(count <= lines.max(1) * 64, "{count} messages in {lines} lines");
}

/// A definition is scanned, and makes a tool or does not; the same each time.
pub fn definition(bytes: &[u8]) {
    assert_eq!(fuzzed::definition(bytes), fuzzed::definition(bytes), "made once, made twice");
}
