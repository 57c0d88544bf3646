//! The levels of isolation, through the whole program: what a manifest declares is what its tool can touch.

use crate::support::secure::Secure;
use crate::support::server::Server;
use crate::support::{TestEnvironment, ran, write};
use serde_json::json;

const LEVELS: [&str; 4] = ["trusted", "standard", "sandboxed", "restricted"];

pub fn bash(env: &TestEnvironment, name: &str, keys: &str, script: &str) {
    let head = format!("version: 1.0.0\n{keys}");
    let head: Vec<_> = head.lines().map(|line| format!("# kiwi: {line}")).collect();
    env.write(&format!("tools/{name}.sh"), format!("{}\n{script}\n", head.join("\n")));
}

/// A tool of every language, each with a package of others where it can have one. Greets who is named.
pub fn every_kind(env: &TestEnvironment) -> [&'static str; 3] {
    let params = "parameters: {type: object, properties: {who: {type: string}}}";
    bash(env, "bashful", params, "echo \"hello $KIWI_PARAM_WHO\"");
    let script = |id: &str, runtime: &str, file: &str, requires: &str| {
        format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: {runtime}\nmanifest: {{entrypoint: {file}, requires: [{requires}]}}\n"
        )
    };
    env.write("tools/snake/tool.yaml", script("snake", "python_runtime", "main.py", "six"));
    env.write(
        "tools/snake/main.py",
        "import six\ndef execute(params):\n    return 'hello ' + six.ensure_str(params['who'])\n",
    );
    env.write("tools/knot/tool.yaml", script("knot", "node_runtime", "main.js", "left-pad@1.3.0"));
    env.write(
        "tools/knot/main.js",
        "exports.execute = ({ who }) => 'hello' + require('left-pad')(who, who.length + 1);\n",
    );
    ["bashful", "snake", "knot"]
}

#[test]
fn every_kind_of_tool_runs_at_every_level() {
    let env = TestEnvironment::new();
    for tool in every_kind(&env) {
        for level in LEVELS {
            let ran = env.run(&["run", tool, "who=Ada", "--isolation", level]);
            assert_eq!((ran.code, ran.stdout.trim()), (0, "hello Ada"), "{tool} at {level}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_sandbox_opens_what_is_declared_and_nothing_else() {
    let env = TestEnvironment::new();
    let project = env.project();
    std::fs::write(project.join("secret.txt"), "hidden").unwrap();
    std::fs::create_dir_all(project.join("data/in")).unwrap();
    std::fs::write(project.join("data/in/a.csv"), "1,2").unwrap();
    let outside = env.home().join("outside.txt");
    std::fs::write(&outside, "home").unwrap();
    std::fs::write(env.home().join("other.txt"), "other").unwrap();
    let keys = "isolation: sandboxed\npermissions: {filesystem_read: [\"data/**\", \"{path}\"], filesystem_write: [\"out/**\"]}\nparameters: {type: object, properties: {path: {type: string}}, required: [path]}";
    let script = "cat data/in/a.csv; cat \"$KIWI_PARAM_PATH\"; echo done > out/result.txt
        ls; for file in secret.txt ../home/other.txt .ai/tools/look.sh; do if cat \"$file\" 2>/dev/null; then echo \"read $file\"; fi; done
        for file in stray data/in/b.csv /tmp/../etc/x; do if (echo x > \"$file\") 2>/dev/null; then echo \"wrote $file\"; fi; done
        touch \"$HOME/private\" /tmp/private && echo private";
    bash(&env, "look", keys, script);
    let ran = env.run(&["run", "look", &format!("path={}", outside.display())]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, "1,2homedata\nout\nprivate\n", "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(project.join("out/result.txt")).unwrap(), "done\n");
    assert!(!project.join("stray").exists() && !project.join("data/in/b.csv").exists());
    assert!(!env.home().join("private").exists(), "its home is its own");
    // The same tool held loosely does all of it, so the walls are what stopped it.
    bash(&env, "loose", &keys.replace("sandboxed", "standard"), script);
    let ran = env.run(&["run", "loose", &format!("path={}", outside.display())]);
    assert!(ran.stdout.contains("read secret.txt") && ran.stdout.contains("wrote stray"), "{}", ran.stdout);
    // A flag tightens, and a manifest cannot loosen it again.
    let ran = env.run(&["run", "loose", &format!("path={}", outside.display()), "--isolation", "restricted"]);
    assert!(!ran.stdout.contains("read secret.txt"), "{}", ran.stdout);
}

#[test]
fn a_configuration_holds_and_opens_as_a_declaration_does() {
    let env = TestEnvironment::new();
    let server = Server::start(|_| ("200 OK", json!("reached").to_string()));
    for name in ["shown", "open", "hidden"] {
        std::fs::create_dir(env.project().join(name)).unwrap();
        std::fs::write(env.project().join(name).join("word"), format!("{name}\n")).unwrap();
    }
    let script = format!(
        "for name in shown open hidden; do cat $name/word 2> /dev/null || echo no $name; done
        for name in shown open hidden; do (echo new > $name/word) 2> /dev/null || echo kept $name; done
        python3 -c 'import urllib.request as r; print(r.urlopen(\"{}\", timeout=5).read().decode())' 2> /dev/null || echo alone",
        server.url("/x")
    );
    let host = format!("127.0.0.1:{}", server.port);
    let mounts = "mounts: [shown, {path: \"{where}\", mode: rw}]";
    let tool = |name: &str, keys: String| {
        let parameters = "parameters: {type: object, properties: {where: {type: string, default: open}}}";
        bash(&env, name, &format!("{keys}\n{parameters}"), &script);
        let ran = env.run(&["run", name]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        ran.stdout
    };
    let opened = "shown\nopen\nno hidden\nkept shown\nkept hidden\n";
    let said = tool("held", format!("config: {{isolation: sandboxed, {mounts}, network: [\"{host}\"]}}"));
    assert_eq!(said, format!("{opened}\"reached\"\n"));
    assert_eq!(std::fs::read_to_string(env.project().join("open/word")).unwrap(), "new\n");
    std::fs::write(env.project().join("open/word"), "open\n").unwrap();
    // The tighter of the two counts, and no network is none whatever else is declared.
    let keys =
        format!("isolation: standard\nconfig: {{isolation: restricted, {mounts}, network: [\"{host}\"]}}");
    assert_eq!(tool("tighter", keys), format!("{opened}alone\n"));
    std::fs::write(env.project().join("open/word"), "open\n").unwrap();
    let keys = format!(
        "permissions: {{network_hosts: [\"{host}\"]}}\nconfig: {{isolation: sandboxed, {mounts}, network: none}}"
    );
    assert_eq!(tool("alone", keys), format!("{opened}alone\n"));
    assert_eq!(server.asked().len(), 1);
    // What cannot be read is no reason to hold it loosely.
    for (name, config, part) in [
        ("typo", "{isolation: sandbox}", "no level of isolation"),
        ("limit", "{limits: {memmory: 5}}", "memmory"),
        ("place", "{mounts: [{path: shown, mode: x}]}", "mounts"),
        ("hosts", "{network: any}", "network"),
    ] {
        bash(&env, name, &format!("config: {config}"), "echo ran");
        let ran = env.run(&["run", name]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{name}: {}", ran.stderr);
    }
}

#[test]
fn the_only_way_out_is_to_declared_hosts() {
    let server = Server::start(|_| ("200 OK", json!("reached").to_string()));
    let env = TestEnvironment::new();
    let fetch = format!(
        "import os, urllib.request\ndef execute(params):\n    try:\n        return urllib.request.urlopen('{}', timeout=5).read().decode()\n    except Exception as error:\n        return 'no way: ' + str(error)[:60]\n",
        server.url("/x")
    );
    let tool = |id: &str, isolation: &str, hosts: &str| {
        let manifest = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: python_runtime\nentrypoint: main.py\nisolation: {isolation}\npermissions: {{network_hosts: [{hosts}]}}\n"
        );
        env.write(&format!("tools/{id}/tool.yaml"), manifest);
        env.write(&format!("tools/{id}/main.py"), &fetch);
        env.run(&["run", id]).stdout
    };
    assert_eq!(tool("free", "standard", "").trim(), "\"reached\"");
    let declared = format!("\"127.0.0.1:{}\"", server.port);
    assert_eq!(tool("declared", "sandboxed", &declared).trim(), "\"reached\"");
    for (id, isolation, hosts) in [
        ("undeclared", "sandboxed", ""),
        ("another", "sandboxed", "example.org"),
        ("restricted", "restricted", declared.as_str()),
    ] {
        let said = tool(id, isolation, hosts);
        assert!(said.starts_with("no way"), "{id}: {said}");
    }
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn an_authenticated_request_goes_where_its_manifest_says_at_every_level_with_a_network() {
    let env = TestEnvironment::new();
    let server = Secure::start(&env.tmp(), "t0ken-of-the-service");
    let api = |id: &str, host: &str, keys: &str| {
        let manifest = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: api\nparameters: {{type: object, properties: {{city: {{type: string}}, host: {{type: string}}}}}}\n{keys}config:\n  url: \"https://{host}:{}/weather/{{city}}\"\n  auth: {{type: bearer, secret: service}}\n  response: /data/asked\n",
            server.port
        );
        env.write(&format!("tools/{id}.yaml"), manifest);
    };
    let run = |id: &str, level: &str| {
        let words = ["run", id, "city=Oslo", "host=127.0.0.1", "--isolation", level, "--json"];
        let out = env.command(&words).env("SSL_CERT_FILE", &server.certificate).output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let kind = said["error"]["kind"].as_str().unwrap_or_default().to_owned();
        (out.status.code().unwrap(), said["result"].as_str().unwrap_or_default().to_owned(), kind)
    };
    api("weather", "127.0.0.1", "");
    let (code, _, kind) = run("weather", "standard");
    assert_eq!((code, kind.as_str()), (3, "missing_requirement"), "nothing is sent without the secret");
    assert_eq!(env.run_with_input(&["auth", "set", "service"], "t0ken-of-the-service").code, 0);
    for level in ["trusted", "standard", "sandboxed"] {
        assert_eq!(run("weather", level), (0, "/weather/Oslo".into(), String::new()), "{level}");
    }
    assert_eq!(run("weather", "restricted"), (3, String::new(), "denied".into()));
    // A host that a caller chooses must be declared; no level with walls takes a caller's word for it.
    api("anywhere", "{host}", "");
    assert_eq!(run("anywhere", "sandboxed").2, "invalid_manifest", "a secret for whatever host is named");
    api("listed", "{host}", "permissions: {network_hosts: [\"127.0.0.1\"]}\n");
    let text = std::fs::read_to_string(env.project().join(".ai/tools/listed.yaml")).unwrap();
    env.write("tools/listed.yaml", text.replace("  auth: {type: bearer, secret: service}\n", ""));
    env.write(
        "tools/unlisted.yaml",
        text.replace("tool_id: listed", "tool_id: unlisted")
            .replace("permissions: {network_hosts: [\"127.0.0.1\"]}\n", "")
            .replace("  auth: {type: bearer, secret: service}\n", ""),
    );
    assert_eq!(run("listed", "sandboxed").2, "tool_failed", "it arrived, and was asked who it is");
    assert_eq!(run("unlisted", "sandboxed").2, "denied");
}

/// Where the system gives nobody namespaces of their own, nobody builds walls, and nothing runs without them.
#[test]
fn without_namespaces_nothing_runs_behind_walls() {
    let env = TestEnvironment::new();
    bash(&env, "who", "isolation: restricted", "echo ran");
    let none = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" run who --json";
    let words = ["--user", "--map-root-user", "sh", "-c", none, env!("CARGO_BIN_EXE_kiwi")];
    let refused = ran(&env.start("unshare", &words).output().unwrap());
    let said: serde_json::Value = serde_json::from_str(&refused.stdout).expect(&refused.stderr);
    assert_eq!((refused.code, &said["error"]["kind"]), (3, &json!("sandbox_unavailable")), "{said}");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("bwrap") && message.contains("without it"), "{message}");
}

/// A `bwrap` that counts how often it is started, and refuses where it is told to.
#[test]
fn that_walls_can_be_built_is_found_out_once() {
    let env = TestEnvironment::new();
    bash(&env, "who", "isolation: restricted", "tr '\\0' ' ' < /proc/1/cmdline");
    let (folder, log, no) = (env.tmp().join("bin"), env.tmp().join("log"), env.tmp().join("no"));
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|file| file.is_file());
    let real = real.expect("`bwrap` is on the path");
    let script = |more: &str| {
        let text = format!(
            "#!/bin/sh\necho started >> {}\nif [ -e {} ]; then echo bwrap: not today >&2; exit 1; fi\nexec {} \"$@\"\n{more}",
            log.display(),
            no.display(),
            real.display()
        );
        let file = write(&folder.join("bwrap"), text);
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let path = format!("{}:{path}", folder.display());
    let starts = |words: &[&str]| {
        let _ = std::fs::remove_file(&log);
        let ran = ran(&env.command(words).env("PATH", &path).output().unwrap());
        (ran, std::fs::read_to_string(&log).unwrap_or_default().lines().count())
    };
    let expect = |role: &str, count: usize| {
        let (ran, starts) = starts(&["run", "who"]);
        assert!(ran.stdout.trim_end().ends_with(role), "{} {}", ran.stdout, ran.stderr);
        assert_eq!(starts, count, "{role}");
    };
    script("");
    expect("__launch inside", 2);
    expect("__launch inside", 1);
    // Another program is another question.
    script("# newer\n");
    expect("__launch inside", 2);
    expect("__launch inside", 1);
    // What was remembered is no longer so: that is a refusal, never a tool without walls, and the next call finds out anew.
    std::fs::write(&no, "").unwrap();
    let (refused, count) = starts(&["run", "who", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!(
        (refused.code, &said["error"]["kind"], count),
        (3, &json!("sandbox_unavailable"), 1),
        "{said}"
    );
    assert!(said["error"]["message"].as_str().unwrap().contains("not today"), "{said}");
    expect("__launch", 1);
    std::fs::remove_file(&no).unwrap();
    expect("__launch inside", 2);
    // Who asks what works here wants to know it now.
    let (told, count) = starts(&["doctor"]);
    assert!(told.stdout.contains("bubblewrap") && count > 0, "{} {count}", told.stdout);
}
