//! What real plans need, each kind once: listed it is allowed, left out it is not.

use kiwi_space::ProfileLayer;
use serde_json::json;

use crate::support::kernel::{kernel, request};
use crate::support::server::Server;
use crate::support::{TestEnvironment, write};
use crate::{bash, granted, list, refused, run};

#[test]
fn a_variable() {
    let env = TestEnvironment::new();
    bash(&env, "needs_env", "requires_env: [REGION]", "echo \"\\\"$REGION\\\"\"");
    let with = |permissions: &str| {
        let words = ["run", "needs_env", "--json", "--permissions", &list(&env, permissions)];
        let output = env.command(&words).env("REGION", "north").output().unwrap();
        (output.status.code().unwrap(), serde_json::from_slice(&output.stdout).unwrap())
    };
    let why = refused(with("tools: [\"**\"]\nenv: [OTHER]\n"));
    assert!(why.contains("the variable `REGION`"), "{why}");
    assert_eq!(granted(with("tools: [\"**\"]\nenv: [\"REG*\"]\n")), "north");
}

#[test]
fn a_secret_and_a_host() {
    let env = TestEnvironment::new();
    let server = Server::start(|_| ("200 OK", json!({"seen": true}).to_string()));
    env.write(
        "tools/ask.yaml",
        format!(
            "tool_id: ask\nversion: \"1.0.0\"\ntool_type: api\nconfig:\n  url: \"{}\"\n  auth: {{type: api_key, in: header, name: x-key, secret: service}}\n",
            server.url("/x")
        ),
    );
    assert_eq!(env.run_with_input(&["auth", "set", "service"], "value of it").code, 0);
    let host = format!("127.0.0.1:{}", server.port);
    for (permissions, said) in [
        (format!("tools: [\"**\"]\nnetwork_hosts: [\"{host}\"]\n"), "the secret `service`"),
        ("tools: [\"**\"]\nsecrets: [service]\n".to_owned(), host.as_str()),
        (
            "tools: [\"**\"]\nsecrets: [service]\nnetwork_hosts: [\"127.0.0.1:1\", \"*.example.org\"]\n"
                .to_owned(),
            host.as_str(),
        ),
        (
            format!(
                "tools: [\"**\"]\nsecrets: [service]\nnetwork_hosts: [\"*\"]\ndeny: [\"network_hosts:{host}\"]\n"
            ),
            host.as_str(),
        ),
    ] {
        let why = refused(run(&env, &permissions, &["ask"]));
        assert!(why.contains(said), "{why}");
    }
    assert!(server.asked().is_empty());
    let permissions = format!("tools: [\"**\"]\nsecrets: [service]\nnetwork_hosts: [\"{host}\"]\n");
    assert_eq!(granted(run(&env, &permissions, &["ask"])), json!({"seen": true}));
}

#[test]
fn what_a_configuration_opens() {
    let env = TestEnvironment::new();
    write(&env.project().join("data/file"), "x");
    let config = "config: {mounts: [data, {path: out/, mode: rw}], network: [example.org]}";
    bash(&env, "opens", config, "echo '\"ran\"'");
    let list = |read: &str, write: &str, host: &str| {
        let lists =
            format!("filesystem_read: [{read}]\nfilesystem_write: [{write}]\nnetwork_hosts: [{host}]\n");
        run(&env, &format!("tools: [\"**\"]\n{lists}"), &["opens"])
    };
    for (outcome, said) in [
        (list("", "'out/**'", "example.org"), "/data`"),
        (list("'data/**'", "", "example.org"), "/out`"),
        (list("'data/**'", "'out/**'", ""), "example.org"),
    ] {
        let why = refused(outcome);
        assert!(why.contains(said), "{why}");
    }
    assert_eq!(granted(list("'data/**'", "'out/**'", "example.org")), "ran");
}

#[test]
fn the_folders_of_a_container() {
    let env = TestEnvironment::new();
    write(&env.project().join("data/file"), "x");
    env.write(
        "tools/boxed.yaml",
        "tool_id: boxed\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  image: localhost/none:1\n  command: [cat, /in/file]\n  volumes: [{host: \"{project_dir}/data\", container: /in, mode: ro}, {host: \"{project_dir}/out\", container: /out, mode: rw}]\n",
    );
    let answer = |permissions: &str| {
        let permissions = kiwi_model::Permissions::read(permissions.as_bytes()).unwrap();
        let mut asked = request("boxed", json!({}));
        asked.permissions.push(Ok(ProfileLayer { source: "the list".into(), permissions }));
        let explained = kernel(&env).explain(&asked).unwrap();
        let judge = explained.judges.into_iter().find(|judge| judge.judge == "permission").unwrap();
        judge.sentences.join("; ")
    };
    let both = "tools: [\"**\"]\nfilesystem_read: [\"data/**\"]\nfilesystem_write: [\"out/**\"]\n";
    assert_eq!(answer(both), "");
    let reading = answer("tools: [\"**\"]\nfilesystem_write: [\"out/**\"]\n");
    assert!(reading.contains("reading `") && reading.contains("/data`"), "{reading}");
    let writing = answer("tools: [\"**\"]\nfilesystem_read: [\"**\"]\n");
    assert!(writing.contains("writing `") && writing.contains("/out`"), "{writing}");
    let file = answer("tools: [\"**\"]\nfilesystem_read: [\"data/file\"]\nfilesystem_write: [\"out/**\"]\n");
    assert!(file.contains("reading `"), "a folder is more than one of its files: {file}");
}

#[test]
fn what_a_manifest_declares() {
    let env = TestEnvironment::new();
    write(&env.project().join("data/a.csv"), "1");
    let keys = "parameters: {type: object, properties: {path: {type: string}}, required: [path]}\npermissions: {filesystem_read: [\"{path}\", \"data/**\"], tools: [\"db.*\"], mcp_actions: {mail: [send]}}";
    bash(&env, "declares", keys, "echo 1");
    let all = "tools: [declares, \"db.*\"]\nfilesystem_read: [\"data/**\", \"in/*\"]\nmcp_actions: {mail: [\"*\"]}\n";
    granted(run(&env, all, &["declares", "path=in/x"]));
    // What a caller gives is a name: its stars are no stars.
    granted(run(&env, all, &["declares", "path=in/*"]));
    refused(run(&env, all, &["declares", "path=in/../secret"]));
    for left_out in ["\"data/**\"", "\"db.*\"", "mcp_actions: {mail: [\"*\"]}"] {
        let less = all.replace(left_out, if left_out.starts_with('"') { "none" } else { "" });
        refused(run(&env, &less, &["declares", "path=in/x"]));
    }
}
