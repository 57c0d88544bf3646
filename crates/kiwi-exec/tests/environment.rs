//! Prepared Python environments, built for real. Needs an index of packages that pip can reach.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "pip has to be told how this machine reaches an index")]

mod support;

use kiwi_exec::{Environment, ExecError, ProgramSearch, PythonEnvironments, PythonWish};
use kiwi_model::{ErrorKind, Explain};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Bench, block_on, process, wait_for_marked};

fn search_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())
}

fn python() -> PathBuf {
    let versions = BTreeMap::new();
    let search = ProgramSearch { path: &search_path(), cwd: Path::new("/"), versions: &versions };
    search.find("python3").unwrap()
}

/// What the builder, and only the builder, inherits.
fn builder_env() -> Vec<(String, String)> {
    let wanted = |name: &str| {
        name.starts_with("PIP_")
            || name.starts_with("UV_")
            || name.to_ascii_lowercase().ends_with("_proxy")
            || ["PATH", "HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"].contains(&name)
    };
    std::env::vars().filter(|(name, _)| wanted(name)).collect()
}

fn environments(bench: &Bench) -> PythonEnvironments {
    PythonEnvironments {
        cache: bench.home.path().join("environments"),
        launcher: bench.launcher.clone(),
        search_path: search_path(),
    }
}

fn wish(requires: &[&str]) -> PythonWish {
    PythonWish {
        interpreter: python(),
        requires: requires.iter().map(|name| (*name).to_owned()).collect(),
        allow_source_builds: false,
        builder_env: builder_env(),
    }
}

#[test]
fn an_environment_is_built_once_and_used_by_all() {
    let bench = Bench::new();
    let environments = environments(&bench);
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
    assert!(environment.installed.contains(&"six==1.16.0".to_owned()), "{:?}", environment.installed);
    assert_eq!(environments.ready(&wish).unwrap().as_ref(), Some(environment));
    let program =
        process(environment.python.to_str().unwrap(), &["-c", "import six; print(six.__version__)"]);
    assert_eq!(bench.output(program), "1.16.0\n");

    // Order and repetition do not matter; what is asked for does.
    let again = PythonWish { requires: vec![" six==1.16.0".into(), "six==1.16.0".into()], ..wish.clone() };
    assert_eq!(environments.ready(&again).unwrap().as_ref(), Some(environment));
    let other = PythonWish { requires: vec!["six".into()], ..wish.clone() };
    assert_eq!(environments.ready(&other).unwrap(), None);

    // A folder without its marker is rubbish, whatever is in it.
    let folder = environment.python.parent().and_then(Path::parent).unwrap();
    std::fs::remove_file(folder.join(".complete")).unwrap();
    std::fs::write(folder.join("rubbish"), "").unwrap();
    assert_eq!(environments.ready(&wish).unwrap(), None);
    assert_eq!(block_on(environments.prepare(&wish, &|_: &str| ())).unwrap(), *environment);
    assert!(!folder.join("rubbish").exists());
}

#[test]
fn an_environment_without_packages_is_an_interpreter() {
    let bench = Bench::new();
    let environment = block_on(environments(&bench).prepare(&wish(&[]), &|_: &str| ())).unwrap();
    assert_eq!(environment.installed, Vec::<String>::new());
    let program = process(
        environment.python.to_str().unwrap(),
        &["-c", "import sys; print(sys.prefix != sys.base_prefix)"],
    );
    assert_eq!(bench.output(program), "True\n");
}

#[test]
fn a_package_that_cannot_be_installed_says_why() {
    let bench = Bench::new();
    let environments = environments(&bench);
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
    let option = PythonWish { requires: vec!["--index-url=http://evil".into()], ..wish };
    match block_on(environments.prepare(&option, &|_: &str| ())).unwrap_err() {
        error @ ExecError::BadRequirement { .. } => assert_eq!(error.kind(), ErrorKind::InvalidManifest),
        other => panic!("{other}"),
    }
}

#[test]
fn an_interrupted_build_is_not_used_and_leaves_nothing_running() {
    let bench = Bench::new();
    // Without uv, which might have finished by then.
    let environments = PythonEnvironments { search_path: String::new(), ..environments(&bench) };
    let wish = wish(&["six==1.16.0"]);
    let folder = environments.cache.to_str().unwrap().to_owned();
    block_on(async {
        let progress = |_: &str| ();
        let build = environments.prepare(&wish, &progress);
        assert!(
            tokio::time::timeout(Duration::from_millis(150), build).await.is_err(),
            "nothing builds so fast"
        );
    });
    wait_for_marked(&folder, 0);
    assert_eq!(environments.ready(&wish).unwrap(), None);
}
