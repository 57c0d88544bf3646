//! What a process gets and what comes back.

mod support;

use kiwi_exec::{Backend, Confinement, ExecError, Exit, Process, Stream, Unwatched, Watch};
use kiwi_model::{ErrorKind, Explain, Isolation, Piece, Text};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use support::{Bench, block_on, process, shell};

#[test]
fn exit_codes_and_signals_come_back() {
    let bench = Bench::new();
    let exit = |script: &str| bench.run(shell(script)).unwrap().exit;
    assert_eq!(exit("exit 0"), Exit::Code(0));
    assert_eq!(exit("exit 7"), Exit::Code(7));
    assert_eq!(exit("exit 255"), Exit::Code(255));
    assert_eq!(exit("kill -9 $$"), Exit::Signal(9));
    assert_eq!(exit("kill -TERM $$"), Exit::Signal(15));
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let bench = Bench::new();
    let odd = ["", " ", "a b", "$HOME", "*", "\"'\\", "line\nline", "käse 🥝", "-n", "--"];
    let mut asked = process("/usr/bin/printf", &["[%s]"]);
    asked.args.extend(odd.iter().map(|text| Text::literal(*text)));
    let expected = format!("[{}]", odd.join("]["));
    assert_eq!(bench.output(asked), expected);
}

#[test]
fn standard_input_is_delivered_and_ends() {
    let bench = Bench::new();
    assert_eq!(bench.output(process("cat", &[])), "");
    for size in [1, 65_536, 700_001] {
        let mut asked = process("wc", &["-c"]);
        asked.stdin = vec![b'x'; size];
        assert_eq!(bench.output(asked).trim(), size.to_string());
    }
    // A tool may leave it unread, or open it again by name.
    let mut asked = process("true", &[]);
    asked.stdin = vec![0; 3 << 20];
    assert_eq!(bench.output(asked), "");
    let mut asked = shell("cat /dev/stdin; echo changed 2>&1 > /dev/stdin || echo sealed");
    asked.stdin = b"{}".to_vec();
    assert!(bench.output(asked).starts_with("{}"));
}

#[test]
fn the_environment_is_built_from_nothing() {
    let bench = Bench::new();
    let mut asked = process("env", &[]);
    asked.env.push(("B".into(), Text::literal("first")));
    asked.env.push(("B".into(), Text::literal("x=y\nz")));
    let output = bench.output(asked);
    let mut lines: Vec<&str> = output.lines().filter(|line| !line.starts_with("KIWI_CALL=")).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["B=x=y", "PATH=/usr/bin:/bin", "z"]);
}

#[test]
fn no_descriptor_but_the_three_is_inherited() {
    let bench = Bench::new();
    // One that Kiwi's own parent could have left open without marking it.
    let stray = std::fs::File::open("/dev/zero").unwrap();
    rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();
    let mut asked = process("ls", &["/proc/self/fd"]);
    asked.stdin = b"x".to_vec();
    // `ls` itself opens the folder as 3.
    assert_eq!(bench.output(asked).split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
}

#[test]
fn the_working_folder_and_symbolic_paths_are_put_in() {
    let bench = Bench::new();
    let folder = bench.home.path().join("käse");
    std::fs::create_dir(&folder).unwrap();
    let mut asked = shell("pwd; echo $1; echo $2");
    asked.cwd.clone_from(&folder);
    asked.project = "/some/project".into();
    let project = Text(vec![Piece::Literal("p=".into()), Piece::Project, Piece::Literal("/x".into())]);
    asked.args.extend([Text::literal("sh"), project, Text(vec![Piece::Kiwi])]);
    let expected = format!("{}\np=/some/project/x\n{}\n", folder.display(), bench.launcher.kiwi().display());
    assert_eq!(bench.output(asked), expected);
}

#[test]
fn relative_paths_mean_what_they_mean_to_the_caller() {
    let bench = Bench::new();
    let here = std::env::current_dir().unwrap();
    let up: std::path::PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = |path: &std::path::Path| up.join(path.strip_prefix("/").unwrap());
    let launcher =
        kiwi_exec::Launcher::new(relative(bench.launcher.kiwi()), relative(&bench.launcher.scratch));
    std::fs::write(bench.home.path().join("data"), "DATA").unwrap();
    let mut asked = shell("cat data $1/x");
    asked.cwd = relative(bench.home.path());
    asked.args.extend([Text::literal("sh"), Text(vec![Piece::Folder { link: 0 }])]);
    asked.packages = vec![support::folder(0, vec![support::file("x", b"X", false)])];
    let finished = block_on(launcher.run(asked, &Unwatched, std::future::pending())).unwrap();
    assert_eq!(String::from_utf8_lossy(&finished.stdout), "DATAX");
}

#[test]
fn standard_takes_away_privileges_and_core_files_and_trusted_does_not() {
    let bench = Bench::new();
    let script = "grep NoNewPrivs /proc/self/status; ulimit -c; cut -d' ' -f6 /proc/self/stat";
    let standard = bench.output(shell(script));
    let lines: Vec<&str> = standard.lines().collect();
    assert_eq!(lines.first().copied(), Some("NoNewPrivs:\t1"));
    assert_eq!(lines.get(1).copied(), Some("0"));
    // Read as text: in a pid namespace of its own the leader of our session may have no number here, shown as 0.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3);
    assert_ne!(lines.get(2).copied(), session, "the tool must not share Kiwi's session");
    assert_ne!(lines.get(2).copied(), Some("0"), "the tool has a session that is known here");
    let mut trusted = shell(script);
    trusted.isolation = Isolation::Trusted;
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("NoNewPrivs")).unwrap();
    assert_eq!(bench.output(trusted).lines().next(), Some(own));
}

#[test]
fn levels_that_cannot_be_enforced_are_refused() {
    let bench = Bench::new();
    for level in [Isolation::Sandboxed, Isolation::Restricted] {
        let mut asked = process("/bin/true", &[]);
        asked.isolation = level;
        asked.confinement.backend = Backend::Bubblewrap;
        asked.search_path = "/no/such/folder".into();
        let error = bench.run(asked).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SandboxUnavailable);
        assert!(error.to_string().contains(level.as_str()), "{error}");
        assert!(error.hint().unwrap().contains("bubblewrap"));
    }
}

#[test]
fn output_is_seen_while_the_process_runs_and_in_order() {
    #[derive(Default)]
    struct Seen(Mutex<Vec<(Stream, String, Duration)>>, Option<Instant>);
    impl Watch for Seen {
        fn output(&self, stream: Stream, bytes: &[u8]) {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            self.0.lock().unwrap().push((stream, text, self.1.unwrap().elapsed()));
        }
    }
    let bench = Bench::new();
    let seen = Seen(Mutex::default(), Some(Instant::now()));
    let asked = shell("echo one; sleep 0.3; echo two >&2; sleep 0.3; echo three");
    let finished = block_on(bench.launcher.run(asked, &seen, std::future::pending())).unwrap();
    assert_eq!(
        (finished.stdout.as_slice(), finished.stderr.as_slice()),
        (&b"one\nthree\n"[..], &b"two\n"[..])
    );
    let seen = seen.0.into_inner().unwrap();
    let words: Vec<_> = seen.iter().map(|(stream, text, _)| (*stream, text.trim())).collect();
    assert_eq!(words, [(Stream::Stdout, "one"), (Stream::Stderr, "two"), (Stream::Stdout, "three")]);
    let (first, last) = (seen.first().unwrap().2, seen.last().unwrap().2);
    assert!(last > first + Duration::from_millis(500), "all came at once: {first:?} {last:?}");
}

#[test]
fn output_up_to_the_cap_is_kept_and_more_ends_the_tool() {
    let bench = Bench::new();
    let limited = |script: &str, cap| {
        let mut asked = shell(script);
        asked.output_cap = cap;
        bench.run(asked)
    };
    assert_eq!(limited("printf 12345", 5).unwrap().stdout, b"12345");
    for (script, stream) in [("printf 123456", Stream::Stdout), ("printf 123456 >&2", Stream::Stderr)] {
        match limited(script, 5).unwrap_err() {
            ExecError::OutputLimit { stream: which, limit: 5 } => assert_eq!(which, stream),
            other => panic!("{other}"),
        }
    }
    let started = Instant::now();
    let error = limited("trap '' TERM; exec yes", 100_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit);
    assert!(started.elapsed() < Duration::from_secs(5));
    let error = limited("yes >&2", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputLimit);
}

#[test]
fn a_large_output_comes_whole() {
    let bench = Bench::new();
    let mut asked = shell("head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2");
    asked.output_cap = 8 << 20;
    let finished = bench.run(asked).unwrap();
    assert_eq!((finished.stdout.len(), finished.stderr.len()), (5_000_000, 3_000_000));
}

#[test]
fn what_cannot_be_started_says_why() {
    let bench = Bench::new();
    let kind = |error: &ExecError| error.kind();
    for missing in ["no-such-program", "/no/such/program", "no/such/program", ""] {
        let error = bench.run(process(missing, &[])).unwrap_err();
        assert!(
            matches!(&error, ExecError::ProgramNotFound { program, .. } if program == missing),
            "{error}"
        );
        assert_eq!(kind(&error), ErrorKind::MissingRequirement);
        assert!(error.hint().is_some());
    }
    let at = |name: &str, text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = bench.home.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        bench.run(process(path.to_str().unwrap(), &[])).unwrap_err().to_string()
    };
    assert!(at("plain", "#!/bin/sh\n", 0o644).contains("may not be executed"));
    assert!(at("lost", "#!/no/such/interpreter\n", 0o755).contains("interpreter"));
    assert!(at("data", "\u{1}\u{2}", 0o755).contains("neither a program nor a script"));
    assert!(bench.run(process("/tmp", &[])).unwrap_err().to_string().contains("not a regular file"));
    let mut asked = process("true", &[]);
    asked.cwd = "/no/such/folder".into();
    let error = bench.run(asked).unwrap_err();
    assert!(matches!(error, ExecError::WorkingFolder { .. }), "{error}");
}

#[test]
fn texts_the_system_cannot_take_are_refused_before_anything_starts() {
    let bench = Bench::new();
    let refused = |change: fn(&mut kiwi_exec::Process)| {
        let mut asked = process("touch", &[]);
        asked.args.push(Text::literal(bench.home.path().join("ran").to_str().unwrap()));
        change(&mut asked);
        let error = bench.run(asked).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{error}");
        assert!(!bench.home.path().join("ran").exists());
        error.to_string()
    };
    assert_eq!(refused(|asked| asked.program = Text::literal("to\0uch")), "the program contains a NUL byte");
    assert_eq!(refused(|asked| asked.args.push(Text::literal("a\0b"))), "argument 2 contains a NUL byte");
    let variable = |asked: &mut kiwi_exec::Process| asked.env.push(("A".into(), Text::literal("\0")));
    assert_eq!(refused(variable), "environment variable `A` contains a NUL byte");
    for name in ["", "A=B", "A\0B"] {
        let mut asked = process("true", &[]);
        asked.env.push((name.into(), Text::literal("x")));
        assert!(matches!(bench.run(asked).unwrap_err(), ExecError::BadVariable { .. }));
    }
    assert!(refused(|asked| asked.args.push(Text::literal("x".repeat(200_000)))).contains("too long"));
    assert!(
        refused(|asked| asked.args.extend((0..50_000).map(|_| Text::literal("x".repeat(100)))))
            .contains("too long")
    );
    assert!(
        refused(|asked| asked.env.push(("BIG".into(), Text::literal("x".repeat(300_000)))))
            .contains("too long")
    );
}

#[test]
fn a_launcher_started_ahead_serves_the_next_process_and_only_that() {
    let bench = Bench::new();
    bench.launcher.start_ahead(Isolation::Standard, &Backend::Auto, "/usr/bin:/bin");
    for word in ["first", "second"] {
        let finished = bench.run(shell(&format!("echo {word}"))).unwrap();
        assert_eq!(finished.stdout, format!("{word}\n").into_bytes());
    }
}

#[test]
fn the_launcher_is_the_program_that_kiwi_carries_along_and_kiwi_where_it_is_told_to_be() {
    let bench = Bench::new();
    // A shell that is asked for more than one thing stays a process of its own, whose parent is the launcher.
    let script = "readlink /proc/$PPID/exe; tr '\\0' ' ' < /proc/$PPID/cmdline; :";
    let kiwi = bench.launcher.kiwi().display().to_string();
    let shown = format!("{kiwi} __launch ");
    assert_eq!(bench.output(shell(script)), format!("/memfd:kiwi (deleted)\n{shown}"));
    let by_kiwi = bench.launcher.clone().by(Some(bench.launcher.kiwi().to_owned()));
    let run = by_kiwi.run(shell(script), &Unwatched, std::future::pending());
    let finished = block_on(run).unwrap();
    assert_eq!(String::from_utf8(finished.stdout).unwrap(), format!("{kiwi}\n{shown}"));
}

/// Kiwi holds signals back while it starts a launcher; that ends with the start, for all three. What is ignored stays so, but
/// for pipes without a reader, which end a tool.
#[test]
fn signals_reach_kiwi_its_launcher_and_the_tool() {
    const PIPE: u64 = 1 << 12;
    let bench = Bench::new();
    let told = |status: &str, name: &str| -> Vec<u64> {
        let lines = status.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|set| u64::from_str_radix(set.trim(), 16).unwrap()).collect()
    };
    let ours = || std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let (before, ignored) = (told(&ours(), "SigBlk:"), told(&ours(), "SigIgn:"));
    // The launcher lets them in again when the tool has begun, which may be a moment later.
    let let_in = "until grep -q 'SigBlk:.0*$' /proc/$PPID/status; do :; done";
    let theirs = bench.output(shell(&format!("{let_in}; cat /proc/$PPID/status /proc/self/status")));
    assert_eq!(told(&theirs, "SigBlk:"), [0, 0], "{theirs}");
    assert_eq!(ignored.iter().map(|set| set & PIPE).collect::<Vec<_>>(), [PIPE], "so that it shows");
    let kept = ignored.first().unwrap() & !PIPE;
    assert_eq!(told(&theirs, "SigIgn:"), [kept, kept], "{theirs}");
    assert_eq!(told(&ours(), "SigBlk:"), before);
}

/// A launcher begins on another processor than Kiwi; what it starts may run on all of them.
#[test]
fn a_tool_may_use_the_processors_that_kiwi_may() {
    let bench = Bench::new();
    let allowed = |status: &str| {
        status.lines().find(|line| line.starts_with("Cpus_allowed:")).map(ToOwned::to_owned).unwrap()
    };
    let ours = allowed(&std::fs::read_to_string("/proc/self/status").unwrap());
    for isolation in [Isolation::Trusted, Isolation::Standard, Isolation::Sandboxed, Isolation::Restricted] {
        for backend in [Backend::Native, Backend::Bubblewrap] {
            let confinement = Confinement { backend, ..Confinement::default() };
            let asked = Process { isolation, confinement, ..shell("cat /proc/self/status") };
            assert_eq!(allowed(&bench.output(asked)), ours, "{isolation:?}");
        }
    }
}
