use kiwi_model::Permissions;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::admission::{Objection, Why};

struct Project {
    _folder: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
}

fn project() -> Project {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    for path in [
        "p/src/a.rs",
        "p/src/deep/b.rs",
        "p/secret",
        "p/.ai/rules/x.kappa",
        "p/.ai/config/kiwi.toml",
        "p/.ai/tools/t.yaml",
        "p/.git/config",
        "p/doc/x.md",
        "home/.ai/keys/k",
        "home/.ai/tools/t.yaml",
        "outside/file",
    ] {
        let path = top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    Project { root: top.join("p"), home: top.join("home"), _folder: folder }
}

fn list(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn sentences(objections: &[Objection]) -> Vec<String> {
    objections.iter().map(Objection::sentence).collect()
}

impl Project {
    fn layer(&self, name: &str, permissions: &Permissions) -> Layer {
        Layer::new(name, permissions, &self.root).unwrap()
    }

    fn reads(&self, allowed: &[&str], deny: &[&str]) -> PermissionContext {
        let permissions =
            Permissions { filesystem_read: list(allowed), deny: list(deny), ..Permissions::default() };
        PermissionContext::everything().and(self.layer("the profile `test`", &permissions))
    }

    fn may_read(&self, context: &PermissionContext, path: &str) -> bool {
        context.judge(&[Need::paths(Kind::FilesystemRead, path, &self.root)]).is_empty()
    }

    fn agent(&self) -> PermissionContext {
        let all = Permissions {
            filesystem_read: list(&["/**"]),
            filesystem_write: list(&["/**"]),
            ..Permissions::default()
        };
        let context = PermissionContext::everything().and(self.layer("the profile `mcp`", &all));
        context.protecting(Protected::new(Some(&self.root), Some(&self.home)))
    }
}

#[test]
fn paths_are_judged_by_where_they_really_are() {
    let project = project();
    let context = project.reads(&["src/**"], &[]);
    for path in [
        "src/a.rs",
        "./src//a.rs",
        "src/deep/../a.rs",
        "src/new/file",
        "src",
        "src/**",
        "src/*.rs",
        "src/deep/**",
    ] {
        assert!(project.may_read(&context, path), "{path}");
    }
    for path in [
        "secret",
        "src/../secret",
        "src/../../outside/file",
        "srcx",
        "SRC/a.rs",
        "**",
        "*",
        "s*/**",
        "/etc/passwd",
    ] {
        assert!(!project.may_read(&context, path), "{path}");
    }
    symlink("../secret", project.root.join("src/link")).unwrap();
    symlink("/", project.root.join("src/root")).unwrap();
    symlink("src/a.rs", project.root.join("alias")).unwrap();
    assert!(!project.may_read(&context, "src/link") && !project.may_read(&context, "src/root/etc/passwd"));
    assert!(project.may_read(&context, "alias"), "a link to what is permitted");
    // One part only: a folder is all that is in it.
    let shallow = project.reads(&["src/*"], &[]);
    assert!(project.may_read(&shallow, "src/a.rs") && !project.may_read(&shallow, "src/deep/b.rs"));
    assert!(!project.may_read(&shallow, "src/deep"), "opening a folder opens what is below it");
    // A link in the way of an allowance does not stretch it.
    std::fs::remove_dir_all(project.root.join("doc")).unwrap();
    symlink("/etc", project.root.join("doc")).unwrap();
    assert!(!project.may_read(&project.reads(&["doc/**"], &[]), "doc/passwd"));
}

#[test]
fn a_refusal_says_what_was_wanted_and_who_does_not_allow_it() {
    let project = project();
    let context = project.reads(&["src/**"], &[]);
    let said =
        context.judge(&[Need::paths(Kind::FilesystemRead, "secret", &project.root), Need::tool("x.y")]);
    let secret = project.root.join("secret");
    assert_eq!(said.len(), 2);
    assert!(
        said[0]
            .sentence()
            .contains(&format!("reading `{}` is not allowed by the profile `test`", secret.display())),
        "{}",
        said[0].sentence()
    );
    assert!(said[0].hint.as_deref().unwrap().contains("`filesystem_read`"));
    assert!(
        matches!(&said[1].why, Why::Denied(kiwi_rules::DenialReason::Policy { policy_id, .. }) if policy_id == "permission")
    );
}

#[test]
fn what_is_denied_stays_denied() {
    let project = project();
    let context = project.reads(&["**"], &["filesystem_read:.git", "secret", "filesystem_write:doc"]);
    for path in [".git", ".git/config", "secret", "src/../secret", ".git/**", "*", "**", "."] {
        assert!(!project.may_read(&context, path), "{path}");
    }
    for path in ["src/**", "doc/x.md", ".gitignore"] {
        assert!(project.may_read(&context, path), "{path}");
    }
    symlink("src/deep", project.root.join("door")).unwrap();
    let context = project.reads(&["**"], &["door/**"]);
    assert!(!project.may_read(&context, "door/b.rs"), "by the name it was given");
    assert!(!project.may_read(&context, "src/deep/b.rs"), "by the name it has");
    let odd = Permissions { filesystem_read: list(&["a[b"]), ..Permissions::default() };
    assert!(Layer::new("x", &odd, &project.root).is_err(), "a pattern that cannot be read refuses");
}

#[test]
fn layers_are_a_conjunction() {
    let project = project();
    let narrow = Permissions { filesystem_read: list(&["src/deep/**", "doc/**"]), ..Permissions::default() };
    let context = project.reads(&["src/**"], &[]).and(project.layer("the permission file `f`", &narrow));
    assert!(project.may_read(&context, "src/deep/b.rs"));
    assert!(!project.may_read(&context, "src/a.rs") && !project.may_read(&context, "doc/x.md"));
    assert!(PermissionContext::everything().is_everything() && !context.is_everything());
    assert!(project.may_read(&PermissionContext::everything(), "/etc/passwd"));
    assert!(!project.may_read(&project.reads(&[], &[]), "src/a.rs"), "empty means nothing");
}

#[test]
fn names_hosts_and_actions_have_their_lists() {
    let project = project();
    let permissions = Permissions {
        tools: list(&["git.*", "csv.read"]),
        network_hosts: list(&["*.example.org:443"]),
        env: list(&["APP_*"]),
        secrets: list(&["token"]),
        mcp_actions: [("files".to_owned(), list(&["read_*"]))].into(),
        deny: list(&["tools:git.push", "APP_SECRET"]),
        ..Permissions::default()
    };
    let context = PermissionContext::everything().and(project.layer("x", &permissions));
    let is_allowed = |need: Need| context.judge(&[need]).is_empty();
    assert!(is_allowed(Need::tool("git.remote.add")) && is_allowed(Need::tool("csv.read")));
    assert!(!is_allowed(Need::tool("git")) && !is_allowed(Need::tool("git.push")));
    assert!(is_allowed(Need::host("api.example.org:443")) && !is_allowed(Need::host("api.example.org:80")));
    assert!(!is_allowed(Need::host("example.com")) && !is_allowed(Need::host("*")));
    assert!(is_allowed(Need::name(Kind::Env, "APP_MODE")) && !is_allowed(Need::name(Kind::Env, "HOME")));
    assert!(!is_allowed(Need::name(Kind::Env, "APP_SECRET")) && !is_allowed(Need::names(Kind::Env, "APP_*")));
    assert!(
        is_allowed(Need::name(Kind::Secrets, "token")) && !is_allowed(Need::name(Kind::Secrets, "other"))
    );
    assert!(
        is_allowed(Need::action("files", "read_file")) && !is_allowed(Need::action("files", "write_file"))
    );
    assert!(!is_allowed(Need::action("other", "read_file")));
}

#[test]
fn a_child_that_declares_more_is_named() {
    let project = project();
    let parent = Permissions {
        filesystem_read: list(&["src/**", "doc/*.md"]),
        tools: list(&["git.*"]),
        shell_commands: list(&["git status", "ls"]),
        network_hosts: list(&["*.example.org"]),
        mcp_actions: [("files".to_owned(), list(&["read_*"]))].into(),
        deny: list(&["src/deep"]),
        ..Permissions::default()
    };
    let context = PermissionContext::everything().and(project.layer("the ancestor `build`", &parent));
    let escalation = |child: Permissions| context.escalation(&child, &project.root).map(|it| it.sentence());
    let read = |patterns: &[&str]| Permissions { filesystem_read: list(patterns), ..Permissions::default() };
    for child in [
        read(&["src/**", "doc/x.md"]),
        read(&["src/deep/**"]),
        Permissions::default(),
        Permissions { tools: list(&["git.status"]), ..Permissions::default() },
        Permissions { shell_commands: list(&["git status --short", "ls"]), ..Permissions::default() },
        Permissions { network_hosts: list(&["a.example.org:443"]), ..Permissions::default() },
        Permissions {
            mcp_actions: [("files".to_owned(), list(&["read_file"]))].into(),
            ..Permissions::default()
        },
        Permissions { deny: list(&["anything"]), ..Permissions::default() },
    ] {
        assert_eq!(escalation(child), None);
    }
    for (child, pattern) in [
        (read(&["src/**", "doc/**"]), "doc/**"),
        (read(&["**"]), "**"),
        (read(&["sr?/**"]), "sr?/**"),
        (read(&["/etc/passwd"]), "/etc/passwd"),
        (Permissions { filesystem_write: list(&["src/a"]), ..Permissions::default() }, "src/a"),
        (Permissions { tools: list(&["git*"]), ..Permissions::default() }, "git*"),
        (Permissions { shell_commands: list(&["git"]), ..Permissions::default() }, "git"),
        (Permissions { shell_commands: list(&["*"]), ..Permissions::default() }, "*"),
        (Permissions { network_hosts: list(&["example.org"]), ..Permissions::default() }, "example.org"),
        (Permissions { secrets: list(&["x"]), ..Permissions::default() }, "x"),
        (
            Permissions {
                mcp_actions: [("files".to_owned(), list(&["*"]))].into(),
                ..Permissions::default()
            },
            "files/*",
        ),
    ] {
        let said = escalation(child).unwrap();
        assert!(said.contains("permission escalation denied"), "{said}");
        assert!(said.contains(&format!("`{pattern}`")) && said.contains("the ancestor `build`"), "{said}");
    }
    let said = escalation(read(&["doc/**"])).unwrap();
    assert!(said.contains(project.root.join("doc").to_str().unwrap()), "{said}");
    assert!(PermissionContext::everything().escalation(&read(&["/**"]), &project.root).is_none());
}

#[test]
fn an_agent_never_writes_what_holds_it() {
    let project = project();
    let context = project.agent();
    let refused = |kind: Kind, path: &str| {
        let said = context.judge(&[Need::paths(kind, path, &project.root)]);
        said.iter().any(|said| said.sentence().contains("never allowed to an agent"))
    };
    symlink(".ai/rules", project.root.join("door")).unwrap();
    symlink("../.ai", project.root.join("src/ai")).unwrap();
    for path in [
        ".ai/rules",
        ".ai/rules/x.kappa",
        ".ai/rules/new.kappa",
        ".ai/config/kiwi.toml",
        ".ai/logs/audit/x",
        ".ai/sessions",
        ".ai/lockfiles/a/b",
        ".git",
        ".git/hooks/pre-commit",
        "./.ai//rules",
        "src/../.ai/rules/x",
        "door/x.kappa",
        "src/ai/config/kiwi.toml",
        ".ai",
        ".",
        "/",
        "..",
        ".AI/Rules/x",
        ".ai/Rules",
        ".Git/hooks",
        ".ai/ru\u{200d}les/x",
        "**",
        "*",
        ".*/**",
        ".ai/**",
        ".ai/*/x",
        "**/config",
        "*/x.md",
        "src/ai/**",
        "**/*.toml",
        ".ai/loc\u{212a}files/x",
    ] {
        assert!(refused(Kind::FilesystemWrite, path), "{path}");
    }
    for path in [
        "src/**",
        "src/a.rs",
        ".ai/tools/t.yaml",
        ".ai/tools/**",
        ".gitignore",
        "new/file",
        "src/*.rs",
        ".ai/knowledge/x",
    ] {
        assert!(!refused(Kind::FilesystemWrite, path), "{path}");
    }
    let home = project.home.display();
    for path in [
        "/.ai/keys/k",
        "/.ai",
        "/.ai/config/kiwi.toml",
        "/.ai/credentials.age",
        "/.ai/**",
        "",
        "/**",
        "/.ai/tools/../keys/k",
    ] {
        assert!(refused(Kind::FilesystemRead, &format!("{home}{path}")), "{path}");
        assert!(refused(Kind::FilesystemWrite, &format!("{home}{path}")), "{path}");
    }
    assert!(!refused(Kind::FilesystemRead, &format!("{home}/.ai/tools/t.yaml")));
    assert!(!refused(Kind::FilesystemRead, &format!("{home}/.ai/tools/**")));
    assert!(refused(Kind::FilesystemWrite, &format!("{home}/.ai/tools/t.yaml")));
    assert!(
        !refused(Kind::FilesystemRead, ".ai/rules/x.kappa") && !refused(Kind::FilesystemRead, ".git/config")
    );
    // A person is not an agent.
    let person = PermissionContext::everything();
    assert!(
        sentences(&person.judge(&[Need::paths(Kind::FilesystemWrite, ".git/config", &project.root)]))
            .is_empty()
    );
}
