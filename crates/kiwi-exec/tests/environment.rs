//! Prepared Python environments, built for real. Needs an index of packages that pip can reach.

mod support;

use kiwi_exec::{Environment, Environments, ExecError, Wanted, Wish};
use kiwi_model::{Digest, ErrorKind, Explain, Language, Pin};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::packages::{
    begin_and_leave, completed, differences, environments, interpreter, pinned, search_path, versions,
};
use support::{Bench, block_on, process, wait_for_marked, wait_until};

fn wish(requires: &[&str]) -> Wish {
    support::packages::named(Language::Python, requires)
}

fn named(names: &[&str]) -> Wanted {
    Wanted::Named(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn an_environment_is_built_once_and_used_by_all() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let wish = wish(&["six==1.16.0"]);
    assert_eq!(environments.ready(&wish).unwrap(), None);
    let installs = AtomicUsize::new(0);
    let told = Mutex::new(Vec::new());
    let progress = |line: &str| {
        installs.fetch_add(
            usize::from(line.starts_with("Successfully installed") || line.starts_with("Installed 1")),
            Ordering::Relaxed,
        );
        told.lock().unwrap().push(line.to_owned());
    };
    let built: Vec<Environment> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| block_on(environments.prepare(&wish, &progress)).unwrap()))
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(installs.load(Ordering::Relaxed), 1, "{:?}", told.lock().unwrap());
    let environment = built.first().unwrap();
    assert!(built.iter().all(|other| other == environment));
    assert_eq!(versions(&environment.installed), ["six==1.16.0"]);
    assert_eq!(environments.ready(&wish).unwrap().as_ref(), Some(environment));
    let program =
        process(environment.program.to_str().unwrap(), &["-c", "import six; print(six.__version__)"]);
    assert_eq!(bench.output(program), "1.16.0\n");

    // Order and repetition do not matter; what is asked for does.
    let again = Wish { packages: named(&[" six==1.16.0", "six==1.16.0"]), ..wish.clone() };
    assert_eq!(environments.ready(&again).unwrap().as_ref(), Some(environment));
    let other = Wish { packages: named(&["six"]), ..wish.clone() };
    assert_eq!(environments.ready(&other).unwrap(), None);

    // A folder without its marker is rubbish, whatever is in it.
    let folder = environment.program.parent().and_then(Path::parent).unwrap();
    std::fs::remove_file(folder.join(".complete")).unwrap();
    std::fs::write(folder.join("rubbish"), "").unwrap();
    assert_eq!(environments.ready(&wish).unwrap(), None);
    assert_eq!(block_on(environments.prepare(&wish, &|_: &str| ())).unwrap(), *environment);
    assert!(!folder.join("rubbish").exists());
}

#[test]
fn an_environment_without_packages_is_an_interpreter() {
    let bench = Bench::new();
    let environment = block_on(environments(&bench, "cache").prepare(&wish(&[]), &|_: &str| ())).unwrap();
    assert_eq!(environment.installed, []);
    let program = process(
        environment.program.to_str().unwrap(),
        &["-c", "import sys; print(sys.prefix != sys.base_prefix)"],
    );
    assert_eq!(bench.output(program), "True\n");
}

#[test]
fn a_package_that_cannot_be_installed_says_why() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let mut wish = wish(&["kiwi-no-such-package==0.0.1"]);
    wish.builder_env = vec![
        ("PATH".into(), search_path()),
        ("PIP_NO_INDEX".into(), "1".into()),
        ("UV_NO_INDEX".into(), "1".into()),
        ("UV_OFFLINE".into(), "1".into()),
    ];
    let error = block_on(environments.prepare(&wish, &|_: &str| ())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingRequirement);
    assert!(error.to_string().contains("kiwi-no-such-package==0.0.1"), "{error}");
    assert!(error.hint().is_some() && error.details().get("output").is_some());
    assert_eq!(environments.ready(&wish).unwrap(), None);
    assert!(environments.kept().is_empty(), "what came of a failed build is gone");
    let option = Wish { packages: named(&["--index-url=http://evil"]), ..wish };
    match block_on(environments.prepare(&option, &|_: &str| ())).unwrap_err() {
        error @ ExecError::BadRequirement { .. } => assert_eq!(error.kind(), ErrorKind::InvalidManifest),
        other => panic!("{other}"),
    }
}

#[test]
fn an_interrupted_build_is_not_used_and_leaves_nothing() {
    let bench = Bench::new();
    // Without uv, which might have finished by then.
    let environments = Environments { search_path: String::new(), ..environments(&bench, "cache") };
    let wish = wish(&["six==1.16.0"]);
    let folder = environments.cache.to_str().unwrap().to_owned();
    begin_and_leave(&environments, &wish);
    wait_for_marked(&folder, 0);
    assert_eq!(environments.ready(&wish).unwrap(), None);
    wait_until("what it had built is gone", || environments.kept().is_empty());
}

#[test]
fn pins_give_the_same_environment_again_and_nothing_else() {
    let bench = Bench::new();
    let wish = wish(&["python-dateutil==2.9.0.post0"]);
    let first = block_on(environments(&bench, "first").prepare(&wish, &|_: &str| ())).unwrap();
    assert!(first.installed.iter().all(|pin| pin.integrity.is_some()));
    let [dateutil, six] = first.installed.as_slice() else { panic!("{:?}", first.installed) };
    assert_eq!((dateutil.name.as_str(), six.name.as_str()), ("python-dateutil", "six"));
    let asked = bench.output(process(first.program.to_str().unwrap(), &["-V"]));
    assert_eq!(asked.trim(), format!("Python {}", first.interpreter));

    let second = environments(&bench, "second");
    let again = block_on(second.prepare(&pinned(&wish, &first.installed), &|_: &str| ())).unwrap();
    assert_eq!((&again.installed, &again.interpreter), (&first.installed, &first.interpreter));
    let program = process(again.program.to_str().unwrap(), &["-c", "import dateutil.tz"]);
    assert_eq!(bench.output(program), "");

    // What is not pinned is not installed, whatever depends on it; another spelling is the same name.
    let alone = Pin { name: "Python_DateUtil".into(), integrity: None, ..dateutil.clone() };
    let alone = block_on(second.prepare(&pinned(&wish, &[alone]), &|_: &str| ())).unwrap();
    assert_eq!(alone.installed, std::slice::from_ref(dateutil));
    assert_eq!(completed(&second, Language::Python), 2);
}

#[test]
fn other_files_under_the_same_version_are_refused() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let wrong = Pin { name: "six".into(), version: "1.16.0".into(), integrity: Some(Digest::of(b"other")) };
    let wish = pinned(&wish(&[]), std::slice::from_ref(&wrong));
    let error = block_on(environments.prepare(&wish, &|_: &str| ())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockfileMismatch);
    assert!(error.hint().unwrap().contains("kiwi lockfile update"));
    let differences = differences::<()>(Err(error));
    let [(name, old, new)] = differences.as_slice() else { panic!("{differences:?}") };
    assert_eq!((name.as_str(), old), ("six", &Some(format!("1.16.0 {}", Digest::of(b"other")))));
    let is_there = new.as_ref().is_some_and(|new| new.starts_with("1.16.0 sha256:"));
    assert!(is_there && old != new, "{new:?}");
    assert_eq!((environments.ready(&wish).unwrap(), completed(&environments, Language::Python)), (None, 0));
}

#[test]
fn an_interpreter_without_pip_serves_too() {
    let bench = Bench::new();
    let bare = bench.home.path().join("bare");
    let python = interpreter(Language::Python);
    let venv = ["-I", "-m", "venv", "--without-pip", bare.to_str().unwrap()];
    bench.output(process(python.to_str().unwrap(), &venv));
    // Without uv, which needs no pip.
    let environments = Environments { search_path: String::new(), ..environments(&bench, "cache") };
    let wish = Wish { interpreter: bare.join("bin/python"), ..wish(&["six==1.16.0"]) };
    let environment = block_on(environments.prepare(&wish, &|_: &str| ())).unwrap();
    assert_eq!(versions(&environment.installed), ["six==1.16.0"]);
    let folder = environment.program.parent().and_then(Path::parent).unwrap();
    assert!(!folder.join(".installer").exists());
}

#[test]
fn the_version_of_an_interpreter_is_asked_once() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let (program, count) = (bench.home.path().join("python"), bench.home.path().join("count"));
    let write = |version: &str| {
        let script = format!("#!/bin/sh\necho once >> {}\necho Python {version}\n", count.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let ask = || block_on(environments.version_of(Language::Python, &program));
    let starts = || std::fs::read_to_string(&count).unwrap().lines().count();
    write("3.9.1");
    assert_eq!([ask().unwrap(), ask().unwrap()], ["3.9.1", "3.9.1"]);
    assert_eq!(starts(), 1);
    write("3.10.11");
    assert_eq!([ask().unwrap(), ask().unwrap()], ["3.10.11", "3.10.11"]);
    assert_eq!(starts(), 2);
    write("whatever");
    assert_eq!(ask().unwrap_err().kind(), ErrorKind::MissingRequirement);
}
