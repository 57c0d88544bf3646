//! Hosts of the tests' own: what they have mounted below something that a sandbox shows, and what is shown of their own
//! settings.
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
            command.arg(example("caller")).arg(bench.launcher.kiwi()).arg(&bench.launcher.scratch);
            command.arg(script(flags)).arg(format!("{backend:?}"));
            command.stderr(Stdio::null()).status().unwrap().success()
        };
        assert!(run("ro,nosuid,nodev"), "{backend:?}");
        assert!(!run("rw"), "{backend:?}");
    }
}

/// Small files of a sandbox's own would otherwise lie there. As the host's root, they could be written.
#[test]
fn declared_settings_are_the_hosts_and_stay_as_they_are() {
    let bench = Bench::new();
    for backend in BACKENDS {
        let host = "mount -t tmpfs own /etc && mount -t tmpfs own /home && mkdir /etc/ssl && \
                    for it in passwd group hosts ssl/openssl.cnf; do echo \"own $it\" > /etc/$it; done && \
                    \"$0\" \"$@\" && cat /etc/group /etc/hosts /etc/ssl/openssl.cnf /etc/new && ls -A /etc /home";
        let script = "grep -q own /etc/passwd && echo made > /etc/new && cd && touch here && pwd";
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", host]);
        command.arg(example("caller")).arg(bench.launcher.kiwi()).arg(&bench.launcher.scratch);
        command.arg(script).arg(format!("{backend:?}")).args(["", "/etc", "/home"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = "own group\nown hosts\nown ssl/openssl.cnf\nmade\n\
                        /etc:\ngroup\nhosts\nnew\npasswd\nssl\n\n/home:\n";
        assert_eq!(said, expected, "{backend:?}: {output:?}");
    }
}
