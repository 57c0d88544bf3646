//! The key of the credential store in a desktop's keyring: a real one, on a bus of the test's own.

use crate::support::keyring::Desktop;
use crate::support::{Ran, TestEnvironment, feed, ran};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A user's space and their desktop.
struct User {
    env: TestEnvironment,
    bus: Option<String>,
}

impl User {
    fn new(bus: Option<&str>) -> Self {
        let env = TestEnvironment::new();
        env.write(
            "tools/ask.sh",
            "# kiwi: version: 1.0.0\n# kiwi: requires_secret: [token]\necho ${#TOKEN}\n",
        );
        env.write("tools/plain.sh", "# kiwi: version: 1.0.0\necho plain\n");
        Self { env, bus: bus.map(str::to_owned) }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words);
        if let Some(bus) = &self.bus {
            command.env("DBUS_SESSION_BUS_ADDRESS", bus);
        }
        command
    }

    fn run(&self, words: &[&str]) -> Ran {
        ran(&self.command(words).output().unwrap())
    }

    #[track_caller]
    fn set(&self, name: &str, value: &str) {
        let ran = feed(&mut self.command(&["auth", "set", name]), value);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    /// The length of the secret is what the tool prints.
    #[track_caller]
    fn has(&self, length: usize) {
        let ran = self.run(&["run", "ask"]);
        assert_eq!((ran.code, ran.stdout), (0, format!("{length}\n")), "{}", ran.stderr);
    }

    #[track_caller]
    fn refused(&self, words: &[&str], why: &str) {
        let begun = Instant::now();
        let ran = feed(&mut self.command(words), "typed");
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(why) && ran.stderr.contains("nothing is lost"), "{}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    }

    fn file(&self, name: &str) -> PathBuf {
        self.env.home().join(".ai/credentials").join(name)
    }

    #[track_caller]
    fn files(&self, expected: &[&str]) {
        let mut found: Vec<String> = std::fs::read_dir(self.file(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with('.'))
            .collect();
        found.sort();
        assert_eq!(found, expected);
        for name in &found {
            assert_eq!(std::fs::metadata(self.file(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn the_key_is_in_the_keyring_and_nowhere_else() {
    let desktop = Desktop::start();
    let user = User::new(Some(desktop.address()));
    user.set("token", "five5");
    user.files(&["keyring.txt", "store.age"]);
    assert_eq!(desktop.items().len(), 1);
    user.has(5);
    user.set("token", "sixsix");
    user.set("other", "x");
    user.has(6);
    assert_eq!(desktop.items().len(), 1, "one key for all");
    let shown = user.run(&["doctor"]).stdout;
    assert!(shown.contains("keyring") && shown.contains("open"), "{shown}");
    // Another user space on the same desktop has a key of its own.
    let second = User::new(Some(desktop.address()));
    second.set("token", "seven77");
    assert_eq!(desktop.items().len(), 2);
    user.has(6);
    second.has(7);
    // With the last secret goes the key.
    assert_eq!(second.run(&["auth", "remove", "token"]).code, 0);
    second.files(&[]);
    assert_eq!(desktop.items().len(), 1);
    assert_eq!(second.run(&["auth", "remove", "token"]).code, 2);
}

#[test]
fn a_key_out_of_reach_is_said_and_nothing_is_lost() {
    let mut desktop = Desktop::start();
    let mut user = User::new(Some(desktop.address()));
    user.set("token", "five5");
    let store = std::fs::read(user.file("store.age")).unwrap();

    desktop.lock();
    user.refused(&["run", "ask"], "keyring, which is locked");
    user.refused(&["auth", "list"], "unlock it");
    user.refused(&["auth", "set", "more"], "is locked");
    desktop.stop_keyring();
    user.refused(&["run", "ask"], "which cannot be reached from here");
    let bus = user.bus.take();
    user.refused(&["run", "ask"], "DBUS_SESSION_BUS_ADDRESS");
    user.bus = bus;
    user.env.write_user("config/kiwi.toml", "[credentials]\nkeyring = \"off\"\n");
    user.refused(&["auth", "set", "more"], "turned off in the configuration");
    std::fs::remove_file(user.env.home().join(".ai/config/kiwi.toml")).unwrap();
    assert_eq!(std::fs::read(user.file("store.age")).unwrap(), store);
    user.files(&["keyring.txt", "store.age"]);
    let (_, out) = user.env.json(&["run", "ask"]);
    assert_eq!(out["error"]["kind"], "missing_requirement", "{out:#}");

    desktop.start_keyring();
    user.has(5);
}

#[test]
fn a_key_in_a_file_moves_when_a_keyring_comes() {
    let mut user = User::new(None);
    user.set("token", "five5");
    user.files(&["identity.txt", "store.age"]);
    let desktop = Desktop::start();
    user.bus = Some(desktop.address().to_owned());
    // Reading moves nothing, and a keyring that is locked is in nobody's way.
    user.has(5);
    desktop.lock();
    user.set("other", "x");
    user.files(&["identity.txt", "store.age"]);
    user.has(5);
    assert_eq!(desktop.items().len(), 0);
    drop(desktop);
    user.set("other", "y");
    user.files(&["identity.txt", "store.age"]);
    let desktop = Desktop::start();
    user.bus = Some(desktop.address().to_owned());
    user.env.write("config/kiwi.toml", "[credentials]\nkeyring = \"off\"\n");
    user.set("token", "sixsix");
    user.files(&["keyring.txt", "store.age"]);
    user.has(6);
    assert_eq!(desktop.items().len(), 1, "a project has no say about it");
}

#[test]
fn a_keyring_that_ends_in_the_middle_is_told_apart_from_one_that_says_nothing() {
    let mut desktop = Desktop::start();
    let user = User::new(Some(desktop.address()));
    user.set("token", "five5");
    desktop.freeze_keyring();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(3));
            desktop.stop_keyring();
        });
        user.refused(&["run", "ask"], "it ended before it answered");
    });
    desktop.start_keyring();
    user.has(5);
}

#[test]
fn without_a_keyring_the_key_is_in_a_file() {
    let desktop = Desktop::without_keyring();
    let off = User::new(Some(desktop.address()));
    off.env.write_user("config/kiwi.toml", "[credentials]\nkeyring = \"off\"\n");
    for user in [User::new(Some(desktop.address())), User::new(Some("unix:path=/nowhere/bus")), off] {
        user.set("token", "five5");
        user.files(&["identity.txt", "store.age"]);
        user.has(5);
    }
    // A keyring that is locked is one: a first secret waits for it rather than go to a file behind its back.
    let desktop = Desktop::start();
    desktop.lock();
    let user = User::new(Some(desktop.address()));
    let ran = feed(&mut user.command(&["auth", "set", "token"]), "five5");
    assert!(ran.code == 3 && ran.stderr.contains("is locked"), "{}", ran.stderr);
    user.files(&[]);
}

#[test]
fn a_call_without_secrets_does_not_touch_the_bus() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let listener = UnixListener::bind(folder.path().join("bus")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let user = User::new(Some(&format!("unix:path={}/bus", folder.path().display())));
    assert_eq!(user.run(&["run", "plain"]).stdout, "plain\n");
    assert_eq!(user.run(&["tool", "list"]).code, 0);
    // Without a store there is no key to ask for either.
    assert_eq!(user.run(&["run", "ask"]).code, 3);
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // A bus on which nobody speaks is not waited for for ever.
    let ran = feed(&mut user.command(&["auth", "set", "token"]), "five5");
    assert!(ran.code == 3 && ran.stderr.contains("did not answer within 10 s"), "{}", ran.stderr);
    assert!(listener.accept().is_ok());
}
