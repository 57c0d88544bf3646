//! What the machine under a run can do, told at its end: figures and failures are read with it in mind.

use crate::shell::{Shell, find};

/// What is asked, by a command that succeeds where the answer is yes.
const QUESTIONS: [(&str, &str); 7] = [
    ("is root", "test $(id -u) = 0"),
    ("user namespaces", "unshare --user --map-root-user true"),
    (
        "namespaces with a /proc of their own",
        "unshare --user --map-root-user --mount --pid --fork --mount-proc true",
    ),
    (
        "namespaces as an ordinary user",
        "setpriv --reuid 65534 --regid 65534 --clear-groups unshare --user --mount --net true",
    ),
    ("landlock", "grep -q landlock /sys/kernel/security/lsm || grep -qs landlock /proc/kallsyms"),
    ("writable control groups", "test -w /sys/fs/cgroup/memory || test -w /sys/fs/cgroup/cgroup.procs"),
    ("Debian's packages", "apt-get install --dry-run --quiet --no-install-recommends bubblewrap"),
];

/// One line of answers.
pub fn describe() -> String {
    if find("sh").is_none() {
        return "unknown".into();
    }
    let yes = |command: &str| {
        Shell::new("sh")
            .and_then(|shell| shell.args(["-c", &format!("exec 2>/dev/null; {command}")]).read())
            .is_ok()
    };
    let answers =
        QUESTIONS.map(|(what, command)| format!("{what}: {}", if yes(command) { "yes" } else { "no" }));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores; {}", answers.join("; "))
}
