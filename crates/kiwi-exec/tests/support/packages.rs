//! What the tests of prepared environments share. They need indexes of packages that pip and npm can reach.
#![allow(clippy::disallowed_methods, reason = "installers have to be told how this machine reaches an index")]

use kiwi_exec::{Environments, ExecError, ProgramSearch, Wanted, Wish};
use kiwi_model::{Language, Pin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Bench, block_on};

pub fn search_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())
}

pub fn interpreter(language: Language) -> PathBuf {
    let versions = BTreeMap::new();
    let search = ProgramSearch { path: &search_path(), cwd: Path::new("/"), versions: &versions };
    let name = match language {
        Language::Python => "python3",
        Language::Node => "node",
    };
    search.find(name).unwrap()
}

/// What the builder, and only the builder, inherits.
pub fn builder_env() -> Vec<(String, String)> {
    let wanted = |name: &str| {
        ["PIP_", "UV_", "npm_config_", "NPM_CONFIG_"].iter().any(|prefix| name.starts_with(prefix))
            || name.to_ascii_lowercase().ends_with("_proxy")
            || ["PATH", "HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"].contains(&name)
    };
    std::env::vars().filter(|(name, _)| wanted(name)).collect()
}

/// Environments in a folder of the bench; another folder is another cache.
pub fn environments(bench: &Bench, folder: &str) -> Environments {
    Environments {
        cache: bench.home.path().join(folder),
        launcher: bench.launcher.clone(),
        search_path: search_path(),
    }
}

pub fn named(language: Language, requires: &[&str]) -> Wish {
    Wish {
        language,
        interpreter: interpreter(language),
        packages: Wanted::Named(requires.iter().map(|name| (*name).to_owned()).collect()),
        allow_source_builds: false,
        builder_env: builder_env(),
    }
}

pub fn pinned(wish: &Wish, pins: &[Pin]) -> Wish {
    Wish { packages: Wanted::Pinned(pins.to_vec()), ..wish.clone() }
}

/// `name==version` of each, without digests.
pub fn versions(pins: &[Pin]) -> Vec<String> {
    pins.iter().map(|pin| format!("{}=={}", pin.name, pin.version)).collect()
}

/// What differs, if that is what went wrong: name, pinned, installed.
pub fn differences<T: std::fmt::Debug>(
    result: Result<T, ExecError>,
) -> Vec<(String, Option<String>, Option<String>)> {
    match result {
        Err(ExecError::PinsDiffer { differences }) => {
            differences.into_iter().map(|it| (it.name, it.pinned, it.installed)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// How many environments of a language were completed.
pub fn completed(environments: &Environments, language: Language) -> usize {
    let folder = environments.cache.join(language.as_str());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().join(".complete").exists()).count()
}

/// Lets somebody begin to build an environment, and leave when there is something of it.
pub fn begin_and_leave(environments: &Environments, wish: &Wish) {
    let is_begun = async {
        while environments.kept().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    block_on(async {
        tokio::select! {
            built = environments.prepare(wish, &|_: &str| ()) => panic!("nothing builds so fast: {built:?}"),
            () = is_begun => {}
        }
    });
}
