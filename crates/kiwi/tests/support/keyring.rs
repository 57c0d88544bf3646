//! A desktop's keyring of a test's own: a bus and a Secret Service in a folder, ended with the test.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const SERVICE: &str = "org.freedesktop.Secret.Service";

/// A bus, and on it a keyring that is open.
pub struct Desktop {
    folder: tempfile::TempDir,
    bus: Child,
    keyring: Option<Child>,
    address: String,
}

impl Desktop {
    /// A bus without a keyring.
    pub fn without_keyring() -> Self {
        // A short path: the name of a socket has little room.
        let folder = tempfile::Builder::new().prefix("kd-").tempdir_in("/tmp").unwrap();
        for name in ["home", "run"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(folder.path().join(name), private).unwrap();
        }
        // A configuration of its own: the machine's would start whatever services are installed.
        let config = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
             <busconfig><type>session</type><listen>unix:path={}/bus</listen><policy context=\"default\">\
             <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n",
            folder.path().display()
        );
        std::fs::write(folder.path().join("bus.conf"), config).unwrap();
        let mut bus = Command::new("dbus-daemon")
            .arg(format!("--config-file={}/bus.conf", folder.path().display()))
            .args(["--nofork", "--nopidfile", "--print-address"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`dbus-daemon` is needed: install the package `dbus`");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "the bus does not start");
        Self { folder, bus, keyring: None, address }
    }

    pub fn start() -> Self {
        let mut desktop = Self::without_keyring();
        desktop.start_keyring();
        desktop
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Starts a keyring on the bus and opens it.
    pub fn start_keyring(&mut self) {
        let mut keyring = self
            .command("gnome-keyring-daemon")
            .args(["--unlock", "--components=secrets", "--foreground", "--control-directory"])
            .arg(self.folder.path().join("run"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(self.folder.path().join("keyring.log")).unwrap())
            .spawn()
            .expect("`gnome-keyring-daemon` is needed: install the package `gnome-keyring`");
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        self.keyring = Some(keyring);
        let begun = Instant::now();
        while !self.ask(SERVICE, "ReadAlias", &["string:default"]).contains("/collection/") {
            assert!(begun.elapsed() < PATIENCE, "the keyring does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The keyring says nothing any more.
    pub fn freeze_keyring(&self) {
        let keyring = self.keyring.as_ref().and_then(|keyring| Pid::from_raw(keyring.id().cast_signed()));
        kill_process(keyring.unwrap(), Signal::STOP).unwrap();
    }

    /// Ends the keyring, and leaves the bus.
    pub fn stop_keyring(&mut self) {
        end(self.keyring.take());
    }

    /// Locks everything in it.
    pub fn lock(&self) {
        self.ask(SERVICE, "Lock", &["array:objpath:/org/freedesktop/secrets/collection/login"]);
    }

    /// The paths of all items.
    pub fn items(&self) -> Vec<String> {
        let all = self.ask(SERVICE, "SearchItems", &["dict:string:string:application,kiwi"]);
        let path = |line: &str| Some(line.split_once("object path \"")?.1.trim_end_matches('"').to_owned());
        all.lines().filter_map(path).collect()
    }

    fn ask(&self, interface: &str, method: &str, arguments: &[&str]) -> String {
        let mut command = self.command("dbus-send");
        command.args(["--session", "--print-reply", "--dest=org.freedesktop.secrets"]);
        command.arg("/org/freedesktop/secrets").arg(format!("{interface}.{method}")).args(arguments);
        String::from_utf8(command.output().expect("`dbus-send` is in the package `dbus`").stdout).unwrap()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let folder = |name: &str| self.folder.path().join(name);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", folder("home")).env("XDG_RUNTIME_DIR", folder("run"));
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        command
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Desktop {
    #[expect(clippy::print_stderr, reason = "a test that fails says why")]
    fn drop(&mut self) {
        // A keyring that ended by itself is why its test fails, and says why in its own words.
        if std::thread::panicking()
            && let Some(Ok(Some(ended))) = self.keyring.as_mut().map(Child::try_wait)
        {
            let said = std::fs::read_to_string(self.folder.path().join("keyring.log")).unwrap_or_default();
            eprintln!("the keyring itself ended with {ended} and said: {said}");
        }
        end(self.keyring.take());
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
    }
}
