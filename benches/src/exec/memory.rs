//! What a start costs a process that has grown: nothing more through the launcher, and more the larger it is by `fork`.
//!
//! Every size is a process of its own that holds its memory all the time, so that sizes can be measured in turn.

use anyhow::Result;
use std::path::Path;
use std::process::Command;

use super::answering::Answering;
use super::start::{Hold, Starter};
use crate::stats::{Samples, Side, rotate, time};

/// How much each process holds.
pub const SIZES_MIB: [usize; 3] = [0, 256, 1024];
const TURNS: usize = 400;
const PROGRAM: [&str; 1] = ["/bin/true"];
/// The same by `fork` and `exec`: in Python, because in Rust it takes unsafe code.
const FORKER: &str = "
import os, sys, time
held = bytearray(int(sys.argv[1]) << 20)
for page in range(0, len(held), 4096): held[page] = 1
for line in sys.stdin:
    since = time.perf_counter_ns()
    child = os.fork()
    if child == 0: os.execv('/bin/true', ['true'])
    if os.waitpid(child, 0)[1] != 0: sys.exit('it failed')
    print((time.perf_counter_ns() - since) / 1000, flush=True)
";

/// Times by size: through the launcher, and by a plain fork.
pub struct BySize {
    pub launcher: Vec<Samples>,
    pub fork: Vec<Samples>,
}

/// Measures all sizes in turn, both ways.
pub fn measure(kiwi: &Path, scratch: &Path, python: &Path) -> Result<BySize> {
    let own = std::env::current_exe()?;
    let launching = |mib: usize| {
        Answering::start(Command::new(&own).arg("holder").args([kiwi, scratch]).arg(mib.to_string()))
    };
    let forking = |mib: usize| Answering::start(Command::new(python).args(["-c", FORKER, &mib.to_string()]));
    let mut launchers = SIZES_MIB.iter().map(|mib| launching(*mib)).collect::<Result<Vec<_>>>()?;
    let launcher = rotate(TURNS, &mut sides(&mut launchers))?;
    // One after the other: together they would hold more than a small machine has.
    drop(launchers);
    let mut forkers = SIZES_MIB.iter().map(|mib| forking(*mib)).collect::<Result<Vec<_>>>()?;
    let fork = rotate(TURNS / 4, &mut sides(&mut forkers))?;
    Ok(BySize { launcher, fork })
}

fn sides(holders: &mut [Answering]) -> Vec<Side<'_>> {
    holders.iter_mut().map(|holder| Box::new(|| holder.ask("")) as Side<'_>).collect()
}

/// What such a process does: one line in, one start, one line with its microseconds out.
pub fn hold(kiwi: &Path, scratch: &Path, mib: usize) -> Result<()> {
    // Not zeroes, which the kernel would only promise.
    let held = vec![1_u8; mib << 20];
    let starter = Starter::new(kiwi, scratch)?;
    for line in std::io::stdin().lines() {
        line?;
        let (took, ()) = time(|| starter.once(&PROGRAM, &Hold::STANDARD))?;
        println!("{}", took.as_secs_f64() * 1e6);
    }
    std::hint::black_box(&held);
    Ok(())
}
