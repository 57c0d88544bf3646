//! Programs that run the words behind their options, and those of which nobody can tell what they run: as tables.

use super::options::Spec;

/// What a wrapper runs that is given no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    Nothing,
    Shell,
}

/// Programs that take options, a number of words, and then a command.
#[derive(Debug)]
pub(super) struct Wrapper {
    names: &'static [&'static str],
    pub options: Spec<'static>,
    /// How many words stand between the options and the command.
    pub skipped: usize,
    pub alone: Alone,
    /// Whether it changes what the command may do, so that it must be allowed too.
    pub is_judged: bool,
    /// Whether it takes options from among the words of the command, unless `--` stands in front of that.
    pub reorders: bool,
}

impl Wrapper {
    const fn new(names: &'static [&'static str], options: Spec<'static>) -> Self {
        Self { names, options, skipped: 0, alone: Alone::Nothing, is_judged: false, reorders: false }
    }

    const fn skipping(mut self, skipped: usize) -> Self {
        self.skipped = skipped;
        self
    }

    const fn or_shell(mut self) -> Self {
        self.alone = Alone::Shell;
        self
    }

    const fn reordering(mut self) -> Self {
        self.reorders = true;
        self
    }

    const fn judged(mut self) -> Self {
        self.is_judged = true;
        self
    }
}

/// The wrapper of this name.
pub(super) fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))
}

/// Why nobody can tell what the program of this name runs.
pub(super) fn opaque(name: &str) -> Option<&'static str> {
    OPAQUE.iter().find(|(_, names)| names.contains(&name)).map(|(why, _)| *why)
}

/// Options that may be given with a value and without: those of `prlimit`.
const RESOURCES: [&str; 16] = [
    "core",
    "data",
    "nice",
    "fsize",
    "sigpending",
    "memlock",
    "rss",
    "nofile",
    "msgqueue",
    "rtprio",
    "stack",
    "cpu",
    "nproc",
    "as",
    "locks",
    "rttime",
];

/// Options of `valgrind` whose value never is a word of its own.
const VALGRIND: [&str; 6] =
    ["tool", "leak-check", "show-leak-kinds", "track-origins", "error-exitcode", "num-callers"];

const NONE: Spec<'static> = Spec { flags: "", valued: "", long: &[], long_valued: &[] };

/// An option that is not listed is refused. What is left out on purpose sets variables, changes the folder or the root,
/// writes files, or names yet another program.
static WRAPPERS: [Wrapper; 37] = [
    Wrapper::new(
        &["nice"],
        Spec { flags: "0123456789", valued: "n", long: &[], long_valued: &["adjustment"] },
    ),
    Wrapper::new(
        &["timeout"],
        Spec {
            flags: "fpv",
            valued: "ks",
            long: &["foreground", "preserve-status", "verbose"],
            long_valued: &["kill-after", "signal"],
        },
    )
    .skipping(1),
    Wrapper::new(
        &[
            "nohup",
            "builtin",
            "eatmydata",
            "nocache",
            "catchsegv",
            "rlwrap",
            "torsocks",
            "torify",
            "dbus-run-session",
            "systemd-cat",
            "pgrphack",
            "memusage",
            "sotruss",
            "chronic",
        ],
        NONE,
    ),
    Wrapper::new(&["setsid"], Spec { flags: "cfw", long: &["ctty", "fork", "wait"], ..NONE }),
    Wrapper::new(&["time"], Spec { flags: "pvq", long: &["portability", "verbose", "quiet"], ..NONE }),
    // Not `-a`: some programs are what they are called.
    Wrapper::new(&["exec"], Spec { flags: "cl", ..NONE }),
    Wrapper::new(&["stdbuf"], Spec { valued: "ioe", long_valued: &["input", "output", "error"], ..NONE }),
    Wrapper::new(
        &["ionice"],
        Spec {
            flags: "t",
            valued: "cnpPu",
            long: &["ignore"],
            long_valued: &["class", "classdata", "pid", "pgid", "uid"],
        },
    ),
    Wrapper::new(&["taskset"], Spec { flags: "apc", long: &["all-tasks", "pid", "cpu-list"], ..NONE })
        .skipping(1),
    Wrapper::new(&["choom"], Spec { valued: "np", long_valued: &["adjust", "pid"], ..NONE }).reordering(),
    Wrapper::new(
        &["uclampset"],
        Spec {
            flags: "asRv",
            valued: "mMp",
            long: &["all-tasks", "system", "reset-on-fork", "verbose"],
            long_valued: &["uclamp-min", "uclamp-max", "pid"],
        },
    ),
    Wrapper::new(
        &["numactl"],
        Spec {
            flags: "ablsH",
            valued: "imNCcpw",
            long: &["all", "balancing", "localalloc", "show", "hardware"],
            long_valued: &[
                "interleave",
                "membind",
                "cpunodebind",
                "physcpubind",
                "preferred",
                "weighted-interleave",
            ],
        },
    ),
    Wrapper::new(
        &["prlimit"],
        Spec {
            flags: "cdefilmnqrstuvxy",
            valued: "opcdefilmnqrstuvxy",
            long: &[
                "verbose",
                "raw",
                "noheadings",
                "core",
                "data",
                "nice",
                "fsize",
                "sigpending",
                "memlock",
                "rss",
                "nofile",
                "msgqueue",
                "rtprio",
                "stack",
                "cpu",
                "nproc",
                "as",
                "locks",
                "rttime",
            ],
            long_valued: &RESOURCES,
        },
    )
    .judged(),
    Wrapper::new(&["softlimit"], Spec { valued: "acdflmoprst", ..NONE }),
    Wrapper::new(&["chpst"], Spec { flags: "P012", valued: "nmdofcprt", ..NONE }),
    Wrapper::new(&["setuidgid", "envuidgid", "gosu", "su-exec"], NONE).skipping(1).judged(),
    Wrapper::new(
        &["unshare"],
        Spec {
            flags: "muinpUCTfrc",
            valued: "SG",
            long: &[
                "mount",
                "uts",
                "ipc",
                "net",
                "pid",
                "user",
                "cgroup",
                "time",
                "fork",
                "map-root-user",
                "map-current-user",
                "map-auto",
                "keep-caps",
                "kill-child",
            ],
            long_valued: &[
                "propagation",
                "setgroups",
                "map-user",
                "map-group",
                "map-users",
                "map-groups",
                "setuid",
                "setgid",
                "monotonic",
                "boottime",
                "kill-child",
            ],
        },
    )
    .or_shell()
    .judged(),
    Wrapper::new(
        &["setpriv"],
        Spec {
            flags: "d",
            valued: "",
            long: &["dump", "nnp", "no-new-privs", "clear-groups", "keep-groups", "init-groups"],
            long_valued: &[
                "ambient-caps",
                "inh-caps",
                "bounding-set",
                "ruid",
                "euid",
                "reuid",
                "rgid",
                "egid",
                "regid",
                "groups",
                "securebits",
                "pdeathsig",
                "ptracer",
                "landlock-access",
                "landlock-rule",
            ],
        },
    )
    .judged(),
    Wrapper::new(&MACHINES, SETARCH).or_shell(),
    Wrapper::new(&["dbus-launch"], Spec { long: &["exit-with-session", "exit-with-x11"], ..NONE }),
    Wrapper::new(&["fakeroot", "fakeroot-ng", "fakeroot-sysv", "fakeroot-tcp", "pseudo"], NONE).or_shell(),
    Wrapper::new(&["unbuffer"], Spec { flags: "p", ..NONE }),
    Wrapper::new(&["faketime"], Spec { flags: "mf", long: &["exclude-monotonic"], ..NONE }).skipping(1),
    Wrapper::new(&["datefudge"], Spec { flags: "s", long: &["static"], ..NONE }).skipping(1),
    Wrapper::new(&["proxychains", "proxychains4", "proxychains-ng"], Spec { flags: "q", ..NONE }),
    Wrapper::new(&["tsocks"], NONE).or_shell(),
    Wrapper::new(
        &["cpulimit"],
        Spec { flags: "zi", valued: "l", long: &["lazy", "include-children"], long_valued: &["limit"] },
    ),
    Wrapper::new(&["trickle"], Spec { flags: "sv", valued: "dutlw", ..NONE }),
    Wrapper::new(&["cgexec"], Spec { valued: "g", long: &["sticky"], ..NONE }).judged(),
    Wrapper::new(
        &["aa-exec"],
        Spec {
            flags: "div",
            valued: "pn",
            long: &["debug", "immediate", "verbose"],
            long_valued: &["profile", "namespace"],
        },
    )
    .judged(),
    Wrapper::new(&["ssh-agent"], Spec { flags: "Dd", valued: "tE", ..NONE }),
    Wrapper::new(&["tini", "dumb-init", "catatonit"], Spec { flags: "sgvc", ..NONE }),
    Wrapper::new(&["strace"], Spec { flags: "fcCqrtTvxyzZki", valued: "aeIsSPX", ..NONE }).judged(),
    Wrapper::new(&["ltrace"], Spec { flags: "cCfrStT", valued: "aens", ..NONE }).judged(),
    Wrapper::new(
        &["valgrind"],
        Spec {
            flags: "qv",
            valued: "",
            long: &[
                "quiet",
                "verbose",
                "tool",
                "leak-check",
                "show-leak-kinds",
                "track-origins",
                "error-exitcode",
                "num-callers",
            ],
            long_valued: &VALGRIND,
        },
    )
    .judged(),
    Wrapper::new(&["systemd-inhibit"], Spec { long_valued: &["what", "who", "why", "mode"], ..NONE }),
    Wrapper::new(&["xvfb-run"], Spec { flags: "a", long: &["auto-servernum"], ..NONE }),
];

/// The names by which `setarch` is told nothing but its options.
const MACHINES: [&str; 24] = [
    "linux32", "linux64", "uname26", "i386", "i486", "i586", "i686", "athlon", "x86_64", "ia64", "ppc",
    "ppc32", "ppc64", "ppc64le", "s390", "s390x", "sparc", "sparc32", "sparc64", "mips", "mips32", "mips64",
    "alpha", "parisc",
];

/// The options of `setarch`.
pub(super) const SETARCH: Spec<'static> = Spec {
    flags: "BFILRSTXZ3v",
    valued: "",
    long: &[
        "32bit",
        "fdpic-funcptrs",
        "short-inode",
        "addr-compat-layout",
        "addr-no-randomize",
        "whole-seconds",
        "sticky-timeouts",
        "read-implies-exec",
        "mmap-page-zero",
        "3gb",
        "4gb",
        "uname-2.6",
        "verbose",
    ],
    long_valued: &[],
};

/// Programs that run others, and why it is not told which.
static OPAQUE: [(&str, &[&str]); 6] = [
    (
        "it runs its command as somebody else, by a shell",
        &[
            "su",
            "runuser",
            "sg",
            "newgrp",
            "login",
            "pkexec",
            "sudoedit",
            "capsh",
            "runcon",
            "machinectl",
            "run0",
            "calife",
            "super",
        ],
    ),
    (
        "it runs its command where other files may lie",
        &[
            "chroot",
            "nsenter",
            "bwrap",
            "firejail",
            "proot",
            "nsjail",
            "schroot",
            "dchroot",
            "fakechroot",
            "minijail0",
            "systemd-nspawn",
            "toolbox",
            "distrobox",
            "distrobox-enter",
            "flatpak-spawn",
            "lxc-execute",
            "lxc-attach",
        ],
    ),
    (
        "what it runs is put together when it runs",
        &[
            "parallel",
            "sem",
            "rush",
            "xjobs",
            "pexec",
            "pee",
            "mispipe",
            "ifne",
            "hyperfine",
            "expect",
            "inotifyd",
            "tcpsvd",
            "udpsvd",
            "tcpserver",
            "socat",
            "incrond",
            "execlineb",
            "run-one",
            "envdir",
            "argv0",
        ],
    ),
    (
        "it runs its command later, or by another process",
        &[
            "at",
            "batch",
            "crontab",
            "systemd-run",
            "start-stop-daemon",
            "daemonize",
            "daemon",
            "tmux",
            "screen",
            "dtach",
            "abduco",
            "openvt",
            "supervise",
            "runsv",
            "task-spooler",
            "tsp",
        ],
    ),
    (
        "it runs its command and writes down what that prints",
        &["script", "scriptlive", "logsave", "asciinema"],
    ),
    (
        "it can be told to run anything",
        &[
            "gdb",
            "gdbserver",
            "lldb",
            "rr",
            "bpftrace",
            "trace-cmd",
            "uftrace",
            "heaptrack",
            "schedtool",
            "cset",
            "sshpass",
        ],
    ),
];
