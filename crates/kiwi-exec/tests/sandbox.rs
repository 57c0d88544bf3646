//! What a tool can do inside a sandbox: the same on every backend.

mod support;

use kiwi_exec::{Backend, ExecError, Exit, Process, Unwatched};
use kiwi_launcher::inside::Users;
use kiwi_model::{ErrorKind, Explain, Isolation, Piece, Text};
use std::fs;
use std::time::{Duration, Instant};
use support::sandbox::{LEVELS, all_walls, python, real, shell_in, walled, walls};
use support::spares::{below, parent, warm_up_native};
use support::{Bench, NOBODY, block_on, file, folder, marked, marker, one_file, process, shell, wait_until};

#[test]
fn programs_run_with_their_streams_and_exit_codes() {
    let bench = Bench::new();
    for wall in &all_walls() {
        let mut asked =
            walled(python("import sys; print('hello', sys.stdin.read()); print('e', file=sys.stderr)"), wall);
        asked.stdin = b"there".to_vec();
        let finished = bench.run(asked).unwrap();
        let (stdout, stderr) = (finished.stdout.as_slice(), finished.stderr.as_slice());
        assert_eq!((stdout, stderr), (&b"hello there\n"[..], &b"e\n"[..]), "{wall:?}");
        let exit = |script: &str| bench.run(walled(shell(script), wall)).unwrap().exit;
        assert_eq!(exit("exit 0"), Exit::Code(0));
        assert_eq!(exit("exit 137"), Exit::Code(137));
        assert_eq!(exit("kill -9 $$"), Exit::Signal(9));
        assert_eq!(exit("kill -TERM $$"), Exit::Signal(15));
        assert_eq!(bench.output(walled(shell("echo one > /dev/stdout; cat /dev/stdin"), wall)), "one\n");
    }
}

#[test]
fn verified_files_are_there_and_cannot_be_changed() {
    let bench = Bench::new();
    for wall in &all_walls() {
        let mut asked = walled(shell("cat \"$1/a/b\"; echo x > \"$1/a/b\" || echo kept; cat \"$2\""), wall);
        asked.args.extend([
            Text::literal("sh"),
            Text(vec![Piece::Folder { link: 0 }]),
            Text::file(1, "runner"),
        ]);
        asked.packages =
            vec![folder(0, vec![file("a/b", b"b\n", false)]), one_file(1, file("runner", b"r\n", false))];
        assert_eq!(bench.output(asked), "b\nkept\nr\n", "{wall:?}");
        // A program in sealed memory.
        let packages = vec![one_file(0, file("tool", b"#!/bin/sh\necho \"$1\"\n", true))];
        let asked = Process { program: Text::file(0, "tool"), packages, ..process("", &["x"]) };
        assert_eq!(bench.output(walled(asked, wall)), "x\n");
    }
}

#[test]
fn declared_paths_can_be_used_and_nothing_beside_them() {
    for wall in &all_walls() {
        let bench = Bench::new();
        let root = real(bench.home.path());
        for name in ["project/in", "project/out", "other"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["project/in/a", "project/b", "project/c", "project/secret", "other/d"] {
            fs::write(root.join(name), name).unwrap();
        }
        let project = root.join("project");
        let mut asked = walled(
            shell_in(
                &project,
                "pwd; ls; cat in/a b c; echo; echo new > out/new; echo changed > c; \
                 for f in in/a in/x b x secret ../other/d; do echo bad > $f && echo wrote $f; done 2>/dev/null; \
                 cat secret ../other/d 2>/dev/null; true",
            ),
            wall,
        );
        asked.confinement.read = vec![project.join("in"), project.join("b")];
        asked.confinement.write = vec![project.join("out"), project.join("c")];
        let expected = format!("{}\nb\nc\nin\nout\nproject/in/aproject/bproject/c\n", project.display());
        assert_eq!(bench.output(asked), expected, "{wall:?}");
        assert_eq!(fs::read_to_string(project.join("out/new")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(project.join("c")).unwrap(), "changed\n");
        assert_eq!(fs::read_to_string(project.join("in/a")).unwrap(), "project/in/a");
        // The whole project, but for a part of it.
        let mut asked =
            walled(shell_in(&project, "echo x > new && ! echo x > in/new 2>/dev/null && cat in/a"), wall);
        asked.confinement.write = vec![project.clone()];
        asked.confinement.read = vec![project.join("in")];
        assert_eq!(bench.output(asked), "project/in/a", "{wall:?}");
    }
}

#[test]
fn an_undeclared_project_is_an_empty_folder_that_cannot_be_written() {
    let bench = Bench::new();
    let project = real(bench.home.path()).join("project");
    fs::create_dir_all(project.join("sub")).unwrap();
    fs::write(project.join("file"), "x").unwrap();
    for wall in &all_walls() {
        let mut asked = walled(shell_in(&project, "pwd; ls -A .. . ; touch a 2>/dev/null || echo no"), wall);
        asked.cwd = project.join("sub");
        let expected = format!("{}/sub\n.:\n\n..:\nsub\nno\n", project.display());
        assert_eq!(bench.output(asked), expected, "{wall:?}");
    }
}

#[test]
fn home_and_temporary_folder_are_empty_private_and_usable() {
    let bench = Bench::new();
    for wall in &all_walls() {
        for _ in 0..2 {
            let mut asked = walled(
                shell("cd; pwd; ls -A . /tmp; echo x > a; cat a; echo y > $TMPDIR/b; cat /tmp/b; id -un"),
                wall,
            );
            asked.env.push(("HOME".into(), Text::literal("/root")));
            let name = if support::sandbox::is_root() { "root" } else { "nobody" };
            let output = bench.output(asked);
            let lines: Vec<&str> = output.lines().collect();
            assert_eq!(lines.get(..6).unwrap(), ["/home/kiwi", ".:", "", "/tmp:", "x", "y"], "{wall:?}");
            assert!([name, "kiwi"].contains(lines.last().unwrap()), "{output}");
        }
    }
}

#[test]
fn of_devices_there_are_three_and_they_work() {
    let bench = Bench::new();
    let script = "echo /dev/*; echo lost > /dev/null; \
        head -c 3 /dev/zero | od -An -c; for name in random urandom; do head -c 4 /dev/$name | wc -c; done";
    for wall in &all_walls() {
        let said = bench.output(walled(shell(script), wall));
        let links = "/dev/fd /dev/null /dev/random /dev/shm /dev/stderr /dev/stdin /dev/stdout /dev/urandom /dev/zero";
        assert_eq!(said, format!("{links}\n  \\0  \\0  \\0\n4\n4\n"), "{wall:?}");
    }
}

#[test]
fn an_interpreter_outside_the_fixed_list_brings_its_installation() {
    let bench = Bench::new();
    let root = real(bench.home.path());
    let venv = root.join("venv");
    let made = process("/usr/bin/python3", &["-m", "venv", "--without-pip", venv.to_str().unwrap()]);
    bench.output(made);
    let packages = fs::read_dir(venv.join("lib")).unwrap().flatten().next().unwrap().path();
    fs::write(packages.join("site-packages/extra.py"), "X = 'extra'\n").unwrap();
    for wall in &all_walls() {
        let program = venv.join("bin/python");
        let asked =
            process(program.to_str().unwrap(), &["-c", "import extra, sys; print(extra.X, sys.prefix)"]);
        assert_eq!(bench.output(walled(asked, wall)), format!("extra {}\n", venv.display()), "{wall:?}");
    }
}

#[test]
fn everything_is_ended_when_time_is_up_and_when_cancelled() {
    let bench = Bench::new();
    for wall in &all_walls() {
        let marker = marker();
        let script = format!("trap 'echo asked; exit 0' TERM; echo started; sleep {marker} & wait");
        let asked = walled(Process { timeout: Duration::from_millis(400), ..shell(&script) }, wall);
        match bench.run(asked).unwrap_err() {
            ExecError::Timeout { stdout, .. } => {
                assert_eq!(String::from_utf8(stdout).unwrap(), "started\nasked\n", "{wall:?}");
            }
            other => panic!("{wall:?} {other}"),
        }
        assert_eq!(marked(&marker), NOBODY, "{wall:?}");

        let script =
            format!("trap '' TERM; (setsid setsid sleep {marker} &); sleep {marker}; sleep {marker}");
        let started = Instant::now();
        let asked = walled(Process { timeout: Duration::from_millis(200), ..shell(&script) }, wall);
        assert_eq!(bench.run(asked).unwrap_err().kind(), ErrorKind::Timeout);
        assert!(started.elapsed() < Duration::from_secs(4), "{wall:?}");
        assert_eq!(marked(&marker), NOBODY, "{wall:?}");

        // The tool ends and leaves something behind: one that listens, one that does not.
        let script = format!(
            "sh -c \"trap '' TERM; sleep {marker}; sleep {marker}\" & setsid sleep {marker} & exit 3"
        );
        let finished = bench.run(walled(shell(&script), wall)).unwrap();
        assert_eq!(finished.exit, Exit::Code(3));
        assert_eq!(marked(&marker), NOBODY, "{wall:?}");

        let cancel = async {
            while marked(&marker).len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let asked = walled(shell(&format!("setsid sleep {marker} & sleep {marker}; true")), wall);
        let result = block_on(bench.launcher.run(asked, &Unwatched, cancel));
        assert!(matches!(result, Err(ExecError::Cancelled)), "{wall:?} {result:?}");
        assert_eq!(marked(&marker), NOBODY, "{wall:?}");
    }
}

#[test]
fn the_backend_is_found_by_itself() {
    let bench = Bench::new();
    for search in ["/usr/bin:/bin", ""] {
        let mut asked = walled(process("/bin/true", &[]), (Isolation::Restricted, Backend::Auto));
        asked.search_path = search.into();
        assert_eq!(bench.run(asked).unwrap().exit, Exit::Code(0));
    }
    // One that is there and does not work is passed over; asked for by name it is refused with its own words.
    let broken = bench.home.path().join("bwrap");
    fs::write(&broken, "#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut asked = walled(process("/bin/true", &[]), (Isolation::Sandboxed, Backend::Auto));
    asked.search_path = bench.home.path().to_str().unwrap().into();
    assert_eq!(bench.run(asked.clone()).unwrap().exit, Exit::Code(0));
    asked.confinement.backend = Backend::Bubblewrap;
    let error = bench.run(asked).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SandboxUnavailable);
    assert!(error.to_string().contains("No permissions"), "{error}");
}

#[test]
fn paths_that_cannot_be_shown_are_refused() {
    let bench = Bench::new();
    let root = real(bench.home.path());
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    for wall in &all_walls() {
        for bad in ["/", "/proc/1", "etc", "/etc/../root", root.join("link").to_str().unwrap(), "/no/such"] {
            let mut asked = walled(process("/bin/true", &[]), wall);
            asked.confinement.read = vec![bad.into()];
            let error = bench.run(asked).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidManifest, "{bad}: {error}");
        }
        let mut asked = walled(process("/bin/true", &[]), wall);
        asked.confinement.network.hosts = vec!["http://x".into()];
        assert_eq!(bench.run(asked).unwrap_err().kind(), ErrorKind::InvalidManifest);
    }
}

#[test]
fn a_program_that_is_not_visible_inside_is_named() {
    let bench = Bench::new();
    let script = real(bench.home.path()).join("script");
    fs::write(&script, format!("#!{}/interpreter\n", real(bench.home.path()).display())).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for wall in &all_walls() {
        let error = bench.run(walled(process(script.to_str().unwrap(), &[]), wall)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingRequirement, "{wall:?} {error}");
        assert!(error.to_string().contains("visible inside"), "{error}");
    }
}

/// How many more domains of landlock this process can have: the kernel allows sixteen.
const DOMAINS_LEFT: &str = r"
import ctypes, os
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
count = 0
while True:
    symlinks = ctypes.c_uint64(1 << 12)
    ruleset = libc.syscall(444, ctypes.byref(symlinks), 8, 0)
    if ruleset < 0 or libc.syscall(446, ruleset, 0) != 0:
        break
    os.close(ruleset)
    count += 1
print(count)
";

/// Each promise is held twice, so that an escape alone does not tell when one of the two walls is missing.
#[test]
fn every_wall_stands() {
    let bench = Bench::new();
    let open = Process { isolation: Isolation::Trusted, ..python(DOMAINS_LEFT) };
    assert_eq!(bench.output(open).trim(), "16", "as many as there can be");
    let spares = Bench::with_spares();
    warm_up_native(&spares);
    let native = LEVELS.map(|level| (level, Backend::Native));
    let built_ahead = native.into_iter().map(|wall| (&spares, wall));
    // Engines make mounts, after which spares are made anew; so they come last.
    for (bench, wall) in built_ahead.chain(all_walls().into_iter().map(|wall| (&bench, wall))) {
        assert_eq!(bench.output(walled(python(DOMAINS_LEFT), &wall)).trim(), "15", "landlock at {wall:?}");
        wait_until("the spares are back", || bench.launcher.ready_spares() % 2 == 0);
        let status = "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n '";
        let said = bench.output(walled(shell(status), &wall));
        let none = "0".repeat(16);
        assert_eq!(said, format!("CapEff:{none}CapBnd:{none}NoNewPrivs:1Seccomp:2"), "{wall:?}");
    }
}

/// Nobody stands between it and Kiwi.
#[test]
fn the_launcher_of_walls_built_anew_is_the_first_process_behind_them() {
    let bench = Bench::new();
    let [user, group] = Users::own().words();
    let expected = format!("__launch walled {user} {group}");
    for level in LEVELS {
        let said = bench.output(walled(shell("tr '\\0' ' ' < /proc/1/cmdline"), &(level, Backend::Native)));
        assert!(said.trim_end().ends_with(&expected), "{level:?} {said}");
    }
}

/// It begins with its walls at once, and who is to be outside leaves it to whoever is not.
#[test]
fn a_launcher_started_ahead_can_be_behind_walls_already() {
    let bench = Bench::new();
    let own = std::process::id().cast_signed();
    for level in LEVELS {
        // Of the one before nobody takes leave: there should be no other call.
        let before = below(own);
        bench.launcher.start_ahead(level, &Backend::Native, "");
        let is_ahead = |pid: &i32| parent(*pid) == Some(own) && !before.contains(pid);
        let ahead = below(own).into_iter().find(is_ahead).unwrap();
        assert_eq!(bench.output(shell("echo outside")), "outside\n");
        let marker = marker();
        let mut tools = Vec::new();
        let seen = async {
            while tools.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                tools = marked(&marker);
            }
            let around = below(ahead);
            assert!(tools.iter().any(|tool| around.contains(tool)), "{level:?} {tools:?} {around:?}");
        };
        let asked = walled(process("sleep", &[&marker]), &(level, Backend::Native));
        let result = block_on(bench.launcher.run(asked, &Unwatched, seen));
        assert!(matches!(result, Err(ExecError::Cancelled)), "{level:?} {result:?}");
        assert_eq!(marked(&marker), NOBODY, "{level:?}");
    }
}

/// Where the program that Kiwi carries along cannot be started, Kiwi is the launcher.
#[test]
fn kiwi_itself_builds_the_same_walls() {
    let bench = Bench::new();
    let mut by_kiwi = Bench::new();
    by_kiwi.launcher = by_kiwi.launcher.clone().by(Some(by_kiwi.launcher.kiwi().to_owned()));
    let script = "grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status; ls / /etc /dev; echo /proc/[0-9]*; \
                  cat /etc/shadow /proc/1/environ || echo refused; readlink /proc/self/ns/net | grep -c net";
    for wall in &walls() {
        let seen = |bench: &Bench| bench.output(walled(shell(script), wall));
        assert_eq!(seen(&bench), seen(&by_kiwi), "{wall:?}");
    }
}
