//! Memory that holds secrets stays with the process that has it.

use rustix::io::Result;
use rustix::process::DumpableBehavior;

/// From here on no core file is made of this process, and no other process of the same user looks into its memory.
///
/// It also gives the process's files in `/proc` to root, which for a user who is not root leaves them readable to the
/// process itself but not writable: whoever still has to write its own `uid_map` does that first. Programs that are
/// started from here begin anew.
pub fn keep_memory_private() -> Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
}
