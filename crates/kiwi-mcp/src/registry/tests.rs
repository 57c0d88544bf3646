use super::*;
use crate::server::HttpAuth;
use kiwi_model::{Explain as _, Isolation};
use kiwi_space::Locations;
use std::path::Path;
use std::time::Duration;

struct World {
    folder: tempfile::TempDir,
    registry: Registry,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["p/.ai/config", "h/.ai/config"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let (cwd, user) = (folder.path().join("p"), Some(folder.path().join("h")));
        let spaces = Spaces::open(Locations { project: None, cwd, user }).unwrap();
        Self { folder, registry: Registry::new(Arc::new(spaces)) }
    }

    fn path(&self, space: Space) -> std::path::PathBuf {
        let home = if space == Space::Project { "p" } else { "h" };
        self.folder.path().join(home).join(".ai/config/mcp_registry.yaml")
    }

    fn write(&self, space: Space, text: &str) {
        std::fs::write(self.path(space), text).unwrap();
    }

    fn text(&self, space: Space) -> String {
        std::fs::read_to_string(self.path(space)).unwrap()
    }
}

fn names<S>(servers: &BTreeMap<ServerName, S>) -> Vec<&str> {
    servers.keys().map(ServerName::as_str).collect()
}

#[test]
fn both_files_are_read_and_the_projects_wins() {
    let world = World::new();
    assert!(world.registry.servers().unwrap().is_empty());
    world.write(
        Space::Project,
        "mcps:\n  github: {type: stdio, command: npx, args: [\"-y\", \"@x/server\"], env: {TOKEN: \"${GITHUB_TOKEN}\"}, description: Git, isolation: sandboxed, idle_timeout: 5}\n",
    );
    world.write(
        Space::User,
        "mcps:\n  github: {command: other}\n  docs: {url: \"https://example.com/mcp\", headers: {X-A: b}, auth: oauth, timeout: 7, start_timeout: 8, schema_ttl: 9, trust_annotations: true}\n",
    );
    let servers = world.registry.servers().unwrap();
    assert_eq!(names(&servers), ["docs", "github"]);
    let github = world.registry.server("github").unwrap();
    assert_eq!((github.space, github.isolation), (Space::Project, Isolation::Sandboxed));
    assert_eq!(github.idle_timeout, Duration::from_secs(5));
    let Reach::Stdio { command, args, env, cwd } = github.reach.clone() else { panic!("stdio") };
    assert_eq!((command.as_str(), args.len(), env.len(), cwd), ("npx", 2, 1, None));
    let docs = world.registry.server("docs").unwrap();
    assert_eq!(docs.isolation, Isolation::Standard);
    assert_eq!((docs.timeout.as_secs(), docs.start_timeout.as_secs(), docs.schema_ttl.as_secs()), (7, 8, 9));
    assert!(docs.trusts_annotations);
    assert!(matches!(docs.reach, Reach::Http { auth: HttpAuth::Oauth, .. }));
    assert_eq!(world.registry.shadowed().unwrap().len(), 1);
    let unknown = world.registry.server("gitlab").unwrap_err();
    assert_eq!(unknown.hint().unwrap(), "there are: docs, github");
}

#[test]
fn a_changed_file_is_read_again() {
    let world = World::new();
    world.write(Space::User, "mcps: {a: {command: x}}\n");
    for _ in 0..3 {
        assert_eq!(names(&world.registry.servers().unwrap()), ["a"]);
    }
    world.write(Space::User, "mcps: {b: {command: x}}\n");
    assert_eq!(names(&world.registry.servers().unwrap()), ["b"]);
    world.write(Space::User, "# nothing\n");
    assert!(world.registry.servers().unwrap().is_empty());
    world.write(Space::User, "mcps: {b: }}\n");
    assert!(world.registry.servers().is_err() && world.registry.servers().is_err());
    std::fs::remove_file(world.path(Space::User)).unwrap();
    assert!(world.registry.servers().unwrap().is_empty());
}

#[track_caller]
fn check(text: &str, expect: &str) {
    let error = file::read(text.as_bytes(), Space::User, Path::new("f")).unwrap_err().to_string();
    assert!(error.contains(expect), "{error} does not hold {expect}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    check("mcps:\n  a: {command: x, comand: y}\n", "line 2");
    check("mcps:\n  a: {command: x, comand: y}\n", "unknown field `comand`");
    check("mcps:\n  a: {command: 1}\n", "line 2, column 16: `mcps.a.command`");
    check("mcps:\n  a: {command: x}\n  a: {command: y}\n", "line 3, column 3: the key `a` is given twice");
    check("servers: {}\n", "unknown field `servers`");
    check("mcps:\n  A b: {command: x}\n", "line 2, column 8: `A b` is not a server's name");
    check("mcps:\n  shell: {command: x}\n", "belongs to the system");
    check("mcps:\n  a: {description: x}\n", "neither `command` nor `url`");
    check("mcps:\n  a: {type: http, command: x}\n", "`command` belongs to servers of `type: stdio`");
    check("mcps:\n  a: {type: stdio, url: \"https://x\"}\n", "`url` belongs to servers of `type: http`");
    check("mcps:\n  a: {type: sse, url: \"https://x\"}\n", "unknown variant `sse`");
    check("mcps:\n  a: {command: x, timeout: 0}\n", "line 2, column 28: `mcps.a`: `timeout` is 0");
    check("mcps:\n  a: {command: x, timeout: 1.5}\n", "timeout");
    check("mcps:\n  a: {command: x, isolation: none}\n", "isolation");
    check("mcps:\n  a: {command: \" \"}\n", "`command` is empty");
    check("mcps:\n  a: {command: x, env: {\"A=B\": c}}\n", "name of a variable");
    check("mcps:\n  a: {url: \"ftp://x\"}\n", "expected `http://` or `https://`");
    check("mcps:\n  a: {url: \"https://${HOST}/mcp\"}\n", "must name its host itself");
    check("mcps:\n  a: {url: \"${URL}\"}\n", "is no address");
    check("mcps:\n  a: {url: \"https://u:p@x/\"}\n", "user or password");
    check("mcps:\n  a: {url: \"http://example.com/mcp\", auth: oauth}\n", "unencrypted");
    check("mcps:\n  a: {url: \"http://example.com/mcp\", headers: {A: b}}\n", "unencrypted");
    check("mcps:\n  a: {url: \"https://x\", headers: {\"A b\": c}}\n", "name of a header");
    check("mcps:\n  a: {url: \"https://x\", headers: {A: \"b\\nC: d\"}}\n", "control characters");
    for text in [
        "mcps:\n  a: {url: \"http://127.0.0.1:1/mcp\", headers: {A: b}}\n",
        "mcps:\n  a: {url: \"http://localhost:1/mcp\", auth: oauth}\n",
        "mcps:\n  a: {url: \"http://[::1]:1/mcp\", auth: oauth}\n",
        "mcps:\n  a: {url: \"http://example.com/mcp\"}\n",
        "mcps:\n  a: {url: \"https://example.com/${PART}\", auth: none}\n",
        "mcps:\n",
    ] {
        assert!(file::read(text.as_bytes(), Space::User, Path::new("f")).is_ok(), "{text}");
    }
}

#[test]
fn entries_come_and_go_and_the_rest_stays() {
    let world = World::new();
    let before = "# our servers\nmcps:\n  a: {command: x}  # the first\n\n# end\n";
    world.write(Space::Project, before);
    let reach = Reach::Stdio {
        command: "npx".into(),
        args: vec!["-y".into(), "yes".into(), "a: b".into(), "010".into()],
        env: [("T".to_owned(), "${T}".to_owned())].into(),
        cwd: None,
    };
    let mut server = Server::new(ServerName::parse("b-2").unwrap(), Space::Project, reach);
    server.description = Some("does: things # well".into());
    server.timeout = Duration::from_secs(5);
    world.registry.add(Space::Project, std::slice::from_ref(&server)).unwrap();
    assert_eq!(*world.registry.server("b-2").unwrap(), server);
    let twice = world.registry.add(Space::Project, std::slice::from_ref(&server)).unwrap_err();
    assert!(matches!(twice, McpError::BadEntry { .. }), "{twice}");
    let text = world.text(Space::Project);
    assert!(text.starts_with("# our servers\nmcps:\n  a: {command: x}  # the first\n  b-2:\n"), "{text}");
    assert!(text.ends_with("\n\n# end\n"), "{text}");
    assert_eq!(world.registry.remove(Space::Project, &server.name).unwrap(), server);
    assert_eq!(world.text(Space::Project), before);
    assert!(world.registry.remove(Space::Project, &server.name).is_err());

    let http = Reach::Http {
        url: "https://example.com/mcp".into(),
        headers: [("A".to_owned(), "b".to_owned())].into(),
        auth: HttpAuth::Oauth,
    };
    let server = Server::new(ServerName::parse("h").unwrap(), Space::User, http);
    world.registry.add(Space::User, std::slice::from_ref(&server)).unwrap();
    assert_eq!(world.registry.of(Space::User).unwrap()[&server.name], server);
}

#[test]
fn a_broken_file_is_not_written_over() {
    let world = World::new();
    world.write(Space::User, "mcps: [\n");
    let server = Server::new(
        ServerName::parse("a").unwrap(),
        Space::User,
        Reach::Stdio { command: "x".into(), args: vec![], env: BTreeMap::new(), cwd: None },
    );
    assert!(world.registry.add(Space::User, &[server]).is_err());
    assert_eq!(world.text(Space::User), "mcps: [\n");
}
