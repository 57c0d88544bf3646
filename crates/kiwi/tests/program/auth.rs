//! Secrets: stored unseen, handed to tools that declare them, and nowhere else to be found.

use crate::support::TestEnvironment;
use crate::support::server::Server;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const SECRET: &str = "planted-S3CRET/value+1";

/// Every file below a folder whose bytes hold a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(text.len()).any(|it| it == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn tool(env: &TestEnvironment, name: &str, requires: &str, script: &str) {
    let text = format!("# kiwi: version: 1.0.0\n# kiwi: {requires}\n{script}\n");
    env.write(&format!("tools/{name}.sh"), text);
}

#[test]
fn a_declared_secret_reaches_the_tool_and_nothing_else() {
    let env = TestEnvironment::new();
    // The tool proves that it has it by what nobody could guess: its length and its last letter, and leaks it besides.
    let leak = "echo \"${#API_TOKEN} $API_TOKEN\"; echo \"err $API_TOKEN\" >&2; \
                printf 'half:%s' \"${API_TOKEN%??}\"; sleep 0.05; printf '%s\\n' \"${API_TOKEN#${API_TOKEN%??}}\"; exit 3";
    tool(&env, "leaky", "requires_secret: [api_token]", leak);
    let missing = env.run(&["run", "leaky"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (3, ""));
    assert!(missing.stderr.contains("no secret named `api_token` is stored"), "{}", missing.stderr);
    assert!(missing.stderr.contains("kiwi auth set api_token"), "{}", missing.stderr);

    let set = env.run_with_input(&["auth", "set", "api_token"], &format!("{SECRET}\n"));
    assert_eq!((set.code, set.stdout.as_str()), (0, ""), "{}", set.stderr);
    let length = SECRET.len();
    let ran = env.run(&["run", "leaky"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stdout, format!("{length} [secret:api_token]\nhalf:[secret:api_token]\n"));
    assert!(ran.stderr.contains("err [secret:api_token]"), "{}", ran.stderr);
    let (_, out) = env.json(&["run", "leaky"]);
    assert!(!out.to_string().contains("S3CRET"), "{out:#}");
    assert!(out["error"]["message"].as_str().unwrap().contains("[secret:api_token]"), "{out:#}");
    // A tool that does not declare it does not have it, and a dry run shows nothing.
    tool(&env, "nosy", "tags: [x]", "env");
    assert!(!env.run(&["run", "nosy"]).stdout.contains("S3CRET"));
    assert!(!env.run(&["run", "leaky", "--dry-run"]).stdout.contains("S3CRET"));
    let (_, out) = env.json(&["auth", "list"]);
    assert_eq!(
        (&out["credentials"][0]["name"], &out["credentials"][0]["kind"]),
        (&json!("api_token"), &json!("secret"))
    );
    assert!(!env.run(&["auth", "list"]).stdout.contains("S3CRET"));
    // Everything that was written anywhere: records, caches, the store itself.
    assert_eq!(holding(env.project().parent().unwrap(), "S3CRET"), Vec::<String>::new());
    assert!(!env.audit().is_empty());

    assert_eq!(env.run(&["auth", "remove", "api_token"]).code, 0);
    assert_eq!(env.run(&["run", "leaky"]).code, 3);
    assert_eq!(env.run(&["auth", "remove", "api_token"]).code, 2);
    assert_eq!(env.run_with_input(&["auth", "set", "bad name"], "x").code, 2);
    assert_eq!(env.run_with_input(&["auth", "set", "empty"], "\n").code, 2);
}

#[test]
fn tokens_are_got_renewed_and_found_by_scope() {
    let given = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        if asked.line.starts_with("POST /device ") {
            let code = json!({"device_code": "D", "user_code": "WDJB", "verification_uri": "http://v.test", "interval": 1});
            return ("200 OK", code.to_string());
        }
        let number = given.fetch_add(1, Ordering::SeqCst);
        if asked.body.contains("device_code") && number == 0 {
            return ("400 Bad Request", json!({"error": "authorization_pending"}).to_string());
        }
        if asked.body.contains("refresh-gone") {
            return ("400 Bad Request", json!({"error": "invalid_grant"}).to_string());
        }
        let refresh = if asked.body.contains("client_credentials") {
            Value::Null
        } else {
            json!(format!("refresh-{number}"))
        };
        let token = json!({"access_token": format!("access-token-{number}"), "token_type": "Bearer", "expires_in": 1, "refresh_token": refresh});
        ("200 OK", token.to_string())
    });
    let env = TestEnvironment::new();
    // Lengths tell tokens apart without showing them: access-token-9 and access-token-10.
    tool(&env, "who", "required_scope: repo", "printf '%s' \"$HUB\" | sha256sum | cut -c1-8");
    let ran = env.run(&["run", "who"]);
    assert!(ran.code == 3 && ran.stderr.contains("kiwi auth login NAME --scope repo"), "{}", ran.stderr);

    let (token_url, device_url) = (server.url("/token"), server.url("/device"));
    let login = [
        "auth",
        "login",
        "hub",
        "--token-url",
        &token_url,
        "--device-url",
        &device_url,
        "--client-id",
        "kiwi",
        "--scope",
        "repo",
    ];
    let ran = env.run(&login);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("open http://v.test and enter WDJB"), "{}", ran.stderr);
    let first = env.run(&["run", "who"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    // It lives for a second: every call finds it old and renews it with the newest refresh token.
    let second = env.run(&["run", "who"]);
    assert_ne!(first.stdout, second.stdout);
    let bodies: Vec<String> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert!(
        bodies.iter().any(|body| body.contains("grant_type=refresh_token&refresh_token=refresh-1")),
        "{bodies:?}"
    );
    let (_, out) = env.json(&["auth", "list"]);
    assert_eq!(out["credentials"][0]["scopes"], json!(["repo"]), "{out:#}");
    assert!(!out.to_string().contains("access-token"), "{out:#}");

    // A client of its own, whose secret is piped in.
    let words = [
        "auth",
        "login",
        "svc",
        "--token-url",
        &token_url,
        "--client-id",
        "me",
        "--client-secret",
        "--scope",
        "run",
    ];
    assert_eq!(env.run_with_input(&words, "CLIENT-S3CRET").code, 0);
    assert!(server.asked().last().unwrap().body.contains("client_secret=CLIENT-S3CRET"));
    assert_eq!(holding(env.project().parent().unwrap(), "CLIENT-S3CRET"), Vec::<String>::new());
    tool(&env, "svc", "requires_secret: [svc]", "test -n \"$SVC\"");
    assert_eq!(env.run(&["run", "svc"]).code, 0);

    // A server that is gone is said before anything starts.
    assert_eq!(env.run(&["auth", "login", "nobody"]).code, 2);
    let dead = [
        "auth",
        "login",
        "dead",
        "--token-url",
        "http://127.0.0.1:9/t",
        "--client-id",
        "x",
        "--client-secret",
    ];
    let ran = env.run_with_input(&dead, "y");
    assert!(ran.code != 0 && !ran.stderr.contains("\"y\""), "{}", ran.stderr);
}

#[test]
fn an_api_gets_its_credentials_by_name() {
    let server = Server::start(|asked| ("200 OK", json!({"echo": asked.headers}).to_string()));
    let env = TestEnvironment::new();
    let api = |name: &str, auth: &str| {
        let url = server.url("/v1");
        let text = format!(
            "tool_id: {name}\nversion: \"1.0.0\"\ntool_type: api\nconfig: {{url: \"{url}\", auth: {auth}}}\n"
        );
        env.write(&format!("tools/{name}.yaml"), text);
    };
    api("bearing", "{type: bearer, secret: hub}");
    api("basic", "{type: basic, username: me, secret: hub}");
    api("keyed", "{type: api_key, in: query, name: key, secret: hub}");
    let ran = env.run(&["run", "bearing"]);
    assert!(ran.code == 3 && ran.stderr.contains("kiwi auth set hub"), "{}", ran.stderr);
    assert!(server.asked().is_empty(), "nothing was sent");
    assert_eq!(env.run_with_input(&["auth", "set", "hub"], SECRET).code, 0);
    for (name, part) in
        [("bearing", "Bearer planted-S3CRET/value+1"), ("basic", "Basic "), ("keyed", "?key=planted-S3CRET")]
    {
        let (code, out) = env.json(&["run", name]);
        assert_eq!(code, 0, "{out:#}");
        let asked = server.asked().pop().unwrap();
        let all = format!("{}\n{}", asked.line, asked.headers.join("\n"));
        assert!(all.contains(part), "{name}: {all}");
        // The service repeats what it was told; nobody here sees it.
        assert!(!out.to_string().contains("S3CRET"), "{name}: {out:#}");
    }
    assert_eq!(holding(env.project().parent().unwrap(), "S3CRET"), Vec::<String>::new());
    api("inline", "{type: bearer, token: oops}");
    let (code, out) = env.json(&["run", "inline"]);
    assert!(code != 0 && out["error"]["kind"] != "tool_failed", "{out:#}");
}
