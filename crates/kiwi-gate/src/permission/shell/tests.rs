//! The traps, by name.

use kiwi_model::Permissions;
use std::path::Path;

use super::*;
use crate::permission::{Layer, PermissionContext};

struct Yard {
    folder: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let yard = Self { folder };
        for program in [
            "git", "rm", "ls", "cat", "echo", "env", "sh", "xargs", "find", "tar", "awk", "true", "grep",
            "sort",
        ] {
            yard.program(&format!("bin/{program}"));
        }
        std::fs::create_dir(yard.root().join("project")).unwrap();
        yard
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn program(&self, path: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn link(&self, to: &str, at: &str) {
        std::os::unix::fs::symlink(self.root().join(to), self.root().join(at)).unwrap();
    }

    /// Everything that is said against a command.
    fn said(
        &self,
        allowed: &[&str],
        judge: impl Fn(&Setting<'_>) -> Vec<crate::permission::Need>,
    ) -> Vec<String> {
        let project = self.root().join("project");
        let search = format!("{0}/bin:{0}/project/bin", self.root().display());
        let setting = Setting { search_path: &search, cwd: &project, project: &project };
        let list = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let permissions = Permissions {
            shell_commands: list(allowed),
            filesystem_read: list(&["in/**"]),
            filesystem_write: list(&["out/**"]),
            ..Permissions::default()
        };
        let layer = Layer::new("the profile `test`", &permissions, &project).unwrap();
        let context = PermissionContext::everything().and(layer);
        let needs = judge(&setting);
        assert!(PermissionContext::everything().judge(&needs).is_empty(), "a person may do everything");
        context.judge(&needs).iter().map(crate::Objection::sentence).collect()
    }

    #[track_caller]
    fn allows(&self, allowed: &[&str], text: &str) {
        let said = self.said(allowed, |setting| needs_of_text(text, setting));
        assert!(said.is_empty(), "{text:?} with {allowed:?}: {said:?}");
    }

    #[track_caller]
    fn refuses(&self, allowed: &[&str], text: &str, because: &str) {
        let said = self.said(allowed, |setting| needs_of_text(text, setting));
        assert!(said.iter().any(|said| said.contains(because)), "{text:?} with {allowed:?}: {said:?}");
    }
}

#[test]
fn lists_pipes_groups_and_newlines_are_judged_command_by_command() {
    let yard = Yard::new();
    let git = &["git"];
    yard.allows(git, "git status");
    yard.allows(git, "git status && git diff || git log; git show | git apply & git gc");
    for text in [
        "git status; rm -rf x",
        "git status;rm -rf x",
        "git status && rm x",
        "git status || rm x",
        "git status | rm x",
        "git status & rm x",
        "git status\nrm x",
        "git status\n\n  rm x",
        "(rm x)",
        "{ rm x; }",
        "git status; (git log; (rm x))",
        "! rm x",
        "if git status; then rm x; fi",
        "while git status; do rm x; done",
        "for x in a b; do rm $x; done",
        "for x in a # '\ndo rm x # '\ndone",
        "case x in a) git status;; *) rm x;; esac",
        "case x in a) git status;; *) rm x; esac",
        "git status # nothing\nrm x",
        "git status \\\n; rm x",
        "git status #'\nrm x #'",
    ] {
        yard.refuses(git, text, "running `rm");
    }
    // A comment is none in the middle of a word, and hides nothing behind it.
    yard.allows(git, "git status # ; rm x");
    yard.refuses(git, "git status a#b; rm x", "rm x");
}

#[test]
fn spelling_hides_no_program() {
    let yard = Yard::new();
    for text in ["\\rm x", "r''m x", "\"rm\" x", "'rm' x", "r\\m x", "r\\\nm x", "/../bin/rm x", "\"r\"'m' x"]
    {
        yard.refuses(&["git"], text, "is not allowed by the profile `test`");
    }
    yard.refuses(&["git"], "$'rm' x", "cannot be judged");
    yard.refuses(&["git"], "$'\\x72m' x", "cannot be judged");
    yard.refuses(&["git"], "$X x", "cannot be judged: which program runs");
    yard.refuses(&["git"], "${X} x", "cannot be judged: which program runs");
    yard.refuses(&["git"], "$(echo rm) x", "cannot be judged: which program runs");
    yard.refuses(&["git"], "\"$X\" x", "cannot be judged");
    yard.refuses(&["git"], "g*t x", "cannot be judged");
    yard.refuses(&["git"], "{rm,-rf,x}", "cannot be judged");
    yard.refuses(&["git"], "~/rm x", "cannot be judged");
    // Look-alikes are other names: a Cyrillic letter, a full-width one, a space that is none.
    for text in ["g\u{456}t status", "\u{ff47}it status", "git\u{200b} status"] {
        yard.refuses(&["git"], text, "is not allowed");
    }
    for text in ["git\u{a0}status", "git status\r", "git\u{7}"] {
        yard.refuses(&["*"], text, "cannot be judged");
    }
}

#[test]
fn substitutions_and_here_documents_are_judged_too() {
    let yard = Yard::new();
    let some = &["git", "cat", "echo"];
    for text in [
        "git log $(rm x)",
        "git log \"$(rm x)\"",
        "git log `rm x`",
        "git log \"`rm x`\"",
        "git log \"$(echo `rm x`)\"",
        "git log `echo \\`rm x\\``",
        "git log $(git log $(rm x))",
        "X=$(rm x)",
        "git log ${X:-$(rm x)}",
        "cat <(rm x)",
        "cat > >(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<EOF\n`rm x`\nEOF",
        "cat <<EOF\ntext\nEOF\nrm x",
        "cat <<-EOF\n\ttext\n\tEOF\nrm x",
        "cat <<'EOF'\n$(git)\nEOF\nrm x",
        "cat <<EOF; (\nEOF\ntrue)\nrm x\nEOF",
        "cat <<A <<B\nA\nB\nrm x",
        "cat <<<\"$(rm x)\"",
        "echo $((1 + $(rm x)))",
        "echo $(case x in x) rm x;; esac)",
    ] {
        let said = yard.said(some, |setting| needs_of_text(text, setting));
        assert!(!said.is_empty(), "{text:?}");
    }
    yard.allows(some, "cat <<'EOF'\n$(rm x); `rm x`\nEOF");
    yard.allows(some, "cat <<EOF\nrm x\nEOF\ngit status");
    yard.allows(some, "echo 'rm; $(rm x)' \"; rm x\" $((1 + 2))");
    yard.allows(some, "cat <<< 'rm x'");
    // Data that feeds a shell is a program.
    yard.refuses(some, "sh <<EOF\nrm x\nEOF", "running `sh` is not allowed");
    yard.refuses(some, "echo 'rm x' | sh", "running `sh` is not allowed");
    for open in ["cat <<EOF\nrm x", "git 'x", "git \"x", "git `x", "git $(x", "(git", "git \\"] {
        yard.refuses(&["*"], open, "cannot be judged");
    }
}

#[test]
fn wrappers_are_judged_by_what_they_run() {
    let yard = Yard::new();
    for text in [
        "env X=Y rm x",
        "env -i rm x",
        "env -u A -- rm x",
        "/usr/bin/env rm x",
        "sh -c 'rm x'",
        "sh -ec 'git status; rm x'",
        "bash -c 'sh -c \"rm x\"'",
        "timeout 5 rm x",
        "timeout -k 1 -s KILL 5 rm x",
        "nice -n 5 rm x",
        "nohup rm x",
        "setsid rm x",
        "time rm x",
        "command rm x",
        "exec rm x",
        "builtin rm x",
        "xargs rm",
        "git ls-files | xargs -0 rm -f",
        "git ls-files | xargs -I% rm %",
        "find . -exec rm {} \\;",
        "find . -execdir rm {} +",
        "find . -ok rm {} \\;",
        "find . -delete",
        "watch -n 1 rm x",
        "busybox rm x",
        "env env nice sh -c 'timeout 1 rm x'",
        "sudo rm x",
    ] {
        let said = yard.said(&["git", "find", "sudo", "true"], |setting| needs_of_text(text, setting));
        assert!(said.iter().any(|said| said.contains("running `rm")), "{text:?}: {said:?}");
    }
    for text in ["env X=Y git status", "sh -c 'git status'", "timeout 5 git status"] {
        yard.allows(&["git"], text);
    }
    yard.allows(&["git", "cat"], "git ls-files | xargs cat");
    // A name in the input may be an option.
    yard.refuses(&["git"], "git ls-files | xargs git add", "cannot be judged");
    yard.refuses(&["git"], "sudo git status", "running `sudo");
    yard.allows(&["find", "cat"], "find . -name '*.rs' -exec cat {} +");
    for text in [
        "env -S 'rm x'",
        "env $X rm",
        "eval 'rm x'",
        ". ./script",
        "source x",
        "trap 'rm x' EXIT",
        "alias git=rm",
        "ssh host rm x",
        "sh -c \"$X\"",
        "sh -c '\"$0\"' rm",
        "bash --rcfile x -c git",
        "git() { rm x; }; git status",
        "function git { rm x; }",
        "xargs -I% % x",
        "find . $X",
        "timeout $X git",
        "[[ -v x ]]",
        "((x))",
        "git &> out/x",
        "let x=1",
    ] {
        yard.refuses(&["*"], text, "cannot be judged");
    }
}

/// Each with `git` in the place of the command.
const LOOKED_THROUGH: [&str; 71] = [
    "flock out/lock git",
    "flock -n -w 5 out/lock git",
    "flock out/lock -c 'git x'",
    "setlock -n out/lock git",
    "stdbuf -o0 git",
    "/usr/bin/stdbuf --output=L git",
    "ionice -c2 git",
    "ionice -c 2 -n 7 git",
    "taskset 1 git",
    "taskset -c 0,1 git",
    "chrt -o 0 git",
    "chrt --idle 0 git",
    "unshare git",
    "unshare -r -n --fork git",
    "unshare --user --map-root-user git",
    "setpriv git",
    "setpriv --no-new-privs --reuid 1000 git",
    "setarch x86_64 git",
    "setarch x86_64 -R git",
    "setarch -R git",
    "linux32 git",
    "linux64 -R git",
    "i386 git",
    "x86_64 git",
    "uname26 git",
    "prlimit --nofile=100 git",
    "prlimit --cpu=1 --core git",
    "dbus-run-session git",
    "dbus-run-session -- git",
    "dbus-launch --exit-with-session git",
    "doas -u nobody git",
    "fakeroot git",
    "fakeroot -- git",
    "eatmydata git",
    "nocache git",
    "catchsegv git",
    "strace git",
    "strace -f -e trace=file git",
    "ltrace git",
    "valgrind --tool=memcheck git",
    "perf stat git",
    "perf stat -e cycles -r 5 git",
    "perf record -g git",
    "/usr/bin/time -v git",
    "chpst -n 5 git",
    "softlimit -m 100 git",
    "setuidgid nobody git",
    "envuidgid nobody git",
    "gosu nobody git",
    "pgrphack git",
    "cgexec -g cpu:x git",
    "numactl --cpunodebind=0 git",
    "numactl -m 0 git",
    "choom -n 5 -- git",
    "choom -n 5 git",
    "uclampset -m 5 git",
    "aa-exec -p profile -- git",
    "toybox git",
    "busybox git",
    "busybox.static git",
    "coreutils git",
    "unbuffer git",
    "entr -r git",
    "rlwrap git",
    "faketime '2020-01-01' git",
    "datefudge -s '2020-01-01' git",
    "torsocks git",
    "torify git",
    "proxychains4 -q git",
    "systemd-inhibit --why=x git",
    "cpulimit -l 50 -- git",
];

/// Each with `git` in the place of the command, where it has one.
const NOT_LOOKED_THROUGH: [&str; 73] = [
    "chroot / git",
    "nsenter -t 1 -m git",
    "bwrap --bind / / git",
    "firejail git",
    "proot -r / git",
    "nsjail -- git",
    "schroot git",
    "fakechroot git",
    "systemd-nspawn git",
    "su -c 'git x'",
    "su - root -c 'git x'",
    "runuser -u nobody -- git",
    "sg wheel -c 'git x'",
    "newgrp wheel",
    "pkexec git",
    "capsh -- -c 'git x'",
    "runcon -t x git",
    "script -qc 'git x' /dev/null",
    "scriptlive x",
    "logsave out/x git",
    "parallel git",
    "parallel git ::: x",
    "sem git",
    "rush 'git x'",
    "hyperfine 'git x'",
    "pee 'git x'",
    "expect -c 'spawn git x'",
    "socat - EXEC:git",
    "envdir in git",
    "chpst -e in git",
    "argv0 git other",
    "at now",
    "batch",
    "crontab out/x",
    "systemd-run git",
    "systemd-run --user --scope git",
    "start-stop-daemon --start --exec /bin/git",
    "daemonize /bin/git",
    "tmux new git",
    "screen -dm git",
    "openvt git",
    "gdb --args git",
    "gdb -ex 'shell git x'",
    "rr record git",
    "ssh host git",
    "zsh -c 'git x'",
    "fish -c 'git x'",
    "tcsh -c 'git x'",
    "compgen -C 'git x'",
    "jobs -x git",
    "ip netns exec x git",
    "ip net e x git",
    "ip -batch in/x",
    "ld.so git",
    "ld.so --preload in/x.so /bin/git",
    "/lib64/ld-linux-x86-64.so.2 --library-path in /bin/git",
    "exec -a git busybox",
    "busybox $X x",
    "busybox --unknown git",
    "coreutils --coreutils-prog=git x",
    "flock $X git",
    "flock out/lock -c \"$X\"",
    "unshare --root=in git",
    "unshare --wd=in git",
    "setpriv --reset-env git",
    "strace -o '|git' git",
    "strace -E PATH=in git",
    "valgrind --db-command=git git",
    "perf stat --pre git git",
    "perf script record git",
    "chrt --other git",
    "taskset $X git",
    "fakeroot -l in/x.so git",
];

#[test]
fn every_wrapper_is_looked_through_or_refused() {
    let yard = Yard::new();
    let called = |text: &str| text.split(' ').next().unwrap().rsplit('/').next().unwrap().to_owned();
    for text in LOOKED_THROUGH {
        yard.allows(&["*"], text);
        let said = yard.said(&[&called(text)], |setting| needs_of_text(&text.replace("git", "rm"), setting));
        assert!(said.iter().any(|said| said.contains("running `rm")), "{text:?}: {said:?}");
    }
    for text in NOT_LOOKED_THROUGH {
        yard.refuses(&["*"], text, "cannot be judged");
    }
}

/// What the judge would read otherwise than the program does, each row with the reason it is refused for.
const MISREAD: [(&str, &str); 3] = [
    (
        "becomes cannot be told",
        "X='5 touch pwn'; nice -n $X git
env -u $X git
env --unset $X git
stdbuf -o $X git
ionice -n $X git
timeout --kill-after $X 5 git
timeout -k * 5 git
nice -n $(echo 5 rm) git
nice -n \"$@\" git
xargs -I $X git
timeout -- $X git
taskset -- $X git
env A=1 B=$X git
sudo A=1 B=$X git
git -C $X log",
    ),
    ("has no value", "nice -n\nenv -u\nstdbuf -o\ngit -C\nionice --class"),
    (
        "cannot be judged",
        "xargs --replac touch cat {}
xargs --repl=R touch R
xargs -i% touch cat
xargs -I \"$X\" git
xargs -I \"a$X\" git
xargs -tI git git
xargs --replace=git git
valgrind --tool=../../in/x git
valgrind --tool=./x git
valgrind --too=x git
watch -dn 1 git
watch -dn git
prlimit -cp 1 git
choom -n 5 flock -n 7 git x
ip netns \"e$X\" foo touch pwn
ip \"-b$X\" cmds
ip \"n$X\" foo
git -C r bisect \"ru$X\" touch pwn
git bisect \"r$X\" touch
git hook \"r$X\" x
git submodule \"foreac$X\" 'touch pwn'
git config \"al$X\" '!touch pwn'
git config \"Core.$X\" '!touch pwn'
git config --rename-section a alias
git config remote.x.uploadpack x
git config submodule.x.update '!x'
git clone \"ex$X\" a
git clone -qu ./x a
git clone -qc core.pager=x a
git rebase -ix 'touch pwn' a
git grep -lO./x a
tar \"cfI$X\" out.tar ./comp bin
tar \"c$X\" out.tar
tar cf '-oProxyCommand=touch pwn:x' in
tar --fil=evil:x -c in
printf -vPATH x
printf \"-v$X\" x
printf '%s%5n' a PATH
printf \"a$X\" PATH
wait -npPATH
wait $X
declare -gn r=PATH
declare -i x=Y
typeset +xi x=Y
export A=$X
test \"$X\" \"$Y\"
test \"$X\" 'a[x]'
test $X
true {PATH}>out/x
env -iS 'touch pwn'
env -vS 'touch pwn'
bash -oc vi 'touch pwn'
bash -Oc extglob 'touch pwn'
bash -eoc vi 'touch pwn'
sh -c - 'touch pwn'
sh -c +x 'touch pwn'
find . -exec cat \"$X\" -exec touch pwn \\;
find . -exec cat $X -exec touch pwn \\;
find . -exec tar cf out/x -C \"a$X\" + -I ./comp \\;
find . -exec cat x{} + -exec touch pwn \\;
find . -name -exec -exec sh -c 'rm x' \\;",
    ),
];

#[test]
fn what_programs_read_otherwise_is_refused() {
    let yard = Yard::new();
    for (because, rows) in MISREAD {
        for text in rows.lines() {
            yard.refuses(&["*"], text, because);
        }
    }
    for text in [
        "xargs --replace rm cat {}",
        "xargs --max-lines rm cat",
        "xargs --eof rm cat",
        "xargs -i rm cat",
        "xargs -tl rm cat",
        "xargs -0e rm cat",
        "xargs --max-lines=1 rm cat",
        "watch -d rm x",
        "watch --differences rm x",
        "prlimit -c rm x",
        "bash -co vi 'rm x'",
        "choom -n 5 -- rm -n 5",
        "valgrind --tool rm git",
    ] {
        let others = &["git", "cat", "watch", "prlimit", "bash", "echo", "valgrind"];
        yard.refuses(others, text, "running `rm");
    }
    for text in ["read -aPATH", "read -raPATH", "env -i \"PATH=$X\" git", "VALGRIND_LIB=in git"] {
        yard.refuses(&["*"], text, "is never allowed: setting");
    }
    for text in ["env -iC in ./git", "env -vC in sh -c 'git > out/x'"] {
        yard.refuses(&["*"], text, "depends on a change of folder");
    }
}

#[test]
fn what_is_read_alike_is_not_refused() {
    let yard = Yard::new();
    for text in [
        "nice -n \"$X\" git",
        "git ls-files | xargs -tI R cat R",
        "git ls-files | xargs -I % cat a/%",
        "bash -eo pipefail -c 'git'",
        "find . -exec cat {} + -exec cat 1 + 2 \\;",
        "find . -exec cat \"a$X\" \\;",
        "tar cf \"out$X.tar\" in",
        "git commit -m \"fix $X\"",
        "git config user.name \"Q $X\"",
        "git submodule update --init lib",
        "printf '100%%\\n%s\\n' x; printf '%s\\n' \"$X\"",
        "test -n \"$X\" && [ \"$X\" = x ] && [ \"$X\" -gt \"$Y\" ]",
        "export A=\"$X\" B=1; declare -x C=2; wait; wait -n",
        "valgrind --tool=exp-bbv --leak-check=full git",
        "ip addr show",
    ] {
        yard.allows(&["*"], text);
    }
}

#[test]
fn what_loads_programs_is_judged_by_the_one_it_loads() {
    let yard = Yard::new();
    let rm = yard.root().join("bin/rm");
    for loader in
        ["ld.so", "ld-linux.so.2", "ld-2.31.so", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"]
    {
        let text = format!("{loader} {} x", rm.display());
        yard.refuses(&["git"], &text, &format!("running `{}", rm.display()));
        yard.allows(&["rm"], &text);
    }
}

#[test]
fn a_wrapper_that_changes_rights_must_be_allowed_itself() {
    let yard = Yard::new();
    for text in
        ["unshare git", "setpriv git", "prlimit --core git", "aa-exec git", "strace git", "gosu root git"]
    {
        yard.refuses(&["git"], text, "running `");
    }
    yard.allows(&["git"], "stdbuf -o0 git; flock out/lock git; taskset 1 git");
    yard.refuses(&["git"], "flock secret git", "writing");
    // Told to run nothing, these begin a shell.
    for text in ["unshare", "unshare -r", "setarch x86_64", "linux32 -R", "fakeroot"] {
        yard.refuses(&["unshare"], text, "running `sh` is not allowed");
    }
}

#[test]
fn a_program_with_many_names_is_the_one_it_is_called_by() {
    let yard = Yard::new();
    for many in ["busybox", "setarch", "coreutils"] {
        yard.program(&format!("bin/{many}"));
    }
    for (many, name) in [("busybox", "head"), ("coreutils", "tail"), ("setarch", "linux32")] {
        yard.link(&format!("bin/{many}"), &format!("bin/{name}"));
    }
    yard.allows(&["head", "tail"], "head rm x; tail rm x");
    yard.refuses(&["git"], "head git x", "running `head");
    yard.refuses(&["git"], "tail git x", "running `tail");
    yard.allows(&["git"], "linux32 git x");
    // Under a name that nobody vouches for it may be anything.
    yard.link("bin/coreutils", "project/mine");
    yard.refuses(&["mine", "coreutils"], "./mine rm x", "running `rm");
}

#[test]
fn variables_that_change_what_runs_are_never_set() {
    let yard = Yard::new();
    for text in [
        "PATH=/tmp git status",
        "PATH=/tmp",
        "PATH+=:/tmp git status",
        "LD_PRELOAD=./x.so git status",
        "IFS=x git status",
        "BASH_ENV=x sh -c git",
        "ENV=x git",
        "GIT_SSH_COMMAND='rm x' git fetch",
        "GIT_PAGER=rm git log",
        "PYTHONPATH=. git",
        "env PATH=/tmp git status",
        "env LD_PRELOAD=x git status",
        "export PATH=/tmp; git status",
        "read PATH; git status",
        "unset PATH",
        "for PATH in /tmp; do git status; done",
        "git ${PATH:=/tmp}",
        "P\\\nATH=/tmp git status",
        "sh -c 'PATH=/tmp git'",
    ] {
        yard.refuses(&["*"], text, "is never allowed: setting");
    }
    yard.allows(&["git"], "X=1 LANG=C git status");
    yard.allows(&["git"], "GIT_AUTHOR_NAME=x git commit");
    yard.refuses(&["*"], "\"PATH\"=/tmp git status", "cannot be judged");
}

#[test]
fn redirections_need_their_files() {
    let yard = Yard::new();
    yard.allows(&["git"], "git diff > out/x 2>&1 < in/y 2>/dev/null");
    yard.allows(&["git"], "git diff >> out/x; git log >| out/y");
    yard.refuses(&["git"], "git diff > secret", "writing");
    yard.refuses(&["git"], "git diff > out/../secret", "writing");
    yard.refuses(&["git"], "> secret", "writing");
    yard.refuses(&["git"], "(git diff) > secret", "writing");
    yard.refuses(&["git"], "if git; then git; fi > secret", "writing");
    yard.refuses(&["git"], "git apply < secret", "reading");
    yard.refuses(&["git"], "git apply <> out/x", "reading");
    yard.refuses(&["git"], "git diff > $X", "cannot be judged");
    yard.refuses(&["git"], "git diff > out/*", "cannot be judged");
    yard.refuses(&["git"], "git diff >& secret", "cannot be judged");
    yard.refuses(&["git", "cd"], "cd /etc; git diff > out/x", "depends on a change of folder");
    yard.refuses(
        &["git", "cd"],
        "while true; do git diff > out/x; cd ..; done",
        "depends on a change of folder",
    );
    yard.refuses(&["find"], "find . -fprint secret", "writing");
    yard.refuses(&["cat"], "cat < /dev/tcp/evil.org/80", "cannot be judged");
}

#[test]
fn an_entry_may_name_first_words_and_git_is_held_to_itself() {
    let yard = Yard::new();
    let status = &["git status", "git log"];
    yard.allows(status, "git status --short; git log");
    for text in ["git push", "git", "git -C x status", "git $X", "git \"status$X\"", "git stat*"] {
        let said = yard.said(status, |setting| needs_of_text(text, setting));
        assert!(!said.is_empty(), "{text}");
    }
    for text in [
        "git -c alias.x='!rm' x",
        "git -c core.pager=rm log",
        "git --exec-path=/tmp status",
        "git --config-env=core.pager=X log",
        "git fetch --upload-pack=rm",
        "git fetch --upload=rm",
        "git rebase -x 'rm x' main",
        "git clone -c core.hooksPath=x y",
        "git config alias.x '!rm'",
        "git config core.pager rm",
        "git submodule foreach rm",
        "git bisect run rm",
        "git clone ext::rm",
        "git log $X",
        "tar --checkpoint-action=exec=rm -cf x y",
        "tar --checkpoint-a=exec=rm -cf x y",
        "tar -I rm -xf x",
        "tar xIf rm x",
    ] {
        yard.refuses(&["*"], text, "cannot be judged");
    }
    yard.allows(&["git"], "git switch -c topic; git commit -m 'a message'; git log \"HEAD..x\"");
    // An interpreter that is listed may do whatever it is told.
    yard.allows(&["awk"], "awk 'BEGIN { system(\"rm x\") }'");
}

#[test]
fn a_program_is_the_one_that_the_path_finds() {
    let yard = Yard::new();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let said =
        |allowed: &[&str], argv: &[&str]| yard.said(allowed, |setting| needs_of_words(&words(argv), setting));
    assert!(said(&["git"], &["git", "status"]).is_empty());
    assert!(!said(&["git"], &["rm", "x"]).is_empty());
    assert!(!said(&["git"], &["git;rm", "x"]).is_empty());
    assert!(!said(&["git"], &["env", "rm", "x"]).is_empty());
    // Of the same name, but not the one that would be found.
    yard.program("evil/git");
    assert!(!said(&["git"], &[yard.root().join("evil/git").to_str().unwrap()]).is_empty());
    let found = yard.root().join("bin/git");
    assert!(said(&["git"], &[found.to_str().unwrap(), "status"]).is_empty());
    assert!(said(&[found.to_str().unwrap()], &["git", "status"]).is_empty());
    // A link is what it leads to.
    yard.link("bin/rm", "project/git");
    assert!(!said(&["git"], &["./git", "x"]).is_empty());
    yard.link("bin/git", "bin/git-link");
    assert!(said(&["git"], &["git-link", "x"]).is_empty());
    yard.link("bin/env", "bin/harmless");
    assert!(!said(&["harmless"], &["harmless", "rm", "x"]).is_empty());
    // What lies in the project has a path and no name.
    yard.program("project/bin/lint");
    assert!(!said(&["lint"], &["lint"]).is_empty());
    assert!(said(&["bin/lint"], &["lint"]).is_empty());
    assert!(said(&["*"], &["lint"]).is_empty());
    assert!(!said(&[], &["git"]).is_empty());
}

#[test]
fn a_refused_program_stays_refused_however_it_is_called() {
    let yard = Yard::new();
    let project = yard.root().join("project");
    let search = format!("{}/bin", yard.root().display());
    let setting = Setting { search_path: &search, cwd: &project, project: &project };
    let permissions = Permissions {
        shell_commands: vec!["*".into()],
        deny: vec!["shell_commands:rm".into(), "git push".into()],
        ..Permissions::default()
    };
    let context = PermissionContext::everything().and(Layer::new("x", &permissions, Path::new("/")).unwrap());
    let is_refused = |text: &str| !context.judge(&needs_of_text(text, &setting)).is_empty();
    for text in ["rm x", "/bin/rm x", "sh -c 'rm x'", "git push", "git -C x push", "git log; git push origin"]
    {
        assert!(is_refused(text), "{text}");
    }
    assert!(!is_refused("git log") && !is_refused("ls"));
}

#[test]
fn no_text_stops_the_parser() {
    let pieces = [
        "git",
        " ",
        "$(",
        "`",
        ")",
        "(",
        "'",
        "\"",
        "<<E",
        "\n",
        "E",
        ";",
        "${",
        "}",
        "\\",
        "&&",
        "|",
        "case x in",
        "esac",
        ";;",
        "#",
        "for x in",
        "do",
        "done",
        ">",
        "{",
        "\u{e9}",
        "$((",
        "=",
        "*",
    ];
    let mut seed = 1_u64;
    for _ in 0..30_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[usize::try_from((seed >> 33) % pieces.len() as u64).unwrap()]);
        }
        let _ = parse::parse(&text);
    }
    assert!(parse::parse(&"$(".repeat(10_000)).is_err());
    assert!(parse::parse(&"(".repeat(10_000)).is_err());
    assert!(parse::parse(&format!("{}x", "! ".repeat(10_000))).is_ok());
}
