//! Which texts may be passed on to an installer.

use kiwi_model::{Language, Pin};
use std::path::Path;

use super::node::NESTED;
use super::{Wanted, Wish};
use crate::error::ExecError;

const NO_NAME: &str = "it is not the name of a package";
const OPTION: &str = "it would be an option of the installer";
const PATH: &str = "it is a path on this machine";
const SOURCE: &str = "it would be built from source, which needs `allow_source_builds`";

/// Installers take options, folders and addresses where they take names; a manifest gives names, a lockfile pins.
pub fn check(wish: &Wish) -> Result<(), ExecError> {
    match &wish.packages {
        Wanted::Named(names) => {
            names.iter().try_for_each(|name| named(wish.language, name, wish.allow_source_builds))
        }
        Wanted::Pinned(pins) => pins.iter().try_for_each(|pin| pinned(wish.language, pin)),
    }
}

fn named(language: Language, requirement: &str, allow_source_builds: bool) -> Result<(), ExecError> {
    let refuse = |why| Err(ExecError::BadRequirement { requirement: requirement.to_owned(), why });
    let text = requirement.trim();
    if text.is_empty() || text.contains(['\0', '\n', '\r']) {
        return refuse(NO_NAME);
    }
    if text.starts_with('-') {
        return refuse(OPTION);
    }
    let kind = match language {
        Language::Python => python(text),
        Language::Node => node(text),
    };
    match kind {
        Kind::Package => Ok(()),
        Kind::Source if allow_source_builds => Ok(()),
        Kind::Source => refuse(SOURCE),
        Kind::Path => refuse(PATH),
        Kind::Nonsense => refuse(NO_NAME),
    }
}

enum Kind {
    Package,
    Source,
    Path,
    Nonsense,
}

fn python(text: &str) -> Kind {
    if is_path(text) || text.contains("file:") {
        return Kind::Path;
    }
    let address = text.split(['#', ';']).next().unwrap_or_default().trim_end();
    let is_wheel = Path::new(address).extension().is_some_and(|extension| extension == "whl");
    if text.contains("://") && !is_wheel { Kind::Source } else { Kind::Package }
}

/// `name`, `@scope/name`, either with `@range`, or what npm takes in their place.
fn node(text: &str) -> Kind {
    let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let (name, range) = at.and_then(|at| text.split_at_checked(at)).unwrap_or((text, "@"));
    let range = range.strip_prefix('@').unwrap_or(range).trim();
    if let Some(aliased) = range.strip_prefix("npm:") {
        return if is_node_name(name) { node(aliased) } else { Kind::Nonsense };
    }
    for part in [name, range] {
        let is_local = ["file:", "link:", "workspace:"].iter().any(|scheme| part.starts_with(scheme));
        let is_archive = [".tgz", ".tar.gz", ".tar"].iter().any(|end| part.to_lowercase().ends_with(end));
        let is_address = part.contains(':');
        if is_local || is_node_path(part) || (is_archive && !is_address) {
            return Kind::Path;
        }
        if is_address {
            return Kind::Source;
        }
    }
    if is_node_name(name) && !range.contains('/') {
        return Kind::Package;
    }
    // `user/repository` is one on GitHub.
    if name.contains('/') || range.contains('/') { Kind::Source } else { Kind::Nonsense }
}

fn is_path(text: &str) -> bool {
    text.starts_with(['.', '/', '~'])
}

/// A path; but `~1.2` is a range.
fn is_node_path(text: &str) -> bool {
    text.starts_with(['.', '/']) || text.starts_with("~/")
}

fn is_node_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
        !word.is_empty() && !word.starts_with(['.', '-', '~']) && word.chars().all(is_plain)
    };
    match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_word(scope) && is_word(name)),
        None => is_word(name) && name != "node_modules",
    }
}

/// A pin is a name and one version, never a range or an address.
fn pinned(language: Language, pin: &Pin) -> Result<(), ExecError> {
    let is_version = |version: &str| {
        version.starts_with(|c: char| c.is_ascii_alphanumeric())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_' | '!'))
    };
    let is_good = match language {
        Language::Python => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            let begins = pin.name.starts_with(|c: char| c.is_ascii_alphanumeric());
            begins && pin.name.chars().all(is_plain) && is_version(&pin.version)
        }
        Language::Node => {
            let version = match pin.version.strip_prefix("npm:").and_then(|aliased| aliased.rsplit_once('@'))
            {
                Some((name, version)) if is_node_name(name) => version,
                _ => &pin.version,
            };
            pin.name.split(NESTED).all(is_node_name) && is_version(version)
        }
    };
    let refused = || ExecError::BadRequirement { requirement: pin.to_string(), why: NO_NAME };
    if is_good { Ok(()) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_all(language: Language, good: &[&str], bad: &[&str], source: &[&str]) {
        for text in good {
            assert!(named(language, text, false).is_ok(), "{text}");
        }
        for text in bad {
            assert!(named(language, text, true).is_err(), "{text}");
        }
        for text in source {
            assert!(named(language, text, false).is_err(), "{text}");
            assert!(named(language, text, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn only_packages_can_be_required() {
        check_all(
            Language::Python,
            &[
                "six",
                "pandas>=2.0",
                "a[b]==1 ; python_version > '3'",
                "x @ https://h/x-1-py3-none-any.whl#sha256=0",
            ],
            &["", " ", "-r x", "--index-url=http://h", "./x", "/x", "x @ file:///x.whl", "a\n-r b"],
            &["git+https://h/x", "x @ https://h/x.tar.gz"],
        );
        check_all(
            Language::Node,
            &[
                "lodash",
                "left-pad@1.3.0",
                "@scope/x@^2",
                "x@~1.2",
                "x@>=1 <2",
                "x@latest",
                "lp@npm:left-pad@1",
                "lp@npm:@s/x",
            ],
            &[
                "",
                "-g",
                "--registry=http://h",
                "./x",
                "../x",
                "/x",
                "~/x",
                "x@file:../y",
                "file:y",
                "link:y",
                "x@workspace:*",
                "x.tgz",
                "x@./y",
                "x@npm:./y",
                "x y",
                "node_modules",
            ],
            &[
                "git+https://h/x",
                "https://h/x.tgz",
                "github:user/x",
                "user/repo",
                "x@user/repo",
                "x@git+ssh://git@h/y",
                "git@h:x/y",
            ],
        );
    }

    #[test]
    fn a_pin_is_one_version_of_one_package() {
        let digest = "sha256:".to_owned() + &"0".repeat(64);
        let is_good =
            |language, text: &str| pinned(language, &format!("{text} {digest}").parse().unwrap()).is_ok();
        for good in ["six==1.16.0", "zope.interface==1!2.0+local"] {
            assert!(is_good(Language::Python, good), "{good}");
        }
        for bad in ["-r==1", "x@https://h/x.whl==1", "./x==1", "x==1.*", "x[y]==1"] {
            assert!(!is_good(Language::Python, bad), "{bad}");
        }
        for good in ["a==1.0.0-rc.1", "@s/a/node_modules/b==1.0.0", "lp==npm:left-pad@1.3.0"] {
            assert!(is_good(Language::Node, good), "{good}");
        }
        for bad in
            ["a==^1", "../a==1", "a/b==1", "a==file:x", "a==npm:../x@1", "a/node_modules/..==1", "a==*"]
        {
            assert!(!is_good(Language::Node, bad), "{bad}");
        }
    }
}
