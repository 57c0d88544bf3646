//! A secret is planted, and tools of every kind do their worst with it: afterwards it is nowhere to be found.

use crate::support::TestEnvironment;
use crate::support::leaks::{Planted, Watcher};
use crate::support::server::Server;
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BASH: &str = r#"#!/usr/bin/env bash
echo "plain $TOKEN"; echo "err $TOKEN" >&2; printf '%q\n' "$TOKEN"; set -x; : "$TOKEN"; set +x
printf '%s' "$TOKEN" | base64 -w0; echo; printf 'Bearer %s' "$TOKEN" | base64 -w0; echo
printf '%s' "$TOKEN" | od -An -v -tx1 | tr -d ' \n'; echo
printf '%s' "${TOKEN%???}"; sleep 0.05; printf '%s\n' "${TOKEN#"${TOKEN%???}"}"
echo "it went wrong with $TOKEN" >&2; exit 3
"#;
const PYTHON: &str = r#"
import base64, json, os, sys, urllib.parse
def execute(input):
    secret = os.environ["TOKEN"]
    for text in [secret, urllib.parse.quote(secret), urllib.parse.quote_plus(secret), json.dumps({"k": secret}),
                 repr(secret), base64.b64encode(("x" + secret).encode()).decode(), secret.encode().hex(),
                 base64.urlsafe_b64encode(secret.encode()).decode(), secret.encode().hex().upper()]:
        print(text, file=sys.stderr)
    raise ValueError("no luck with " + secret)
"#;
const NODE: &str = r#"
exports.execute = async () => {
  const secret = process.env.TOKEN;
  console.error(encodeURIComponent(secret), JSON.stringify(secret), Buffer.from("ab" + secret).toString("base64"));
  if (process.env.MODE !== "throw") return {secret, [secret]: [encodeURIComponent(secret)]};
  throw new Error("no luck with " + secret);
};
"#;
const CRASH: &str = "kill -SEGV $$; sleep 5";
/// The crash of a process that has the secret in its own memory too.
const ABORT: &str = "import os\nheld = os.environ['TOKEN'] * 3\nos.abort()\n";

struct Place {
    env: TestEnvironment,
    planted: Arc<Planted>,
    outputs: Vec<(String, Vec<u8>)>,
}

impl Place {
    fn new() -> Self {
        let env = TestEnvironment::new();
        let place = Self { env, planted: Arc::new(Planted::new()), outputs: Vec::new() };
        let set = place.env.run_with_input(&["auth", "set", "token"], &place.planted.secret);
        assert_eq!(set.code, 0, "{}", set.stderr);
        place
    }

    fn tool(&self, id: &str, runtime: &str, file: &str, keys: &str, code: &str) {
        let manifest = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: {runtime}\nentrypoint: {file}\nrequires_secret: [token]\n{keys}\n"
        );
        self.env.write(&format!("tools/{id}/tool.yaml"), manifest);
        self.env.write(&format!("tools/{id}/{file}"), code);
    }

    /// The program where core files are wanted, as big as they like.
    fn command(&self, words: &[&str]) -> Command {
        let plain = self.env.command(words);
        let mut command = with_cores(plain.get_program().as_ref());
        command.args(plain.get_args()).current_dir(self.env.project()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
        command
    }

    #[track_caller]
    fn run(&mut self, words: &[&str], code: i32) {
        let output = self.command(words).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{out}\n{err}");
        self.keep(words.join(" "), &output);
    }

    fn keep(&mut self, what: String, output: &Output) {
        self.outputs.push((what, [output.stdout.as_slice(), b"\n", &output.stderr].concat()));
    }

    /// Everything that was written anywhere.
    #[track_caller]
    fn search(&self) {
        assert_eq!(self.planted.below(self.env.project().parent().unwrap()), Vec::<String>::new());
        for (what, output) in &self.outputs {
            assert!(!self.planted.is_in(output), "{what} shows it:\n{}", String::from_utf8_lossy(output));
        }
    }
}

/// A program whose core files may have any size.
fn with_cores(program: &Path) -> Command {
    let mut command = Command::new("sh");
    // Where the limit cannot be raised, there is none to be feared either.
    command.args(["-c", "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\""]).arg(program);
    command
}

#[test]
fn the_search_finds_what_is_there() {
    let place = Place::new();
    let root = place.env.project().parent().unwrap().to_owned();
    let secret = &place.planted.secret;
    for text in [secret.clone(), format!("x{}", serde_json::to_string(secret).unwrap())] {
        assert!(place.planted.is_in(text.as_bytes()));
    }
    let encode = "import sys, base64, urllib.parse as u; s = sys.stdin.read().encode(); b = base64.b64encode\n\
                  for x in [b(s), b(b'1' + s), b(b'12' + s), s.hex().encode(), u.quote(s).encode()]: print(x.decode())";
    let file = root.join("tmp/encode.py");
    std::fs::write(&file, encode).unwrap();
    let mut python = Command::new("python3");
    let shapes = crate::support::feed(python.arg(&file), secret);
    assert_eq!(shapes.stdout.lines().count(), 5, "{}", shapes.stderr);
    assert!(shapes.stdout.lines().all(|line| place.planted.is_in(line.as_bytes())), "{}", shapes.stdout);
    let planted = place.env.write("logs/planted", format!("a {secret} b"));
    assert_eq!(place.planted.below(&root), [planted.display().to_string()]);

    let watcher = Watcher::start(Arc::clone(&place.planted));
    assert!(Command::new("sleep").arg0(secret).arg("0.5").status().unwrap().success());
    assert_eq!(watcher.finish().len(), 1);
}

#[test]
fn a_secret_is_in_no_output_argument_or_file() {
    let mut place = Place::new();
    let watcher = Watcher::start(Arc::clone(&place.planted));
    place.tool("bash_leak", "bash_runtime", "main.sh", "", BASH);
    place.tool("python_leak", "python_runtime", "main.py", "", PYTHON);
    place.tool("node_leak", "node_runtime", "main.js", "", NODE);
    place.tool("node_throw", "node_runtime", "main.js", "config: {env: {MODE: throw}}", NODE);
    place.tool("slow", "bash_runtime", "main.sh", "config: {timeout: 1}", "echo \"$TOKEN\"; exec sleep 60");
    for (tool, code) in
        [("bash_leak", 1), ("python_leak", 1), ("node_leak", 0), ("node_throw", 1), ("slow", 1)]
    {
        place.run(&["run", tool], code);
        place.run(&["run", tool, "--json"], code);
        place.run(&["run", tool, "--dry-run"], 0);
        place.run(&["run", tool, "--isolation", "sandboxed"], code);
    }
    let server = Server::start(|asked| {
        let status = if asked.line.contains("/bad") { "500 Oops" } else { "200 OK" };
        (status, json!({"line": asked.line, "headers": asked.headers}).to_string())
    });
    for (id, path, auth) in [
        ("bearer", "/good", "{type: bearer, secret: token}"),
        ("basic", "/bad", "{type: basic, username: me, secret: token}"),
        ("key", "/bad", "{type: api_key, in: query, name: key, secret: token}"),
    ] {
        let url = server.url(path);
        let text = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: api\nconfig: {{url: \"{url}\", auth: {auth}}}\n"
        );
        place.env.write(&format!("tools/{id}.yaml"), text);
        let code = i32::from(path == "/bad");
        place.run(&["run", id], code);
        place.run(&["run", id, "--json"], code);
        place.run(&["run", id, "--dry-run"], 0);
    }
    let gone = "tool_id: gone\nversion: \"1.0.0\"\ntool_type: api\nconfig: {url: \"http://127.0.0.1:9/\", auth: {type: api_key, in: query, name: key, secret: token}}\n";
    place.env.write("tools/gone.yaml", gone);
    let output = place.command(&["run", "gone", "--json"]).output().unwrap();
    assert!(!output.status.success());
    place.keep("gone".into(), &output);
    assert_eq!(server.asked().len(), 6, "it was sent");
    place.run(&["auth", "list"], 0);
    place.run(&["auth", "list", "--json"], 0);
    place.run(&["tool", "check", "bash_leak"], 0);
    assert_eq!(watcher.finish(), Vec::<String>::new());
    assert!(place.env.audit().len() > 40);
    let shown: Vec<&[u8]> = place.outputs.iter().map(|(_, output)| output.as_slice()).collect();
    let shown = String::from_utf8_lossy(&shown.concat()).into_owned();
    assert!(shown.matches("[secret:token]").count() > 50, "{shown}");
    place.search();
}

#[test]
fn a_secret_is_in_no_core_file() {
    let mut place = Place::new();
    for level in ["trusted", "standard", "sandboxed", "restricted"] {
        let keys = format!("isolation: {level}\npermissions: {{filesystem_write: [\"**\"]}}");
        place.tool(&format!("crash_{level}"), "bash_runtime", "main.sh", &keys, CRASH);
        place.tool(&format!("abort_{level}"), "python_runtime", "main.py", &keys, ABORT);
        place.run(&["run", &format!("crash_{level}")], 1);
        place.run(&["run", &format!("abort_{level}")], 1);
        // The launcher and Kiwi itself, while the tool runs and both of them have the secret.
        place.tool(
            &format!("wait_{level}"),
            "bash_runtime",
            "main.sh",
            &keys,
            "echo ready; exec /bin/sleep 60",
        );
        for (whose, signal) in [("kiwi", "ABRT"), ("kiwi", "SEGV"), ("launcher", "SEGV")] {
            let running = running(&mut place.command(&["run", &format!("wait_{level}")]));
            let pid = match whose {
                "kiwi" => running.id(),
                _ => launcher_of(running.id()),
            };
            assert!(is_guarded(pid), "{whose} at {level}");
            strike(pid, signal);
            let output = running.wait_with_output().unwrap();
            assert!(!output.status.success(), "{whose} {signal}");
            place.keep(format!("{whose} {signal} {level}"), &output);
        }
    }
    place.search();
    assert_eq!(cores_below(place.env.project().parent().unwrap()), Vec::<PathBuf>::new());
    // Proof that there would have been one, where the system writes them to the working folder.
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let limit = with_cores(Path::new("sh")).args(["-c", "ulimit -c"]).output().unwrap();
    if !pattern.contains(['/', '|']) && limit.stdout == b"unlimited\n" {
        let mut crash = with_cores(Path::new("sh"));
        crash.args(["-c", "kill -SEGV $$"]).env("TOKEN", &place.planted.secret).current_dir(place.env.tmp());
        assert!(!crash.status().unwrap().success());
        assert_eq!(cores_below(&place.env.tmp()).len(), 1);
        assert_eq!(place.planted.below(&place.env.tmp()).len(), 1);
    }
}

/// Starts it, and waits until its tool runs.
fn running(command: &mut Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}

/// Until it is gone: Rust's own handler lets the first SIGSEGV pass that no access of memory caused.
fn strike(pid: u32, signal: &str) {
    let begun = Instant::now();
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    };
    while is_there() {
        let _ = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
        assert!(begun.elapsed() < Duration::from_secs(10), "{signal} does not end it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn launcher_of(kiwi: u32) -> u32 {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
            if parent == Some(&kiwi.to_string()) {
                return entry.file_name().to_string_lossy().parse().unwrap();
            }
        }
    }
    panic!("no launcher");
}

/// Whether the kernel keeps the memory of a process to itself: its files belong to root, and its maps are nobody's.
fn is_guarded(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    is_root || std::fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid() == 0
}

fn cores_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(cores_below(&path));
        } else if entry.file_name().to_string_lossy().starts_with("core") {
            found.push(path);
        }
    }
    found
}
