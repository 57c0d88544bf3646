//! How every launcher begins.

use rustix::fd::OwnedFd;
use rustix::io::Result;

use crate::kernel::descriptors::{close_on_start, take_stdin};
use crate::kernel::signals;

/// Makes this process what every launcher is; where its orders come from.
pub fn settle() -> Result<OwnedFd> {
    // Kiwi has held them back until here.
    signals::hold_back(0);
    // Whatever Kiwi itself inherited and did not mark stays out of the tool.
    close_on_start(3)?;
    let control = take_stdin()?;
    // A session of its own: no terminal to read from or to type into, Ctrl-C reaches Kiwi alone, and every process
    // group in it belongs to the tool.
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(control)
}
