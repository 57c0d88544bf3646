//! The bytes that were verified are the bytes that run.

mod support;

use kiwi_exec::{ExecError, Process};
use kiwi_model::{Content, Digest, ErrorKind, Explain, File, FileEntry, Piece, Text};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Bench, file, folder, one_file, process, shell};

fn on_disk(path: &str, at: &Path, verified: &[u8], is_executable: bool) -> File {
    let entry = FileEntry { path: path.into(), sha256: Digest::of(verified), is_executable };
    File { entry, content: Content::OnDisk(at.to_owned()) }
}

fn script(link: usize, path: &str) -> Process {
    Process { args: vec![Text::file(link, path)], ..process("sh", &[]) }
}

#[test]
fn one_file_runs_from_sealed_memory() {
    let bench = Bench::new();
    let text = b"echo \"$0\"; echo more >> \"$0\" || echo refused; tail -1 \"$0\"\n# last";
    let asked = Process { packages: vec![one_file(0, file("tool.sh", text, false))], ..script(0, "tool.sh") };
    let output = bench.output(asked);
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines.first().unwrap().starts_with("/proc/self/fd/"), "{output}");
    assert_eq!(lines.last().copied(), Some("# last"));
    assert!(output.contains("refused") || !output.contains("more"), "{output}");
}

#[test]
fn one_file_can_be_the_program_itself() {
    let bench = Bench::new();
    let packages = vec![one_file(0, file("tool", b"#!/bin/sh\necho \"ran with $1\"\n", true))];
    let asked = Process { program: Text::file(0, "tool"), packages, ..process("", &["x"]) };
    assert_eq!(bench.output(asked), "ran with x\n");
    let binary = std::fs::read("/bin/echo").unwrap();
    let packages = vec![one_file(0, file("echo", &binary, true))];
    let asked = Process { program: Text::file(0, "echo"), packages, ..process("", &["hello"]) };
    assert_eq!(bench.output(asked), "hello\n");
    let packages = vec![one_file(0, file("tool", b"#!/bin/sh\n", false))];
    let asked = Process { program: Text::file(0, "tool"), packages, ..process("", &[]) };
    let refused = bench.run(asked);
    // Kernels before 6.3 have no memory that cannot be executed.
    if let Err(error) = refused {
        assert!(matches!(error, ExecError::NotExecutable { .. }), "{error}");
    }
}

#[test]
fn a_package_runs_from_a_private_copy() {
    let bench = Bench::new();
    let files = vec![
        file("main.sh", b". \"${0%/*}/lib/part.sh\"; \"${0%/*}/bin/tool\"; stat -c %a \"${0%/*}\" \"$0\" \"${0%/*}/bin/tool\" \"${0%/*}/lib\"; echo \"$0\"", false),
        file("lib/part.sh", b"echo part", false),
        file("bin/tool", b"#!/bin/sh\necho tool", true),
    ];
    let asked = Process { packages: vec![folder(0, files)], ..script(0, "main.sh") };
    let output = bench.output(asked);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.get(..6).unwrap(), ["part", "tool", "700", "444", "555", "700"]);
    assert!(Path::new(lines.last().unwrap()).starts_with(&bench.launcher.scratch));
    assert!(!Path::new(lines.last().unwrap()).exists());
    assert_eq!(bench.snapshots(), 0);
}

#[test]
fn a_tool_may_litter_its_copy() {
    let bench = Bench::new();
    let text = b"d=${0%/*}; mkdir -p $d/a/b; touch $d/a/b/c; ln -s / $d/root; chmod 0 $d/a/b; chmod 500 $d/a; chmod 0 $d";
    let asked =
        Process { packages: vec![folder(0, vec![file("main.sh", text, false)])], ..script(0, "main.sh") };
    assert_eq!(bench.output(asked), "");
    assert_eq!(bench.snapshots(), 0);
}

#[test]
fn only_what_is_referred_to_is_placed() {
    let bench = Bench::new();
    let runtime = || {
        folder(
            1,
            vec![
                file("runner.sh", b"cat \"$1\"; echo; echo \"$0\"; ls $2", false),
                file("tool.yaml", b"", false),
            ],
        )
    };
    let mut asked = script(1, "runner.sh");
    asked.args.push(Text::file(0, "data"));
    asked.packages = vec![one_file(0, file("data", b"DATA", false)), runtime()];
    let output = bench.output(asked.clone());
    let lines: Vec<&str> = output.lines().collect();
    // A single file of a runtime comes by itself, from memory.
    assert_eq!(lines.first().copied(), Some("DATA"));
    assert!(lines.get(1).unwrap().starts_with("/proc/self/fd/"), "{output}");
    // As soon as somebody wants the folder, the file is in it; also for a tool of one file.
    for (link, expected) in [(1, "runner.sh\ntool.yaml"), (0, "data")] {
        let mut asked = asked.clone();
        asked.args.push(Text(vec![Piece::Folder { link }]));
        let output = bench.output(asked);
        assert!(output.starts_with("DATA\n") && output.trim_end().ends_with(expected), "{output}");
    }
    // Environment variables may refer to files too.
    let mut asked = shell("cat \"$DATA\"");
    asked.env.push(("DATA".into(), Text::file(0, "data")));
    asked.packages = vec![one_file(0, file("data", b"DATA", false))];
    assert_eq!(bench.output(asked), "DATA");
}

#[test]
fn references_to_nothing_and_paths_that_leave_are_refused() {
    let bench = Bench::new();
    let error = bench.run(script(0, "missing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    let asked = Process { packages: vec![folder(0, vec![file("a", b"", false)])], ..script(0, "b") };
    assert!(matches!(bench.run(asked), Err(ExecError::UnknownFile { .. })));
    for path in ["../a", "/tmp/a", "a/../../b"] {
        let files = vec![file("a", b"", false), file(path, b"", false)];
        let asked = Process { packages: vec![folder(0, files)], ..script(0, "a") };
        let error = bench.run(asked).unwrap_err();
        assert!(matches!(&error, ExecError::UnsafePath { path: named } if named == path), "{error}");
    }
}

#[test]
fn a_file_that_changed_on_disk_does_not_run() {
    let bench = Bench::new();
    let path = bench.home.path().join("tool.sh");
    let good = b"echo good";
    for form in ["one", "folder"] {
        let asked = || {
            let file = on_disk("tool.sh", &path, good, false);
            let package = if form == "one" { one_file(0, file) } else { folder(0, vec![file]) };
            Process { packages: vec![package], ..script(0, "tool.sh") }
        };
        std::fs::write(&path, good).unwrap();
        assert_eq!(bench.output(asked()), "good\n");
        for bad in [&b"echo evil"[..], b"echo goo", b"echo good;", b""] {
            std::fs::write(&path, bad).unwrap();
            match bench.run(asked()).unwrap_err() {
                error @ ExecError::Tampered { .. } => {
                    assert_eq!(error.kind(), ErrorKind::IntegrityMismatch);
                    assert!(
                        error.to_string().starts_with("integrity mismatch for `tool.sh`: computed sha256:"),
                        "{error}"
                    );
                }
                other => panic!("{other}"),
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(bench.run(asked()), Err(ExecError::Io { .. })));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        assert!(matches!(bench.run(asked()), Err(ExecError::Io { .. })), "a pipe must not hang Kiwi");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_that_somebody_keeps_swapping_runs_verified_or_not_at_all() {
    let bench = Bench::new();
    let path = bench.home.path().join("tool.sh");
    let good = format!("{}echo good", "#\n".repeat(100_000));
    let evil = good.replace("good", "evil");
    std::fs::write(&path, &good).unwrap();
    let stop = AtomicBool::new(false);
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = bench.home.path().join("other");
            while !stop.load(Ordering::Relaxed) {
                // Both ways: replaced by another file, and written over in place.
                for text in [&evil, &good] {
                    std::fs::write(&other, text).unwrap();
                    std::fs::rename(&other, &path).unwrap();
                    std::thread::yield_now();
                }
                std::fs::write(&path, &evil).unwrap();
                std::fs::write(&path, &good).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
        });
        for round in 0..300 {
            let file = on_disk("tool.sh", &path, good.as_bytes(), false);
            let package = if round % 2 == 0 { one_file(0, file) } else { folder(0, vec![file]) };
            match bench.run(Process { packages: vec![package], ..script(0, "tool.sh") }) {
                Ok(finished) => {
                    assert_eq!(String::from_utf8_lossy(&finished.stdout), "good\n");
                    ran += 1;
                }
                Err(ExecError::Tampered { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(ran + refused, 300);
    assert!(refused > 0, "the writer never came between");
}

#[test]
fn programs_in_a_fresh_copy_start_while_others_are_being_started() {
    // A descriptor open for writing that a process being started elsewhere still holds makes a program "busy".
    let bench = Bench::new();
    let files = || vec![file("tool", b"#!/bin/sh\nexit 0\n", true)];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..40 {
                    let program = Text::file(0, "tool");
                    let asked = Process { program, packages: vec![folder(0, files())], ..process("", &[]) };
                    assert!(bench.run(asked).unwrap().exit.is_success());
                }
            });
        }
    });
}

#[test]
fn the_scratch_folder_is_private() {
    let bench = Bench::new();
    let asked = Process { packages: vec![folder(0, vec![file("a", b"", false)])], ..script(0, "a") };
    bench.output(asked);
    let mode = std::fs::metadata(&bench.launcher.scratch).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
