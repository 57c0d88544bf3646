//! Attempts to get out of a container: each succeeds without one, and none inside, on both engines and at both levels.

use crate::support::TestEnvironment;
use crate::support::engines::{ENGINES, World};
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A name, and what ends well only for who got out. `@D` is a folder of the host, `@V` one that is shown read-only, `@P`
/// a process of the host, `@T` a port of it.
const ATTEMPTS: [(&str, &str); 23] = [
    ("read a file", "grep s3cret @D/secret"),
    ("read through a link", "ln -sf @D/secret /tmp/kiwi-link-@P; grep s3cret /tmp/kiwi-link-@P"),
    ("read by going up", "grep s3cret /tmp/../../../../../..@D/secret"),
    ("read beside a volume", "grep s3cret @V/../secret"),
    ("list a folder", "ls @D | grep secret"),
    ("write a file", "echo x >> @D/secret && grep s3cret @D/secret"),
    ("write into a folder that is shown read-only", "echo x > @V/written"),
    ("remove what is shown read-only", "rm @V/victim"),
    ("change the mode of what is shown read-only", "chmod 777 @V/file"),
    ("read through a process", "grep s3cret /proc/@P/root@D/secret"),
    ("read the memory map of a process", "grep r-xp /proc/@P/maps"),
    ("read what a process was told", "grep -a told-to-nobody-else /proc/@P/environ"),
    ("signal a process", "busybox kill -0 @P"),
    ("connect over TCP", "echo x | busybox nc -w 2 127.0.0.1 @T"),
    ("find a socket of the host", "[ -S @D/socket ]"),
    ("have a network", "ls /sys/class/net | grep -v '^lo$'"),
    ("mount", "mkdir -p /tmp/kiwi-mount-@P && busybox mount -t tmpfs none /tmp/kiwi-mount-@P"),
    ("make a device", "busybox mknod /tmp/kiwi-device-@P b 7 0"),
    ("change root", "busybox chroot / /bin/busybox true"),
    ("name the host", "busybox hostname \"$(busybox hostname)\""),
    ("set the kernel", "cat /proc/sys/kernel/domainname > /proc/sys/kernel/domainname"),
    (
        "make a control group",
        "mkdir /sys/fs/cgroup/pids/kiwi-escape-@P && rmdir /sys/fs/cgroup/pids/kiwi-escape-@P",
    ),
    ("take precedence", "busybox renice -n -1 -p $$"),
];

/// Something to reach for.
struct Host {
    folder: PathBuf,
    sleeper: Child,
    port: u16,
    /// How many connections arrived.
    arrived: Arc<AtomicUsize>,
    _socket: UnixListener,
}

impl Host {
    fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder.join("volume")).unwrap();
        for file in ["secret", "volume/file", "volume/victim"] {
            std::fs::write(folder.join(file), "s3cret").unwrap();
        }
        let sleeper =
            Command::new("/bin/sleep").arg("600").env("NOTE", "told-to-nobody-else").spawn().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let arrived = Arc::new(AtomicUsize::new(0));
        let socket = UnixListener::bind(folder.join("socket")).unwrap();
        let count = Arc::clone(&arrived);
        std::thread::spawn(move || {
            // Hears whoever comes, and lets go of them, so that nobody waits.
            for mut stream in tcp.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.read(&mut [0; 8]);
            }
        });
        Self { folder: folder.to_owned(), sleeper, port, arrived, _socket: socket }
    }

    fn script(&self) -> String {
        let lines = ATTEMPTS
            .map(|(name, attempt)| format!("( {attempt} ) > /dev/null 2>&1 && echo 'escaped: {name}'"));
        let folder = self.folder.to_str().unwrap();
        format!("{}\necho done\n", lines.join("\n"))
            .replace("@D", folder)
            .replace("@V", &format!("{folder}/volume"))
            .replace("@P", &self.sleeper.id().to_string())
            .replace("@T", &self.port.to_string())
    }

    fn clean(&self) {
        let number = self.sleeper.id();
        let _ = Command::new("umount").arg(format!("/tmp/kiwi-mount-{number}")).output();
        for name in ["link", "device"] {
            let _ = std::fs::remove_file(format!("/tmp/kiwi-{name}-{number}"));
        }
        let _ = std::fs::remove_dir(format!("/tmp/kiwi-mount-{number}"));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.clean();
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

fn escapes(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("escaped: ")).collect()
}

#[test]
fn no_attempt_gets_out_of_a_container() {
    let world = World::new();
    let host = Host::new(&world.env.home().join("host"));
    let volume = host.folder.join("volume");
    for engine in ENGINES {
        let volumes = format!("  volumes: [{{host: {volume:?}, container: {volume:?}, mode: ro}}]");
        let id = world.tool(engine, &host.script(), &volumes);
        for level in ["sandboxed", "restricted"] {
            let (code, said, err) = world.run(&["run", &id, "--isolation", level]);
            assert!(code == 0 && said.contains("done"), "{engine} at {level}: {said}{err}");
            assert_eq!(escapes(&said), Vec::<&str>::new(), "{engine} at {level}");
            assert_eq!(std::fs::read_to_string(host.folder.join("secret")).unwrap(), "s3cret");
            assert!(volume.join("victim").exists() && !volume.join("written").exists());
            assert_eq!(host.arrived.load(Ordering::SeqCst), 0, "{engine} at {level}: a connection arrived");
        }
    }
    // Without a container every one of them works: the attempts themselves are sound.
    let env: &TestEnvironment = &world.env;
    env.write(
        "tools/free.sh",
        format!(
            "# kiwi: version: 1.0.0\n# kiwi: isolation: trusted\n# kiwi: config: {{timeout: 30}}\nset +e\n{}",
            host.script()
        ),
    );
    let ran = env.run(&["run", "free"]);
    let all: Vec<&str> = ATTEMPTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(escapes(&ran.stdout), all, "{}", ran.stderr);
    assert_eq!(host.arrived.load(Ordering::SeqCst), 1);
}
