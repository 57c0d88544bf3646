use super::*;
use kiwi_space::Locations;

struct World {
    folder: tempfile::TempDir,
    spaces: Spaces,
    places: Places,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (project, home) = (folder.path().join("p"), folder.path().join("h"));
        std::fs::create_dir_all(project.join(".ai")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let spaces =
            Spaces::open(Locations { project: None, cwd: project.clone(), user: Some(home.clone()) })
                .unwrap();
        let config = Some(home.join(".config"));
        let places = Places { home: Some(home), config, codex: None, project: Some(project) };
        Self { folder, spaces, places }
    }

    fn install(&self, client: Client, scope: Scope, program: &str) -> Result<Done, McpError> {
        let project = (scope == Scope::Project).then(|| self.places.project.as_deref().unwrap());
        let program = Program { path: Path::new(program), project };
        Installation::of(client, scope, &self.places, program, &self.spaces)?.write()
    }

    fn undo(&self, client: Client, scope: Scope) -> Result<Done, McpError> {
        Installation::undo(client, scope, &self.places, &self.spaces)?.write()
    }

    fn file(&self, client: Client, scope: Scope) -> PathBuf {
        client.file(scope, &self.places).unwrap()
    }

    fn write(&self, client: Client, scope: Scope, text: &str) -> PathBuf {
        let file = self.file(client, scope);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn scopes(client: Client) -> &'static [Scope] {
    if client == Client::Goose { &[Scope::User] } else { &[Scope::User, Scope::Project] }
}

/// A file of each client, with comments where its language has them.
fn sample(client: Client) -> &'static str {
    match client {
        Client::Codex => "# mine\nmodel = \"m\"  # best\n\n[mcp_servers.other]\ncommand = \"x\"\n",
        Client::Goose => {
            "# mine\nGOOSE_MODEL: m # best\nextensions:\n  other: # x\n    enabled: true\n    type: builtin\nlast: 1\n"
        }
        Client::Vscode => {
            "{\n\t// mine\n\t\"servers\": {\n\t\t\"other\": {\"command\": \"x\"}, // x\n\t},\n}\n"
        }
        Client::Opencode => {
            "{\n  // mine\n  \"mcp\": {\n    \"other\": {\"type\": \"local\", \"command\": [\"x\"]}\n  }\n}\n"
        }
        _ => {
            "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"other\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"
        }
    }
}

#[test]
fn every_client_gets_its_entry_and_gives_it_back() {
    for client in Client::INSTALLABLE {
        for scope in scopes(client) {
            let world = World::new();
            let file = world.write(client, *scope, sample(client));
            let done = world.install(client, *scope, "/bin/kiwi").unwrap();
            let installed = text(&file);
            let value = client.format().read(&installed).unwrap();
            let entry = &edit::at(&value, client.path(&value)).unwrap()[NAME];
            let line = entry.to_string();
            assert!(line.contains("/bin/kiwi") && line.contains("\"mcp\""), "{client}: {line}");
            assert_eq!(line.contains("--project"), *scope == Scope::Project, "{client}: {line}");
            assert!(edit::at(&value, client.path(&value)).unwrap().contains_key("other"), "{client}");
            for comment in ["mine", "best", "// x", "# x"] {
                let count = |text: &str| text.matches(comment).count();
                assert_eq!(count(&installed), count(sample(client)), "{client}: {installed}");
            }
            assert_eq!(text(&done.backup.unwrap()), sample(client), "{client}");
            // Twice is once.
            world.install(client, *scope, "/bin/kiwi").unwrap();
            assert_eq!(text(&file), installed);
            world.undo(client, *scope).unwrap();
            assert_eq!(text(&file), sample(client), "{client}");
            let left: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
            assert!(!left.iter().any(|entry| format!("{entry:?}").contains(BACKUP)), "{left:?}");
            world.undo(client, *scope).unwrap();
            assert_eq!(text(&file), sample(client));
        }
    }
}

#[test]
fn a_file_that_was_made_goes_with_its_folders() {
    for client in Client::INSTALLABLE {
        for scope in scopes(client) {
            let world = World::new();
            let file = world.file(client, *scope);
            assert_eq!(world.install(client, *scope, "/bin/kiwi").unwrap(), Done { backup: None });
            let value = client.format().read(&text(&file)).unwrap();
            assert!(edit::at(&value, client.path(&value)).unwrap().contains_key(NAME), "{client}");
            world.undo(client, *scope).unwrap();
            assert!(!file.exists(), "{client}");
            let home = world.folder.path().join(if *scope == Scope::User { "h" } else { "p" });
            let left: Vec<_> =
                std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, [".ai"], "{client}");
        }
    }
}

#[test]
fn what_somebody_changed_since_is_kept() {
    for client in Client::INSTALLABLE {
        let world = World::new();
        let file = world.write(client, Scope::User, sample(client));
        world.install(client, Scope::User, "/bin/kiwi").unwrap();
        let edited = text(&file).replace("\"x\"", "\"y\"").replace("last: 1", "last: 2");
        std::fs::write(&file, &edited).unwrap();
        // Kiwi moved: its entry follows, and what is given back is what there is without it.
        world.install(client, Scope::User, "/opt/kiwi").unwrap();
        assert!(text(&file).contains("/opt/kiwi") && !text(&file).contains("/bin/kiwi"), "{client}");
        world.undo(client, Scope::User).unwrap();
        let value = |text: &str| client.format().read(text).unwrap();
        let expect = sample(client).replace("\"x\"", "\"y\"").replace("last: 1", "last: 2");
        assert_eq!(value(&text(&file)), value(&expect), "{client}");

        let world = World::new();
        let file = world.write(client, Scope::User, sample(client));
        world.install(client, Scope::User, "/bin/kiwi").unwrap();
        std::fs::write(&file, &edited).unwrap();
        world.undo(client, Scope::User).unwrap();
        assert_eq!(value(&text(&file)), value(&expect), "{client}");
    }
}

#[test]
fn an_entry_of_that_name_comes_back() {
    let world = World::new();
    let before = "{\"mcpServers\": {\"kiwi\": {\"command\": \"mine\"}}}";
    let file = world.write(Client::Cursor, Scope::User, before);
    world.install(Client::Cursor, Scope::User, "/bin/kiwi").unwrap();
    assert!(!text(&file).contains("mine"));
    let changed = text(&file).replace("}}}", "}}, \"a\": 1}");
    std::fs::write(&file, changed).unwrap();
    world.undo(Client::Cursor, Scope::User).unwrap();
    assert!(text(&file).contains("mine") && text(&file).contains("\"a\": 1"), "{}", text(&file));
}

#[test]
fn a_broken_file_is_left_alone() {
    for (client, broken) in [
        (Client::Cursor, "{\n  \"mcpServers\": {,}\n}\n"),
        (Client::Codex, "model = \n"),
        (Client::Goose, "extensions:\n  a: [\n"),
    ] {
        let world = World::new();
        let file = world.write(client, Scope::User, broken);
        let error = world.install(client, Scope::User, "/bin/kiwi").unwrap_err().to_string();
        assert!(error.contains("line ") && error.contains("column "), "{error}");
        assert_eq!(text(&file), broken);
    }
    let world = World::new();
    assert!(world.install(Client::Goose, Scope::Project, "/bin/kiwi").is_err());
    world.write(Client::Cursor, Scope::User, "{\"mcpServers\": [1]}");
    assert!(world.install(Client::Cursor, Scope::User, "/bin/kiwi").is_err());
}

#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let target = world.folder.path().join("dotfiles.json");
    std::fs::write(&target, "{}").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    let file = world.file(Client::ClaudeCode, Scope::User);
    std::os::unix::fs::symlink(&target, &file).unwrap();
    world.install(Client::ClaudeCode, Scope::User, "/bin/kiwi").unwrap();
    assert!(file.is_symlink() && text(&target).contains("/bin/kiwi"));
    assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    world.undo(Client::ClaudeCode, Scope::User).unwrap();
    assert_eq!(text(&target), "{}");
}

#[test]
fn a_file_that_changes_meanwhile_is_not_written_over() {
    let world = World::new();
    let file = world.write(Client::Cursor, Scope::User, "{}");
    let program = Program { path: Path::new("/bin/kiwi"), project: None };
    let plan = Installation::of(Client::Cursor, Scope::User, &world.places, program, &world.spaces).unwrap();
    std::fs::write(&file, "{\"a\": 1}").unwrap();
    assert!(plan.write().unwrap_err().to_string().contains("has changed"));
    assert_eq!(text(&file), "{\"a\": 1}");
}

#[test]
fn the_newer_form_of_opencode() {
    let world = World::new();
    let file = world.write(
        Client::Opencode,
        Scope::Project,
        "{\"mcp\": {\"servers\": {\"a\": {\"type\": \"local\"}}}}",
    );
    world.install(Client::Opencode, Scope::Project, "/bin/kiwi").unwrap();
    let value = Client::Opencode.format().read(&text(&file)).unwrap();
    assert_eq!(value["mcp"]["servers"]["kiwi"]["command"][1], "mcp");
    assert!(value["mcp"]["servers"]["kiwi"].get("enabled").is_none());
}
