//! The escape corpus: each attempt succeeds without walls and fails behind every kind of wall.
//!
//! An attempt is a small script that prints `escaped` when it got through, or leaves a trace that is looked for from
//! outside. That it succeeds at `trusted` shows that the attempt itself is sound.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_exec::{Backend, Process};
use kiwi_model::{Isolation, Text};
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::time::Duration;
use support::sandbox::{Wall, containers, is_root, python, real, walled, walls};
use support::spares::{wait_for_spares, warm_up_native};
use support::{Bench, shell};

/// Whether an attempt can succeed where nothing holds it.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    Nothing,
    /// Only root can do it at all.
    Root,
    /// The system may forbid it to everybody; it must only never succeed behind walls.
    Luck,
    /// It would harm the host: only ever tried behind walls.
    Walls,
}
use Needs::{Luck, Nothing, Root, Walls};

/// A host with things to reach for; see [`Host::spell`] for how scripts name them.
struct Host {
    bench: Bench,
    root: PathBuf,
    project: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    _path_socket: UnixListener,
    _abstract_socket: UnixListener,
    name: String,
    sleeper: std::process::Child,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

impl Host {
    #[expect(clippy::disallowed_methods, reason = "somebody outside to be attacked")]
    fn new() -> Self {
        let bench = Bench::new();
        let root = real(bench.home.path());
        let project = root.join("project");
        for folder in ["project/in", "project/out", "private"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("private/secret"), "s3cret").unwrap();
        fs::write(project.join("secret"), "s3cret").unwrap();
        fs::write(project.join("in/data"), "data").unwrap();
        let name = format!("kiwi-{}", support::marker());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let sleeper = std::process::Command::new("/bin/sleep")
            .arg("600")
            .env_clear()
            .env("TOKEN", "s3cret")
            .spawn()
            .unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _path_socket: UnixListener::bind(root.join("private/socket")).unwrap(),
            _abstract_socket: UnixListener::bind_addr(&address).unwrap(),
            bench,
            root,
            project,
            name,
            sleeper,
        }
    }

    fn spell(&self, script: &str) -> String {
        script
            .replace("@TCP", &self.tcp.local_addr().unwrap().port().to_string())
            .replace("@UDP", &self.udp.local_addr().unwrap().port().to_string())
            .replace("@NAME", &self.name)
            .replace("@PID", &self.sleeper.id().to_string())
            // Of this process alone: shared memory has one list of numbers for the whole host.
            .replace("@SHM", &(0x6b00_0000 + std::process::id()).to_string())
            .replace("@P", self.project.to_str().unwrap())
            .replace("@R", self.root.to_str().unwrap())
    }

    fn process(&self, script: &str) -> Process {
        let script = self.spell(script);
        let mut asked = match script.strip_prefix("py:") {
            Some(script) => python(&format!("{PRELUDE}{script}")),
            None => shell(&script),
        };
        asked.cwd.clone_from(&self.project);
        asked.project.clone_from(&self.project);
        asked.env.push(("HOME".into(), Text::literal(self.root.join("private").to_str().unwrap())));
        asked.confinement.read = vec![self.project.join("in")];
        asked.confinement.write = vec![self.project.join("out")];
        asked.timeout = Duration::from_secs(10);
        asked
    }

    /// What is as it was, or what an attempt has changed.
    fn damage(&mut self) -> Option<&'static str> {
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let mut buffer = [0; 64];
        self.udp.set_nonblocking(true).unwrap();
        if self.udp.recv(&mut buffer).is_ok() {
            return Some("a datagram arrived");
        }
        if self.sleeper.try_wait().unwrap().is_some() {
            return Some("a process outside was ended");
        }
        if text(self.root.join("private/secret")) != "s3cret" || text(self.project.join("secret")) != "s3cret"
        {
            return Some("a file outside was changed");
        }
        let made = [self.root.join("made"), self.project.join("made"), self.project.join("in/made")];
        let made = made
            .into_iter()
            .chain(["/usr/kiwi-made", "/tmp/kiwi-made", "/dev/shm/kiwi-made"].map(PathBuf::from));
        if made.map(|path| fs::remove_file(path).is_ok()).fold(false, |any, one| any | one) {
            return Some("a file outside was made");
        }
        None
    }
}

/// System calls by number or by name through the C library.
const PRELUDE: &str = "
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*a): return libc.syscall(*(ctypes.c_long(x) if isinstance(x, int) else x for x in a))
def escaped(ok=True):
    if ok: print('escaped')
ARM = os.uname().machine == 'aarch64'
def number(x86, arm): return arm if ARM else x86
";

const ATTEMPTS: &[(&str, Needs, &str)] = &[
    // Reading.
    ("read the password hashes", Root, "cat /etc/shadow > /dev/null && echo escaped"),
    ("read a secret elsewhere", Nothing, "grep s3cret @R/private/secret && echo escaped"),
    ("read a secret of the project", Nothing, "grep s3cret secret && echo escaped"),
    ("read by dots", Nothing, "grep s3cret in/../../private/secret && echo escaped"),
    (
        "read by a link",
        Nothing,
        "ln -s @R/private/secret out/l$$; grep s3cret out/l$$ && echo escaped; rm -f out/l$$",
    ),
    (
        "read by a hard link",
        Nothing,
        "ln @R/private/secret out/h$$ && grep s3cret out/h$$ && echo escaped; rm -f out/h$$",
    ),
    ("list somebody's home", Nothing, "ls @R/private | grep secret && echo escaped"),
    (
        "read by the root of a process",
        Nothing,
        "for p in 1 $PPID $$ self; do grep s3cret /proc/$p/root@R/private/secret && echo escaped; done",
    ),
    (
        "read by the folder of a process",
        Nothing,
        "for p in 1 $PPID self; do grep s3cret /proc/$p/cwd/../private/secret && echo escaped; done",
    ),
    (
        "read by descriptors of other processes",
        Luck,
        "for f in /proc/1/fd/* /proc/$PPID/fd/*; do [ -d $f/private ] && echo escaped; done",
    ),
    (
        "read the environment of a process",
        Nothing,
        "tr '\\0' '\\n' < /proc/@PID/environ | grep s3cret && echo escaped",
    ),
    (
        "read the environment of any process",
        Nothing,
        "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep TOKEN=s3cret && echo escaped",
    ),
    ("see processes outside", Nothing, "test -d /proc/@PID && echo escaped"),
    ("read the kernel's log", Luck, "py:escaped(libc.klogctl(3, ctypes.create_string_buffer(64), 64) > 0)"),
    (
        "read the host's memory",
        Luck,
        "head -c1 /dev/mem > /dev/null && echo escaped; head -c1 /proc/kcore > /dev/null && echo escaped",
    ),
    (
        "read a disk",
        Luck,
        "for d in /dev/sd? /dev/vd? /dev/nvme?n? /dev/dm-?; do head -c1 $d > /dev/null && echo escaped; done",
    ),
    (
        "open a file by its handle",
        Luck,
        "py:h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + b'\\0' * 128)\nm = ctypes.c_int()\nnumber_to, by = number(303, 264), number(304, 265)\nok = call(number_to, -100, b'/etc', h, ctypes.byref(m), 0)\nescaped(call(by, os.open('/', 0), h, 0) >= 0)",
    ),
    // Writing.
    ("write into the project", Nothing, "echo x > made; echo x > in/made"),
    ("write elsewhere", Nothing, "echo x > @R/made"),
    ("change a secret", Nothing, "echo x > @R/private/secret"),
    ("write by dots", Nothing, "echo x > out/../../made"),
    ("write by a link", Nothing, "ln -s @R out/w$$; echo x > out/w$$/made; rm -f out/w$$"),
    (
        "write by the folder of a process",
        Nothing,
        "echo x > /proc/self/cwd/made; echo x > /proc/$PPID/cwd/made",
    ),
    (
        "write by the root of a process",
        Nothing,
        "for p in 1 $PPID self; do echo x > /proc/$p/root@R/made; done",
    ),
    ("write where everybody may", Nothing, "echo x > /tmp/kiwi-made; echo x > /dev/shm/kiwi-made"),
    ("write among programs", Root, "echo x > /usr/kiwi-made"),
    ("truncate what may only be read", Nothing, "py:os.truncate('@P/secret', 0)"),
    (
        "rename from outside",
        Nothing,
        "mv @R/private/secret out/stolen && mv out/stolen @R/private/secret && echo escaped",
    ),
    ("change modes outside", Nothing, "chmod 600 @R/private/secret && echo escaped"),
    (
        "make a device",
        Root,
        "mknod out/n$$ c 1 5 && head -c1 out/n$$ > /dev/null && echo escaped; rm -f out/n$$",
    ),
    (
        "make a setuid program",
        Nothing,
        "cp /bin/sh out/su && chmod 4755 out/su && echo escaped; chmod g+s out/su && echo escaped; rm -f out/su",
    ),
    (
        "make a setuid program while opening it",
        Nothing,
        "py:os.umask(0)\nfd = os.open('out/su', os.O_CREAT | os.O_WRONLY, 0o4755)\nescaped(os.fstat(fd).st_mode & 0o4000)",
    ),
    (
        "write kernel settings",
        Root,
        "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname && echo escaped; cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo escaped",
    ),
    ("press the magic key", Walls, "printf h > /proc/sysrq-trigger && echo escaped"),
    ("write one's own maps", Luck, "echo 0 0 1 > /proc/self/uid_map && echo escaped"),
    (
        "leave the control group",
        Root,
        "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do echo $$ > $f && echo escaped; done",
    ),
    (
        "make a control group",
        Root,
        "for d in /sys/fs/cgroup/pids /sys/fs/cgroup; do mkdir $d/kiwi-test-x$$ && echo escaped; rmdir $d/kiwi-test-x$$; done",
    ),
    // Other processes.
    ("signal a process outside", Nothing, "kill -0 @PID && echo escaped"),
    (
        "end a process outside",
        Luck,
        "py:import signal\ntry: os.kill(@PID, 0); escaped()\nexcept OSError: pass",
    ),
    ("trace a process", Nothing, "py:escaped(libc.ptrace(0x4206, @PID, 0, 0) == 0)"),
    ("trace the parent", Luck, "py:escaped(libc.ptrace(0x4206, os.getppid(), 0, 0) == 0)"),
    ("trace oneself", Nothing, "py:escaped(libc.ptrace(0, 0, 0, 0) == 0)"),
    (
        "read another process's memory",
        Nothing,
        "py:b = ctypes.create_string_buffer(8)\nv = struct.pack('PL', ctypes.addressof(b), 8)\nescaped(call(number(310, 270), os.getpid(), v, 1, v, 1, 0) == 8)",
    ),
    (
        "open another process's memory",
        Nothing,
        "py:\nfor p in (1, os.getppid(), @PID):\n  try: open(f'/proc/{p}/mem', 'r+b'); escaped()\n  except OSError: pass",
    ),
    (
        "take a descriptor of another process",
        Luck,
        "py:p = os.pidfd_open(os.getppid(), 0)\nescaped(call(438, p, 0, 0) >= 0)",
    ),
    (
        "inherit descriptors",
        Luck,
        "py:\nfor f in os.listdir('/proc/self/fd'):\n  try: l = os.readlink('/proc/self/fd/' + f)\n  except OSError: continue\n  if int(f) > 2 and not l.startswith('/proc/'): escaped()",
    ),
    ("lower the priority of others", Luck, "py:escaped(libc.setpriority(0, @PID, 5) == 0)"),
    (
        "preload into others",
        Root,
        ": >> /etc/ld.so.preload && echo escaped; [ -s /etc/ld.so.preload ] || rm -f /etc/ld.so.preload",
    ),
    // The network.
    ("connect to the host", Nothing, "py:socket.create_connection(('127.0.0.1', @TCP), 2); escaped()"),
    (
        "send a datagram to the host",
        Nothing,
        "py:socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @UDP))",
    ),
    (
        "connect to a socket by path",
        Nothing,
        "py:socket.socket(socket.AF_UNIX).connect('@R/private/socket'); escaped()",
    ),
    (
        "connect to a socket by name",
        Nothing,
        "py:socket.socket(socket.AF_UNIX).connect('\\0@NAME'); escaped()",
    ),
    (
        "send by a pair to a socket by name",
        Luck,
        "py:a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', '\\0@NAME'); escaped()",
    ),
    (
        "find the bus of a desktop",
        Luck,
        "py:places = ['/run/user', '/run/dbus/system_bus_socket', '/var/run/dbus/system_bus_socket']\nif 'DBUS_SESSION_BUS_ADDRESS' in os.environ or any(map(os.path.exists, places)): escaped()",
    ),
    (
        "reach a public address",
        Luck,
        "py:s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('1.1.1.1', 53)); escaped()",
    ),
    ("ask for a name", Luck, "py:socket.getaddrinfo('example.org', 80); escaped()"),
    ("open a raw socket", Root, "py:socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); escaped()"),
    ("open a packet socket", Root, "py:socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0); escaped()"),
    ("open a socket to a virtual machine", Luck, "py:socket.socket(40, socket.SOCK_STREAM); escaped()"),
    (
        "change the network",
        Root,
        "py:import fcntl\ns = socket.socket()\nnow = fcntl.ioctl(s, 0x8913, struct.pack('16sH14x', b'lo', 0))\nfcntl.ioctl(s, 0x8914, now); escaped()",
    ),
    // The kernel.
    (
        "mount",
        Root,
        "mkdir -p /tmp/m$$; mount -t tmpfs x /tmp/m$$ && { umount /tmp/m$$; echo escaped; }; rmdir /tmp/m$$",
    ),
    ("mount in the new way", Root, "py:escaped(call(430, b'tmpfs', 0) >= 0)"),
    ("make a namespace", Nothing, "py:escaped(libc.unshare(0x10000000) == 0)"),
    (
        "make a namespace by cloning",
        Nothing,
        "py:p = call(number(56, 220), 0x10000000 | 17, 0, 0, 0, 0)\nif p == 0: os._exit(0)\nescaped(p > 0)",
    ),
    (
        "make a namespace by cloning in the new way",
        Nothing,
        "py:a = struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0)\np = call(435, a, 64)\nif p == 0: os._exit(0)\nescaped(p > 0)",
    ),
    (
        "enter a namespace",
        Luck,
        "py:\nfor n in ('mnt', 'net', 'user'):\n  escaped(libc.setns(os.open(f'/proc/1/ns/{n}', 0), 0) == 0)",
    ),
    ("change the root", Root, "py:os.chroot('/'); escaped()"),
    ("use the kernel's keys", Nothing, "py:escaped(call(number(250, 219), 0, -3, 1) > 0)"),
    (
        "load a kernel program",
        Luck,
        "py:escaped(call(number(321, 280), 0, struct.pack('IIII', 2, 4, 4, 1) + b'\\0' * 100, 72) >= 0)",
    ),
    (
        "count the kernel's events",
        Luck,
        "py:escaped(call(number(298, 241), struct.pack('IIQ', 1, 112, 0) + b'\\0' * 96, 0, -1, -1, 0) >= 0)",
    ),
    ("handle page faults", Luck, "py:escaped(call(number(323, 282), 0o2000000) >= 0)"),
    ("make a ring of calls", Luck, "py:escaped(call(425, 1, ctypes.create_string_buffer(120)) >= 0)"),
    ("change the personality", Nothing, "py:escaped(libc.personality(0x0040000) != -1)"),
    (
        "set the host's name",
        Root,
        "py:n = socket.gethostname().encode(); escaped(libc.sethostname(n, len(n)) == 0)",
    ),
    ("set the clock", Luck, "py:escaped(libc.adjtimex(ctypes.create_string_buffer(300)) >= 0)"),
    ("gain by a setuid program", Luck, "su -c id root < /dev/null && [ $(id -u) != 0 ] && echo escaped"),
    (
        "have capabilities",
        Root,
        "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status && echo escaped",
    ),
    ("become somebody else", Root, "py:os.setgroups([]); os.setuid(1234); escaped()"),
    (
        "type into a terminal",
        Walls,
        "py:import fcntl\nfor t in ('/dev/tty', '/dev/console', '/dev/tty0'):\n  try: fcntl.ioctl(os.open(t, os.O_RDWR), 0x5412, b'x'); escaped()\n  except OSError: pass",
    ),
    (
        "ask to type into anything",
        Walls,
        "py:import fcntl, errno\ntry: fcntl.ioctl(1, 0x5412, b'x'); escaped()\nexcept OSError as e: escaped(e.errno not in (errno.EPERM, errno.EACCES) and os.getenv('HOME') == '/home/kiwi')",
    ),
    (
        "have the host's devices",
        Luck,
        "for d in /dev/kmsg /dev/fuse /dev/kvm /dev/net/tun /dev/ptmx /dev/loop0 /dev/rtc0; do [ -e $d ] && echo escaped; done",
    ),
    ("use memory shared on the host", Nothing, "py:escaped(libc.shmget(@SHM, 0, 0) >= 0)"),
];

#[test]
fn no_attempt_gets_out_of_a_container() {
    let host = Host::new();
    shared_memory(&host, "py:libc.shmget(@SHM, 4096, 0o1666) >= 0 and print('done')");
    // Engines take their time, most of which is waiting.
    let escapes: Vec<String> = std::thread::scope(|scope| {
        let tried = containers().into_iter().map(|wall| scope.spawn(move || out_of(&wall)));
        let tried: Vec<_> = tried.collect();
        tried.into_iter().flat_map(|tried| tried.join().unwrap()).collect()
    });
    shared_memory(&host, "py:libc.shmctl(libc.shmget(@SHM, 0, 0), 0, 0) == 0 and print('done')");
    assert!(escapes.is_empty(), "{escapes:#?}");
}

/// The attempts that get out of a container.
fn out_of(wall: &Wall) -> Vec<String> {
    let mut host = Host::new();
    let mut escapes = Vec::new();
    for (name, _, script) in ATTEMPTS {
        let asked = walled(host.process(script), wall);
        if let Some(how) = run(&mut host, name, asked) {
            escapes.push(format!("{name} at {wall:?}: {how}"));
        }
    }
    escapes
}

#[test]
fn no_attempt_gets_through() {
    let mut host = Host::new();
    shared_memory(&host, "py:libc.shmget(@SHM, 4096, 0o1666) >= 0 and print('done')");
    let (mut escapes, mut unsound) = (Vec::new(), Vec::new());
    for (name, needs, script) in ATTEMPTS {
        let open = Process { isolation: Isolation::Trusted, ..host.process(script) };
        let succeeds = if *needs == Walls { None } else { run(&mut host, name, open) };
        if succeeds.is_none() && (*needs == Nothing || (*needs == Root && is_root())) {
            unsound.push(*name);
        }
        for wall in &walls() {
            let asked = walled(host.process(script), wall);
            if let Some(how) = run(&mut host, name, asked) {
                escapes.push(format!("{name} at {wall:?}: {how}"));
            }
        }
    }
    // Once more behind walls that stood before the attempt was known.
    host.bench.launcher.keep_spares();
    warm_up_native(&host.bench);
    for (name, _, script) in ATTEMPTS {
        for wall in walls().iter().filter(|(_, backend)| *backend == Backend::Native) {
            wait_for_spares(&host.bench, 2);
            let asked = walled(host.process(script), wall);
            if let Some(how) = run(&mut host, name, asked) {
                escapes.push(format!("{name} at {wall:?}, by a spare: {how}"));
            }
        }
    }
    shared_memory(&host, "py:libc.shmctl(libc.shmget(@SHM, 0, 0), 0, 0) == 0 and print('done')");
    assert!(escapes.is_empty(), "{escapes:#?}");
    assert!(unsound.is_empty(), "these do not even succeed without walls: {unsound:#?}");
    assert!(ATTEMPTS.len() >= 30);
}

/// How an attempt got through, if it did.
fn run(host: &mut Host, name: &str, asked: Process) -> Option<String> {
    let said = match host.bench.run(asked) {
        Ok(finished) => String::from_utf8_lossy(&finished.stdout).into_owned(),
        Err(error) => panic!("`{name}` could not even be tried: {error}"),
    };
    // A host that was reached accepted a connection.
    host.tcp.set_nonblocking(true).unwrap();
    if let Ok((mut stream, _)) = host.tcp.accept() {
        let _ = stream.read(&mut [0]);
        return Some("a connection arrived".into());
    }
    let damage = host.damage().map(ToOwned::to_owned);
    let _ = fs::write(host.root.join("private/secret"), "s3cret");
    let _ = fs::write(host.project.join("secret"), "s3cret");
    damage.or_else(|| said.contains("escaped").then_some(said))
}

/// Makes, or removes, a segment of the host's shared memory.
fn shared_memory(host: &Host, script: &str) {
    let asked = Process { isolation: Isolation::Trusted, ..host.process(script) };
    assert!(host.bench.output(asked).contains("done"));
}
