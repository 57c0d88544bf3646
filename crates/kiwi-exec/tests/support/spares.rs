//! What the tests of spares share.

use kiwi_exec::{Backend, Process};
use kiwi_model::Isolation;

use super::sandbox::walled;
use super::{Bench, marked, shell, wait_until};

/// Waits until so many wait for their orders.
pub fn wait_for_spares(bench: &Bench, count: usize) {
    wait_until("the spares are ready", || bench.launcher.ready_spares() == count);
}

/// Has a spare made for processes like this one; it is run for it, twice.
pub fn warm_up(bench: &Bench, asked: &Process) {
    for _ in 0..2 {
        let _ = bench.run(asked.clone());
    }
    wait_until("a spare is ready", || bench.launcher.ready_spares() > 0);
}

/// Has spares of Kiwi's own walls made, one for each level.
pub fn warm_up_native(bench: &Bench) {
    for level in [Isolation::Sandboxed, Isolation::Restricted] {
        bench.output(walled(shell("true"), (level, Backend::Native)));
    }
    wait_for_spares(bench, 2);
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The launchers of this process that were started as spares, whether or not they serve by now.
pub fn launchers(bench: &Bench) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let line = format!("{}\0__launch\0spare", bench.launcher.kiwi().display());
    marked(&line).into_iter().filter(|pid| parent(*pid) == Some(own)).collect()
}

/// Everything below a process.
pub fn below(root: i32) -> Vec<i32> {
    let all = || std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<i32> = all().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut found = vec![root];
    loop {
        let is_new = |pid: &i32| !found.contains(pid) && parent(*pid).is_some_and(|it| found.contains(&it));
        let more: Vec<i32> = pids.iter().copied().filter(is_new).collect();
        if more.is_empty() {
            found.retain(|pid| *pid != root);
            return found;
        }
        found.extend(more);
    }
}
