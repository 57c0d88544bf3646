//! The first files of a project, and the configuration files as they lie there.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod common;

use common::{Ground, as_somebody, find};
use kiwi_model::{ErrorKind, Explain as _, Space};
use kiwi_space::{Locations, Mode, Outcome, Spaces, scaffold};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(at).expect("folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.insert(
                    path.strip_prefix(folder).expect("inside").display().to_string(),
                    fs::read(&path).expect("file"),
                );
            }
        }
    }
    found
}

#[test]
fn a_scaffold_works_and_a_second_one_changes_nothing() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = temporary.path().join("new/project");
    let first = scaffold(&folder).expect("scaffold");
    assert!(first.iter().all(|created| created.outcome == Outcome::Made), "{first:?}");
    let before = contents(&folder);
    assert_eq!(
        before.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            ".ai/config/kiwi.toml",
            ".ai/rules/project.kappa",
            ".ai/tools/examples/greet.sh",
            ".ai/tools/examples/hello.py",
            ".gitignore"
        ]
    );
    for name in ["tools", "directives", "knowledge", "rules", "lockfiles", "config"] {
        assert!(folder.join(".ai").join(name).is_dir());
    }
    assert!(
        fs::metadata(folder.join(".ai/tools/examples/greet.sh")).expect("tool").permissions().mode() & 0o100
            != 0
    );
    let second = scaffold(&folder).expect("scaffold");
    assert!(second.iter().all(|created| created.outcome == Outcome::Kept), "{second:?}");
    assert_eq!(contents(&folder), before);

    let spaces =
        Spaces::open(Locations { project: Some(folder.clone()), cwd: folder, user: None }).expect("spaces");
    for (name, executor) in [("hello", "python_runtime"), ("greet", "bash_runtime")] {
        let tool = find(&spaces, name, Space::Project).unwrap_or_else(|fault| panic!("{fault}")).remove(0);
        assert!(tool.warnings.is_empty(), "{:?}", tool.warnings);
        assert_eq!(tool.manifest.executor.as_ref().map(|executor| executor.id.as_str()), Some(executor));
        assert!(tool.manifest.parameters.is_some() && tool.manifest.description.is_some());
        assert_eq!(tool.category, "examples");
    }
    let (config, warnings) = spaces.config().expect("config");
    let mut expected = kiwi_space::Config::default();
    // Rules that got lost must not become "allowed".
    expected.rules.project_required = true;
    assert!(warnings.is_empty() && config == expected, "{warnings:?}");
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let temporary = tempfile::tempdir().expect("folder");
    let folder = temporary.path();
    common::write(&folder.join(".ai/config/kiwi.toml"), "[limits]\ntimeout = 5\n");
    common::write(&folder.join(".gitignore"), "target\n/.ai/cache");
    std::os::unix::fs::symlink("nowhere", folder.join(".ai/config/../link")).expect("link");
    let created = scaffold(folder).expect("scaffold");
    let outcome = |name: &str| {
        created.iter().find(|created| created.path.ends_with(name)).map(|created| created.outcome)
    };
    assert_eq!(outcome("kiwi.toml"), Some(Outcome::Kept));
    assert_eq!(outcome("hello.py"), Some(Outcome::Made));
    assert_eq!(outcome(".gitignore"), Some(Outcome::Extended));
    assert_eq!(
        fs::read_to_string(folder.join(".ai/config/kiwi.toml")).expect("config"),
        "[limits]\ntimeout = 5\n"
    );
    let ignored = fs::read_to_string(folder.join(".gitignore")).expect("ignored");
    assert_eq!(
        ignored,
        "target\n/.ai/cache\n# Kiwi: state of this machine\n.ai/logs/\n.ai/sessions/\n.ai/vectors/\n"
    );
}

#[test]
fn configuration_is_read_from_both_spaces() {
    let ground = Ground::new();
    let read = || ground.spaces().config();
    ground.write("config/kiwi.toml", "[validation]\nmode = \"lenient\"\n[limits]\ntimeout = 10\n[colours]\n");
    let (config, warnings) = read().expect("config");
    assert_eq!((config.mode, config.limits.timeout.as_secs()), (Mode::Strict, 10));
    assert!(
        warnings.iter().any(|warning| warning.contains("user's configuration must allow it")),
        "{warnings:?}"
    );
    assert!(warnings.iter().any(|warning| warning.contains("`colours`")), "{warnings:?}");
    ground.write_user("config/kiwi.toml", "[validation]\nmode = \"lenient\"\n[limits]\ntimeout = 5\n");
    let (config, warnings) = read().expect("config");
    assert_eq!(
        (config.mode, config.limits.timeout.as_secs(), warnings.len()),
        (Mode::Lenient, 5, 2),
        "{warnings:?}"
    );
    for (text, place) in [("[limits]\ntimeout = 0\n", "kiwi.toml:2:11: "), ("[limits\n", "kiwi.toml:1:")] {
        ground.write("config/kiwi.toml", text);
        let error = read().expect_err("broken");
        assert_eq!(error.kind(), ErrorKind::InvalidManifest);
        assert!(error.to_string().contains(place), "{error}");
    }
    // The user may keep the file elsewhere; a project may not.
    let elsewhere = common::write(&ground.path().join("dotfiles/kiwi.toml"), "[limits]\ntimeout = 7\n");
    for path in [ground.ai("config/kiwi.toml"), ground.user_ai("config/kiwi.toml")] {
        fs::remove_file(&path).expect("remove");
    }
    std::os::unix::fs::symlink(&elsewhere, ground.user_ai("config/kiwi.toml")).expect("link");
    assert_eq!(read().expect("config").0.limits.timeout.as_secs(), 7);
    std::os::unix::fs::symlink(&elsewhere, ground.ai("config/kiwi.toml")).expect("link");
    assert_eq!(read().expect_err("leaves").kind(), ErrorKind::InvalidManifest);
    fs::remove_file(ground.ai("config/kiwi.toml")).expect("remove");
    fs::remove_file(&elsewhere).expect("remove");
    assert!(read().is_err(), "a link to nowhere is not an absent file");
}

#[test]
fn what_may_not_be_written_is_told_with_a_way_out() {
    let ground = Ground::new();
    fs::create_dir(ground.path().join("closed")).expect("folder");
    let mode = |mode| {
        for folder in [ground.path().join("closed"), ground.ai("")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("mode");
        }
    };
    mode(0o555);
    let refused = as_somebody(&ground, || {
        let spaces = ground.spaces();
        [
            scaffold(&ground.path().join("closed")).expect_err("closed").fault(),
            spaces.locks().writer(Space::Project).expect_err("closed").fault(),
        ]
    });
    mode(0o755);
    for fault in refused {
        assert_eq!((fault.kind, fault.kind.exit_code()), (ErrorKind::Usage, 2), "{fault}");
        assert_eq!(fault.hint.as_deref(), Some("make it writable for you, or work in a folder that is"));
    }
}
