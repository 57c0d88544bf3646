//! What clients of the protocol see over standard streams, in the newest revision and in older ones.

use crate::support::TestEnvironment;
use crate::support::mcp::{Pipe, meta, trusted};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const DIRECTIVE: &str = "<directive name=\"deploy\" version=\"1.0.0\"><metadata><description>Deploy a branch</description>\
    <category>ops</category></metadata><inputs><input name=\"branch\" type=\"string\" required=\"true\">Which</input></inputs>\
    <process><step name=\"go\"><action>Deploy {branch} now.</action></step></process></directive>";

/// A trusted project with a few items.
fn project() -> TestEnvironment {
    let env = TestEnvironment::new();
    env.write(
        "tools/say/hello.sh",
        "# kiwi: version: \"1.0.0\"\n# kiwi: description: Says hello\n# kiwi: tags: [greeting]\necho hello\n",
    );
    env.write(
        "tools/say/long.sh",
        "# kiwi: version: \"1.0.0\"\nfor i in $(seq 1 20000); do echo \"line $i\"; done\n",
    );
    env.write("tools/say/fails.sh", "# kiwi: version: \"1.0.0\"\necho before\necho broken >&2\nexit 3\n");
    env.write("directives/ops/deploy.md", DIRECTIVE);
    env.write("knowledge/art/colours.md", "---\nid: colours\ntitle: About colours\n---\nRed is warm.\n");
    env.write("knowledge/art/broken.md", "---\nid: broken\n");
    trusted(&env);
    env
}

fn run(id: &str) -> Value {
    json!({"item_type": "tool", "item_id": id})
}

#[track_caller]
fn fault<'a>(result: &'a Value, kind: &str) -> &'a Value {
    assert_eq!(result["isError"], true, "{result}");
    let told = &result["structuredContent"];
    assert_eq!(told["kind"], kind, "{told}");
    assert!(told["message"].as_str().is_some_and(|it| !it.is_empty()), "{told}");
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains(told["message"].as_str().unwrap()),
        "{result}"
    );
    told
}

fn each_revision(env: &TestEnvironment, words: &[&str], check: impl Fn(&mut Pipe)) {
    for mut pipe in [Pipe::old(env, words, json!({})), Pipe::modern(env, words, json!({}))] {
        check(&mut pipe);
        assert_eq!(pipe.leave(), Some(0));
    }
}

#[test]
fn four_tools_stand_in_front_of_everything() {
    let env = project();
    each_revision(&env, &[], |pipe| {
        let listed = pipe.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["search", "load", "execute", "help"]);
        let described = tools[0]["description"].as_str().unwrap();
        assert!(
            described.contains("hello")
                && described.contains("1 directives")
                && described.contains("1 knowledge")
        );

        let found = pipe.call("search", json!({"query": "greeting"}));
        let hits = found["structuredContent"]["results"].as_array().unwrap();
        for (field, value) in [
            ("id", "hello"),
            ("type", "tool"),
            ("version", "1.0.0"),
            ("source", "project"),
            ("description", "Says hello"),
            ("parameters", "()"),
        ] {
            assert_eq!(hits[0][field], value);
        }
        assert!(hits[0]["score"].as_f64().unwrap() > 0.0);
        assert!(hits[0]["why"].as_str().unwrap().contains("`greeting` in its tags"), "{hits:?}");
        for (query, expected) in [
            (json!({"query": "deploy", "item_type": "directive"}), "deploy"),
            (json!({"query": "colours", "item_type": "knowledge"}), "colours"),
            (json!({"query": "hello", "item_type": "script", "source": "project"}), "hello"),
            (json!({"query": "make a new file", "source": "system", "limit": 2}), "filesystem.create"),
            (json!({"query": "say something kind", "tags": ["greeting"]}), "hello"),
        ] {
            let found = pipe.call("search", query);
            let ids: Vec<&str> = found["structuredContent"]["results"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hit| hit["id"].as_str().unwrap())
                .collect();
            assert_eq!(ids.first(), Some(&expected), "{ids:?}");
            assert!(ids.iter().all(|id| *id != "broken"));
        }
        fault(&pipe.call("search", json!({"query": "x", "source": "registry"})), "missing_requirement");
        fault(&pipe.call("search", json!({"query": "x", "item_type": "zebra"})), "invalid_params");
        fault(&pipe.call("search", json!({"qery": "x"})), "invalid_params");

        let text = pipe.call("load", json!({"item_type": "knowledge", "item_id": "colours"}));
        assert!(text["structuredContent"]["text"].as_str().unwrap().contains("Red is warm."));
        let tool = pipe.call("load", json!({"item_type": "tool", "item_id": "filesystem.read"}));
        assert!(tool["structuredContent"]["parameters"]["properties"]["path"].is_object());
        fault(&pipe.call("load", json!({"item_type": "knowledge", "item_id": "broken"})), "invalid_manifest");
        fault(&pipe.call("load", json!({"item_type": "tool", "item_id": "nope"})), "not_found");

        let ran = pipe.call("execute", run("hello"));
        assert_eq!(ran["structuredContent"]["status"], "success");
        assert_eq!(ran["structuredContent"]["result"], "hello\n");
        assert_eq!(ran["content"][0]["text"], "hello\n");
        let would = pipe.call("execute", json!({"item_type": "tool", "item_id": "hello", "dry_run": true}));
        assert_eq!(would["structuredContent"]["result"]["dry_run"], true);
        let failed = pipe.call("execute", run("fails"));
        let told = fault(&failed, "tool_failed");
        assert_eq!((&told["result"], &told["stderr"]), (&json!("before\n"), &json!("broken\n")));
        fault(
            &pipe.call("execute", json!({"item_type": "tool", "item_id": "hello", "version": "9.0.0"})),
            "version_conflict",
        );
        let locked = json!({"item_type": "tool", "item_id": "hello", "lock": "strict"});
        fault(&pipe.call("execute", locked), "lockfile_missing");
        let publish = json!({"item_type": "tool", "item_id": "hello", "action": "publish"});
        assert!(
            fault(&pipe.call("execute", publish), "missing_requirement")["message"]
                .to_string()
                .contains("registry")
        );
        let rollback = json!({"item_type": "tool", "item_id": "hello", "action": "rollback"});
        assert!(
            fault(&pipe.call("execute", rollback), "missing_requirement")["message"]
                .to_string()
                .contains("checkpoint")
        );

        let guidance = pipe.call("help", json!({"action": "guidance", "topic": "tools"}));
        assert_eq!(guidance["isError"], false, "{guidance}");
        let stuck = pipe.call("help", json!({"action": "stuck", "reason": "nothing works", "attempts": 1}));
        assert_eq!(stuck["structuredContent"]["status"], "stuck_acknowledged");
        fault(&pipe.call("help", json!({"action": "dance"})), "invalid_params");
        for (method, params, code) in
            [("tools/call", json!({"name": "nope"}), -32602), ("no/such/method", json!({}), -32601)]
        {
            assert_eq!(pipe.request(method, params)["error"]["code"], code, "{method}");
        }
    });
    let recorded = env.audit();
    assert!(recorded.iter().any(|line| line["caller"] == "mcp:tester" && line["tool"] == "hello"));
}

#[test]
fn long_output_is_paged() {
    let env = project();
    each_revision(&env, &[], |pipe| {
        let ran = pipe.call("execute", run("long"))["structuredContent"].take();
        let mut text = ran["result"].as_str().unwrap().to_owned();
        assert!(text.len() < 30_000, "{}", text.len());
        let mut next = ran["output"]["next"].as_str().map(str::to_owned);
        let handle = ran["output"]["handle"].as_str().unwrap().to_owned();
        while let Some(id) = next {
            let page = pipe.call("load", json!({"item_type": "output", "item_id": id}));
            let page = &page["structuredContent"];
            text.push_str(page["text"].as_str().unwrap());
            next = page["next"].as_str().map(str::to_owned);
        }
        let whole: Vec<String> = (1..=20000).map(|number| format!("line {number}")).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), whole);
        let first = pipe.call("load", json!({"item_type": "output", "item_id": handle}));
        assert_eq!(first["structuredContent"]["offset"], 0);
        fault(&pipe.call("load", json!({"item_type": "output", "item_id": "nope"})), "not_found");
    });
}

#[test]
fn nobody_works_in_a_project_that_nobody_trusts() {
    let env = TestEnvironment::new();
    env.write("tools/hello.sh", "# kiwi: version: \"1.0.0\"\necho hello\n");
    each_revision(&env, &[], |pipe| {
        fault(&pipe.call("execute", run("hello")), "denied");
    });
}

#[test]
fn cancelling_ends_the_tool_and_what_it_started() {
    let env = project();
    let marks = env.project().join("marks");
    std::fs::create_dir(&marks).unwrap();
    let script = "# kiwi: version: \"1.0.0\"\n# kiwi: permissions: {filesystem_write: [\"marks/**\"]}\n\
        (sleep 300; echo child > marks/child) &\necho started\ntouch marks/started\nsleep 300\necho end > marks/end\n";
    env.write("tools/say/sleeps.sh", script);
    for mut pipe in [Pipe::old(&env, &[], json!({})), Pipe::modern(&env, &[], json!({}))] {
        let _ = std::fs::remove_file(marks.join("started"));
        let id = pipe.ask("tools/call", json!({"name": "execute", "arguments": run("sleeps")}));
        let begun = Instant::now();
        while !marks.join("started").exists() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let params = json!({"requestId": id, "reason": "enough"});
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        let begun = Instant::now();
        while crate::support::processes(&env.project().display().to_string())
            .iter()
            .any(|it| it.contains("sleeps"))
        {
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        // The connection goes on.
        assert_eq!(pipe.call("execute", run("hello"))["structuredContent"]["result"], "hello\n");
        assert_eq!(pipe.leave(), Some(0));
    }
    assert!(!marks.join("end").exists() && !marks.join("child").exists());
}

fn note(name: &str) -> Value {
    let parameters = json!({"content": "# A note\n", "category": "notes"});
    json!({"item_type": "knowledge", "item_id": name, "action": "create", "parameters": parameters})
}

#[test]
fn an_old_client_is_asked_for_approval() {
    let env = project();
    let mut pipe = Pipe::old(&env, &[], json!({"elicitation": {}}));
    for (name, answer, kind) in [
        ("yes", json!({"action": "accept", "content": {"decision": "approve"}}), None),
        (
            "no",
            json!({"action": "accept", "content": {"decision": "reject", "reason": "not now"}}),
            Some("denied"),
        ),
        ("declined", json!({"action": "decline"}), Some("denied")),
        ("dismissed", json!({"action": "cancel"}), Some("approval_required")),
        ("odd", json!({"action": "accept", "content": {}}), Some("approval_required")),
    ] {
        let id = pipe.ask("tools/call", json!({"name": "execute", "arguments": note(name)}));
        let asked = pipe.hear();
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(asked["params"]["message"].as_str().unwrap().contains("kiwi.create"), "{asked}");
        assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["decision"]));
        pipe.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        let answer = pipe.answer(id);
        let path = env.project().join(format!(".ai/knowledge/notes/{name}.md"));
        match kind {
            None => assert_eq!(answer["result"]["structuredContent"]["status"], "success", "{answer}"),
            Some(kind) => drop(fault(&answer["result"], kind)),
        }
        assert_eq!(path.exists(), kind.is_none());
    }
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn a_client_that_cannot_ask_gets_the_name_of_the_question() {
    let env = project();
    each_revision(&env, &[], |pipe| {
        let _ = std::fs::remove_file(env.project().join(".ai/knowledge/notes/later.md"));
        let told = pipe.call("execute", note("later"));
        let told = fault(&told, "approval_required");
        assert_eq!(told["status"], "pending");
        let id = told["details"]["id"].as_str().unwrap();
        assert_eq!(env.run(&["approve", id]).code, 0);
        let made = pipe.call("execute", note("later"));
        assert_eq!(made["structuredContent"]["status"], "success", "{made}");
    });
}

#[test]
fn a_new_client_comes_back_with_the_answer() {
    let env = project();
    let mut pipe = Pipe::modern(&env, &[], json!({"elicitation": {}}));
    let ask = |pipe: &mut Pipe, name: &str, state: Option<&str>, responses: Value| {
        let mut params = json!({"name": "execute", "arguments": note(name)});
        if let Some(state) = state {
            params["requestState"] = json!(state);
            params["inputResponses"] = responses;
        }
        pipe.request("tools/call", params)
    };
    let asked = ask(&mut pipe, "new", None, json!({}))["result"].take();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    let state = asked["requestState"].as_str().unwrap();
    let yes = json!({ key: {"action": "accept", "content": {"decision": "approve"}} });
    // Neither another name, nor another request, nor an answer to something else goes on with it.
    for (name, state) in [("new", format!("{state}0")), ("new", "0".repeat(64)), ("other", state.to_owned())]
    {
        let refused = ask(&mut pipe, name, Some(&state), yes.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let mut state = state.to_owned();
    for wrong in
        [json!({"other": {"action": "accept"}}), json!({ key: 5 }), json!({ key: {"action": "maybe"} })]
    {
        let again = ask(&mut pipe, "new", Some(&state), wrong)["result"].take();
        assert_eq!(again["resultType"], "input_required", "{again}");
        assert!(again["inputRequests"][key].is_object());
        assert_ne!(again["requestState"], state, "a name is good for once");
        state = again["requestState"].as_str().unwrap().to_owned();
    }
    assert!(!env.project().join(".ai/knowledge/notes/new.md").exists());
    let done = ask(&mut pipe, "new", Some(&state), yes.clone())["result"].take();
    assert_eq!(done["structuredContent"]["status"], "success", "{done}");
    assert!(env.project().join(".ai/knowledge/notes/new.md").exists());
    assert_eq!(ask(&mut pipe, "new", Some(&state), yes)["error"]["code"], -32602, "it is over");
    // A call that waits does not keep anybody here.
    ask(&mut pipe, "waits", None, json!({}));
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn items_are_made_and_changed_through_the_gate() {
    let env = project();
    let mut pipe = Pipe::modern(&env, &[], json!({"elicitation": {}}));
    let approved = |pipe: &mut Pipe, tool: &str, arguments: Value| {
        let asked = pipe.call(tool, arguments.clone());
        let Some(requests) = asked["inputRequests"].as_object() else { return asked };
        let key = requests.keys().next().unwrap();
        let answer = json!({ key: {"action": "accept", "content": {"decision": "approve"}} });
        let params = json!({"name": tool, "arguments": arguments, "requestState": asked["requestState"], "inputResponses": answer});
        pipe.request("tools/call", params)["result"].take()
    };
    let item = |action: &str, more: Value| json!({"item_type": "tool", "item_id": "made", "action": action, "parameters": more});
    let script = "# kiwi: version: \"1.0.0\"\necho one\n";
    let made = approved(
        &mut pipe,
        "execute",
        item("create", json!({"content": script, "extension": "sh", "category": "say"})),
    );
    assert_eq!(made["structuredContent"]["status"], "success", "{made}");
    assert_eq!(pipe.call("execute", run("made"))["structuredContent"]["result"], "one\n");
    std::thread::sleep(Duration::from_millis(1100));
    let valid = approved(&mut pipe, "execute", item("validate", json!({})));
    assert_eq!(valid["structuredContent"]["result"]["valid"], true, "{valid}");
    let signed = approved(&mut pipe, "execute", item("sign", json!({})));
    assert!(
        signed["structuredContent"]["result"]["integrity"].as_str().unwrap().starts_with("sha256:"),
        "{signed}"
    );
    // By the user's key, over the hash that the tool is known by.
    let file = env.project().join(".ai/tools/say/made.sh.kiwi.sig");
    let signature: kiwi_space::ItemSignature = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(signature.is_sound(), "{signed}");
    assert_eq!(signed["structuredContent"]["result"]["key"], signature.key.as_str());
    assert_eq!(signature.integrity, valid["structuredContent"]["result"]["integrity"].as_str().unwrap());
    assert_eq!(pipe.call("execute", run("made"))["structuredContent"]["result"], "one\n");
    let updated =
        approved(&mut pipe, "execute", item("update", json!({"content": script.replace("one", "two")})));
    assert_eq!(updated["structuredContent"]["status"], "success", "{updated}");
    assert_eq!(pipe.call("execute", run("made"))["structuredContent"]["result"], "two\n");
    let deleted = approved(&mut pipe, "execute", item("delete", json!({})));
    assert_eq!(deleted["structuredContent"]["status"], "success", "{deleted}");
    fault(&pipe.call("execute", run("made")), "not_found");
    // Nothing is made outside, by whatever name.
    for name in ["../../escape", "../rules/x", "a/../../../b"] {
        let parameters = json!({"content": "x"});
        let arguments =
            json!({"item_type": "knowledge", "item_id": name, "action": "create", "parameters": parameters});
        let refused = approved(&mut pipe, "execute", arguments);
        assert_eq!(refused["isError"], true, "{refused}");
    }
    assert!(!env.project().join("escape.md").exists() && !env.project().join(".ai/rules").exists());
    let copied = approved(
        &mut pipe,
        "load",
        json!({"item_type": "tool", "item_id": "filesystem.read", "destination": "user"}),
    );
    fault(&copied, "denied");
    let copied = approved(
        &mut pipe,
        "load",
        json!({"item_type": "directive", "item_id": "deploy", "destination": "project"}),
    );
    fault(&copied, "tool_failed");
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn a_long_run_says_how_far_it_is() {
    let env = project();
    env.write(
        "tools/say/steps.sh",
        "# kiwi: version: \"1.0.0\"\nfor i in 1 2 3 4; do echo \"step $i\"; sleep 0.3; done\n",
    );
    for mut pipe in [Pipe::old(&env, &[], json!({})), Pipe::modern(&env, &[], json!({}))] {
        let arguments =
            json!({"name": "execute", "arguments": run("steps"), "_meta": {"progressToken": "p1"}});
        let done = pipe.request("tools/call", arguments);
        assert_eq!(done["result"]["isError"], false, "{done}");
        let told: Vec<&Value> =
            pipe.heard.iter().filter(|it| it["method"] == "notifications/progress").collect();
        assert!(told.len() >= 2, "{:?}", pipe.heard);
        assert!(told.iter().all(|it| it["params"]["progressToken"] == "p1"));
        let far: Vec<f64> = told.iter().map(|it| it["params"]["progress"].as_f64().unwrap()).collect();
        assert!(far.is_sorted_by(|a, b| a < b), "{far:?}");
        assert!(
            told.iter().any(|it| it["params"]["message"].as_str().is_some_and(|it| it.starts_with("step")))
        );
        // Who does not ask for it is not told.
        pipe.heard.clear();
        pipe.call("execute", run("steps"));
        assert!(pipe.heard.is_empty(), "{:?}", pipe.heard);
        assert_eq!(pipe.leave(), Some(0));
    }
}

#[test]
fn the_direct_face_has_everything_under_its_own_name() {
    let env = project();
    each_revision(&env, &["--direct"], |pipe| {
        let listed = pipe.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        assert_eq!(tool("hello").unwrap()["description"], "Says hello");
        assert_eq!(tool("filesystem.write").unwrap()["annotations"]["destructiveHint"], true);
        assert_eq!(tool("filesystem.read").unwrap()["annotations"]["destructiveHint"], false);
        assert_eq!(tool("hello").unwrap().get("annotations"), None, "nobody said what it changes");
        assert!(tool("filesystem.read").unwrap()["inputSchema"]["properties"]["path"].is_object());
        assert!(tool("bash_runtime").is_none() && tool("subprocess").is_none());
        let ran = pipe.call("hello", json!({}));
        assert_eq!((&ran["content"][0]["text"], &ran["isError"]), (&json!("hello\n"), &json!(false)));
        fault_text(&pipe.call("fails", json!({})));
        fault(&pipe.call("filesystem.read", json!({"nope": 1})), "invalid_params");
        assert_eq!(pipe.request("tools/call", json!({"name": "nope"}))["error"]["code"], -32602);

        let prompts = pipe.request("prompts/list", json!({}))["result"]["prompts"].take();
        assert_eq!(prompts[0]["name"], "deploy");
        assert_eq!(prompts[0]["arguments"][0]["name"], "branch");
        let prompt = pipe.request("prompts/get", json!({"name": "deploy", "arguments": {"branch": "main"}}));
        let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("Deploy main now."), "{text}");
        assert_eq!(pipe.request("prompts/get", json!({"name": "deploy"}))["error"]["code"], -32602);
        assert_eq!(pipe.request("prompts/get", json!({"name": "nope"}))["error"]["code"], -32602);

        let resources = pipe.request("resources/list", json!({}))["result"]["resources"].take();
        assert_eq!(resources.as_array().unwrap().len(), 1);
        assert_eq!(
            (&resources[0]["uri"], &resources[0]["mimeType"]),
            (&json!("kiwi://knowledge/colours"), &json!("text/markdown"))
        );
        let read = pipe.request("resources/read", json!({"uri": "kiwi://knowledge/colours"}));
        assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("Red is warm."));
        for uri in ["kiwi://knowledge/nope", "kiwi://knowledge/../../config/kiwi.toml", "file:///etc/passwd"]
        {
            let refused = pipe.request("resources/read", json!({"uri": uri}));
            assert!(
                refused["error"]["code"].as_i64().is_some_and(|code| code == -32602 || code == -32002),
                "{refused}"
            );
        }
    });
}

#[track_caller]
fn fault_text(result: &Value) {
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "before\n");
    assert_eq!(result["structuredContent"]["kind"], "tool_failed");
}

#[test]
fn clients_hear_that_something_is_new() {
    let env = project();
    let mut old = Pipe::old(&env, &["--direct"], json!({}));
    let mut new = Pipe::modern(&env, &["--direct"], json!({}));
    old.request("tools/list", json!({}));
    new.request("tools/list", json!({}));
    let id = new.ask("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let first = new.hear();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    env.write("tools/say/fresh.sh", "# kiwi: version: \"1.0.0\"\necho fresh\n");
    let heard = new.hear();
    assert_eq!(heard["method"], "notifications/tools/list_changed", "{heard}");
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    assert_eq!(old.hear()["method"], "notifications/tools/list_changed");
    assert!(new.is_silent(Duration::from_millis(300)), "only what was asked for is told");
    let listed = old.request("tools/list", json!({}));
    assert!(listed["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "fresh"));
}

#[test]
fn nonsense_ends_nothing() {
    let env = project();
    let mut pipe = Pipe::old(&env, &[], json!({}));
    for text in ["{", "[]", "{\"jsonrpc\":\"2.0\"}", "null", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}"] {
        pipe.send(&json!(text));
    }
    pipe.send(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}));
    assert_eq!(pipe.call("execute", run("hello"))["structuredContent"]["result"], "hello\n");
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn wrong_parameters_are_told_and_do_not_deny_the_method() {
    let env = project();
    for words in [&[][..], &["--direct"]] {
        each_revision(&env, words, |pipe| {
            for (params, problem) in [
                (json!({"name": "hello", "arguments": []}), "`arguments` must be an object"),
                (json!({}), "`name` is missing"),
                (json!({"name": 5}), "`name` must be a string"),
            ] {
                let error = pipe.request("tools/call", params)["error"].take();
                assert_eq!(error["code"], -32602, "{error}");
                assert_eq!(error["message"], format!("the parameters of `tools/call`: {problem}"));
            }
            let unknown = pipe.request("tools/nonsense", json!({}))["error"].take();
            assert_eq!(unknown["code"], -32601, "{unknown}");
            // What is not served at all has no parameters that could be wrong.
            let code = if words.is_empty() { -32601 } else { -32602 };
            assert_eq!(pipe.request("resources/read", json!({}))["error"]["code"], code);
        });
    }
}

#[test]
fn whatever_is_sent_is_answered() {
    let env = project();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let ping = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{}}}"#, meta(json!({})))
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}});
    let lines = [
        hello.to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "{bad json}".to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"a":{deep}}}}}"#),
        ping("1.5"),
        ping("99999999999999999999"),
        ping("null"),
        // Answers that are none, to what nobody asked, are not answered in turn.
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":"x"}}"#.to_owned(),
        r#"{"id":1.5,"result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[]}"#.to_owned(),
        // The last one has no break behind it.
        r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#.to_owned(),
    ];
    let ran = env.run_with_input(&["mcp"], &lines.join("\n"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answers: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut told: Vec<(Value, Value)> =
        answers.iter().map(|it| (it["id"].clone(), it["error"]["code"].clone())).collect();
    told.sort_by_key(|it| format!("{it:?}"));
    let mut expected = vec![
        (json!(1), Value::Null),
        (Value::Null, json!(-32700)),
        (json!(7), json!(-32600)),
        (json!(8), json!(-32602)),
        (Value::Null, json!(-32600)),
        (Value::Null, json!(-32600)),
        (Value::Null, json!(-32600)),
        (json!(9), Value::Null),
    ];
    expected.sort_by_key(|it| format!("{it:?}"));
    assert_eq!(told, expected, "{answers:#?}");
}
