//! What the host has mounted below something that a sandbox shows.
#![expect(clippy::disallowed_methods, reason = "somebody has to start the Kiwi that has another host")]

mod support;

use std::process::{Command, Stdio};
use support::sandbox::BACKENDS;
use support::{Bench, example};

/// A host of the test's own, in which something is mounted below a folder that every sandbox shows.
#[test]
fn what_is_mounted_below_something_shown_is_held_as_tightly() {
    let bench = Bench::new();
    for backend in BACKENDS {
        let script = |flags: &str| format!("grep -q ' /usr/local {flags}' /proc/self/mountinfo");
        let host = "mount -t tmpfs inner /usr/local && exec \"$0\" \"$@\"";
        let run = |flags: &str| {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user", "--mount", "sh", "-c", host]);
            command.arg(example("caller")).arg(&bench.launcher.program).arg(&bench.launcher.scratch);
            command.arg(script(flags)).arg(format!("{backend:?}"));
            command.stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(run("ro,nosuid,nodev"), "{backend:?}");
        assert!(!run("rw"), "{backend:?}");
    }
}
