//! Launchers and sandboxes that are there ahead: they come to the same as those that are not, serve once, and leave nothing.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_exec::{Backend, Finished, Launcher, Process, Unwatched};
use kiwi_model::{Isolation, Text};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use support::sandbox::{Wall, is_root, python, real, walled, walls};
use support::spares::{below, launchers, parent, wait_for_spares, warm_up, warm_up_native};
use support::{Bench, NOBODY, block_on, file, folder, marked, marker, one_file, shell, wait_until};

const NATIVE: Wall = (Isolation::Restricted, Backend::Native);
const STANDARD: Wall = (Isolation::Standard, Backend::Auto);
const TRUSTED: Wall = (Isolation::Trusted, Backend::Auto);

/// Every way to be held, with walls and without.
fn holds() -> Vec<Wall> {
    [walls(), vec![STANDARD, TRUSTED]].concat()
}

fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

/// The child of this process that a running process is below.
fn launcher_of(mut pid: i32) -> i32 {
    let own = std::process::id().cast_signed();
    while let Some(above) = parent(pid).filter(|above| *above != own) {
        pid = above;
    }
    pid
}

/// Runs it, and finds its launcher meanwhile.
fn served(bench: &Bench, wall: &Wall) -> (Finished, i32) {
    let marker = marker();
    let asked = walled(shell("echo served; sleep 0.3"), wall);
    let asked = Process { args: [asked.args, vec![Text::literal(&marker)]].concat(), ..asked };
    block_on(async {
        let run = bench.launcher.run(asked, &Unwatched, std::future::pending());
        let find = async {
            loop {
                if let Some(pid) = marked(&marker).first() {
                    return launcher_of(*pid);
                }
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        let (finished, launcher) = tokio::join!(run, find);
        (finished.unwrap(), launcher)
    })
}

#[test]
fn a_spare_serves_once_and_another_takes_its_place() {
    for wall in &holds() {
        let bench = Bench::with_spares();
        assert_eq!(
            (bench.launcher.ready_spares(), launchers(&bench)),
            (0, vec![]),
            "none before it is needed"
        );
        // The view of `bwrap` must have been asked for before, and arguments are no part of it.
        warm_up(&bench, &walled(shell("true"), wall));
        let mut before = NOBODY.to_vec();
        for _ in 0..3 {
            wait_for_spares(&bench, 1);
            let mut spares = Vec::new();
            wait_until("only the spare is left", || {
                spares = launchers(&bench);
                spares.len() == 1
            });
            assert_ne!(spares, before, "{wall:?}");
            let (finished, launcher) = served(&bench, wall);
            assert!(finished.exit.is_success() && finished.stdout == b"served\n", "{wall:?} {finished:?}");
            assert_eq!(spares, [launcher], "{wall:?}");
            before = spares;
        }
    }
}

/// Everything a process can tell about itself, but for names and numbers that are others each time.
const TOLD: &str = r#"
import os, re, sys
names = "Umask Uid Gid Groups SigPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb"
names += " NoNewPrivs Seccomp Seccomp_filters Cpus_allowed_list Mems_allowed_list THP_enabled CoreDumping"
for line in open("/proc/self/status"):
    if line.split(":")[0] in names.split():
        print(line.strip())
print(open("/proc/self/limits").read())
for name in ["cgroup", "oom_score_adj", "timerslack_ns", "loginuid", "uid_map", "gid_map", "setgroups"]:
    try: print(name, open("/proc/self/" + name).read().strip())
    except OSError as error: print(name, error)
# What comes later in the table covers what came before; a number of mounts at one place tells when there are two.
for line in sorted(" ".join(line.split()[3:]) for line in open("/proc/self/mountinfo")):
    print(re.sub(r"run-[0-9a-f]{32}|\.tmp\w+", "RANDOM", line))
for fd in sorted(os.listdir("/proc/self/fd"), key=int):
    try: print("fd", fd, re.sub(r"\d+\]", "N]", os.readlink("/proc/self/fd/" + fd)))
    except OSError: pass
for name in sorted(os.environ):
    print(name, "" if name == "KIWI_CALL" else re.sub(r"run-[0-9a-f]{32}", "RANDOM", os.environ[name]))
print(os.getcwd(), os.nice(0), os.uname().nodename, os.getpgrp() == os.getpid(), os.getsid(0) == os.getppid())
print(sys.stdin.read())
"#;

/// The same of everything around it, where that is its own: a sandbox.
const SEEN: &str = r#"
for line in open("/proc/self/status"):
    if line.startswith(("NStgid", "NSpgid", "NSsid")):
        print(line.strip())
print(open("/proc/self/net/dev").read())
print(os.getpid(), os.getppid(), os.getpgrp(), os.getsid(0), sorted(pid for pid in os.listdir("/proc") if pid.isdigit()))
for top, folders, files in os.walk("/"):
    folders[:] = sorted(f for f in folders if os.path.join(top, f) not in ("/usr", "/proc", "/etc/ssl", "/etc/alternatives"))
    for name in sorted(folders + files):
        path = os.path.join(top, name)
        stat = os.lstat(path)
        shown = re.sub(r"run-[0-9a-f]{32}|\.tmp\w+", "RANDOM", path)
        print(shown, oct(stat.st_mode), stat.st_uid, stat.st_gid, "" if os.path.isdir(path) else stat.st_size)
for path in ["/x", "/etc/x", "/usr/x", "/tmp/x", "/dev/x", "/home/x", "/home/kiwi/x", os.getcwd() + "/x", "/proc/sys/kernel/hostname"]:
    try: open(path, "w"); print("wrote", path)
    except OSError as error: print(path, error.errno)
"#;

/// A process with something of everything.
fn rich(root: &Path, wall: &Wall) -> Process {
    let has_walls = wall.0 >= Isolation::Sandboxed;
    let script = if has_walls { [TOLD, SEEN].concat() } else { TOLD.to_owned() };
    let mut asked = walled(python(&script), wall);
    for name in ["read", "write", "project"] {
        let _ = std::fs::create_dir(root.join(name));
    }
    asked.confinement.read = vec![root.join("read")];
    asked.confinement.write = vec![root.join("write")];
    asked.confinement.network.hosts = vec!["example.org".into()];
    asked.confinement.limits.files = Some(100);
    asked.confinement.limits.cpu = Some(7.0);
    asked.project = root.join("project");
    asked.cwd = root.join("project");
    asked.stdin = b"input".to_vec();
    asked.has_secrets = true;
    asked.args.push(Text::file(1, "runner"));
    asked.packages = vec![one_file(1, file("runner", b"r", false))];
    if wall.1 != Backend::Bubblewrap {
        asked.args.push(Text::file(0, "a/b"));
        asked.packages.push(folder(0, vec![file("a/b", b"b", false)]));
    }
    asked
}

#[test]
fn nothing_tells_a_spare_from_what_is_started_anew() {
    let asked = |root: &Path, wall: &Wall, has_secrets| Process { has_secrets, ..rich(root, wall) };
    for (wall, has_secrets) in holds().iter().flat_map(|wall| [(wall, true), (wall, false)]) {
        let bench = Bench::with_spares();
        let asked = asked(&real(bench.home.path()), wall, has_secrets);
        let anew = Launcher::new(bench.launcher.kiwi(), &bench.launcher.scratch);
        let anew = block_on(anew.run(asked.clone(), &Unwatched, std::future::pending())).unwrap();
        let expected = String::from_utf8(anew.stdout).unwrap();
        warm_up(&bench, &asked);
        wait_for_spares(&bench, 1);
        let spares = launchers(&bench);
        let told = bench.output(asked);
        wait_until("the spare has served", || launchers(&bench).iter().all(|pid| !spares.contains(pid)));
        assert_eq!(told, expected, "{wall:?}");
        assert!(expected.contains("input"));
        assert_eq!(expected.contains("Max open files            100"), *wall != TRUSTED, "{wall:?}");
    }
}

#[test]
fn what_does_not_fit_is_built_anew_and_the_spare_stays() {
    let bench = Bench::with_spares();
    warm_up_native(&bench);
    let spares = launchers(&bench);
    let restricted = |mut asked: Process| {
        asked = walled(asked, NATIVE);
        bench.output(asked)
    };
    // Around something that a spare has already.
    let around = Process { project: "/home".into(), ..shell("ls /home") };
    assert_eq!(restricted(around), "kiwi\n");
    // In place of something it has.
    let mut instead = shell("readlink /home/kiwi");
    instead.confinement.links = vec![("/home/kiwi".into(), "/tmp".into())];
    assert_eq!(restricted(instead), "/tmp\n");
    if is_root() {
        // Counted by a group that it would have to be born in.
        let mut counted = shell("echo counted");
        counted.confinement.limits.pids = Some(20);
        assert_eq!(restricted(counted), "counted\n");
    }
    // What has no walls does not get any.
    let open = || bench.output(walled(shell("grep ^Seccomp: /proc/self/status"), STANDARD));
    assert_eq!(open(), "Seccomp:\t0\n");
    wait_for_spares(&bench, 3);
    // Nor does what has them do without, where the one without is all there is.
    let (alone, bare) = (Bench::with_spares(), shell("grep ^Seccomp: /proc/self/status"));
    warm_up(&alone, &walled(bare.clone(), STANDARD));
    assert_eq!(alone.output(walled(bare, NATIVE)), "Seccomp:\t2\n");
    assert!(spares.iter().all(|pid| launchers(&bench).contains(pid)), "{spares:?} {:?}", launchers(&bench));
    // What is refused before anything starts costs no spare either.
    let missing = Process { program: Text::literal("no-such-program"), ..walled(shell(""), NATIVE) };
    assert!(bench.run(missing).is_err());
    wait_for_spares(&bench, 3);
}

#[test]
fn a_view_of_bwrap_that_is_another_one_each_time_has_no_spare() {
    let bench = Bench::with_spares();
    let wall = (Isolation::Restricted, Backend::Bubblewrap);
    let projects = ["a", "b", "a", "b"].map(|name| real(bench.home.path()).join(name));
    for project in projects {
        bench.output(walled(Process { project, ..shell("true") }, &wall));
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!((bench.launcher.ready_spares(), launchers(&bench)), (0, vec![]));
}

#[test]
fn a_spare_that_died_is_not_missed() {
    for wall in &holds() {
        let bench = Bench::with_spares();
        let asked = walled(shell("echo fine"), wall);
        warm_up(&bench, &asked);
        // The launcher; everybody below it; all of them.
        for victims in [|it: i32| vec![it], |it| below(it), |it| [vec![it], below(it)].concat()] {
            wait_for_spares(&bench, 1);
            wait_until("only the spare is left", || launchers(&bench).len() == 1);
            let spare = *launchers(&bench).first().unwrap();
            let all = below(spare);
            // Only `bwrap` needs somebody outside.
            assert_eq!(all.is_empty(), wall.1 != Backend::Bubblewrap, "{wall:?}");
            let doomed = victims(spare);
            for victim in &doomed {
                // Some go when another one does.
                let _ = kill_process(Pid::from_raw(*victim).unwrap(), Signal::KILL);
            }
            // Who is killed in the moment of an order has been killed in a run; a launcher has not even then.
            wait_until("those below are gone", || doomed.iter().all(|pid| *pid == spare || has_ended(*pid)));
            assert_eq!(bench.output(asked.clone()), "fine\n", "{wall:?}");
            wait_until("nothing of it is left", || {
                all.iter().chain([&spare]).all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
            });
        }
    }
}

#[test]
fn what_is_replaced_on_the_host_is_seen_as_it_is() {
    for wall in &walls() {
        let bench = Bench::with_spares();
        let root = real(bench.home.path());
        let (data, old) = (root.join("data"), root.join("old"));
        let make = |text: &str| {
            std::fs::create_dir(&data).unwrap();
            std::fs::write(data.join("file"), text).unwrap();
        };
        make("one");
        let mut asked = walled(shell(&format!("cat {}/file", data.display())), wall);
        asked.confinement.read = vec![data.clone()];
        warm_up(&bench, &asked);
        std::fs::rename(&data, &old).unwrap();
        make("two");
        assert_eq!(bench.output(asked.clone()), "two", "{wall:?}");
        std::fs::remove_dir_all(&data).unwrap();
        std::fs::rename(&old, &data).unwrap();
        assert_eq!(bench.output(asked), "one", "{wall:?}");
    }
}
