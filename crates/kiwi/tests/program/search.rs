//! Finding items, through the real program.

use crate::support::TestEnvironment;
use crate::support::mcp::{Pipe, trusted};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const WEATHER: &str = "Tells the weather forecast for a city";

fn tool(env: &TestEnvironment, path: &str, description: &str) {
    let text = format!(
        "# kiwi: version: \"1.0.0\"\n# kiwi: description: {description}\n# kiwi: tags: [demo]\necho done\n"
    );
    env.write(&format!("tools/{path}.sh"), text);
}

fn project() -> TestEnvironment {
    let env = TestEnvironment::new();
    tool(&env, "web/get_weather", WEATHER);
    tool(&env, "web/send_email", "Sends a message to somebody's inbox");
    tool(&env, "data/etl/csv_read", "Reads a table of comma separated values");
    tool(&env, "data/resize_image", "Makes a picture smaller or larger");
    env.write(
        "knowledge/ops/deploying.md",
        "---\nid: deploying\ntitle: Deploying\n---\nNever on a Friday.\n",
    );
    env
}

#[track_caller]
fn ids(env: &TestEnvironment, words: &[&str]) -> Vec<String> {
    let (code, found) = env.json(&[&["search"], words].concat());
    assert_eq!(code, 0, "{found}");
    let hits = found["hits"].as_array().unwrap().iter();
    hits.map(|hit| hit["item_id"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn first(env: &TestEnvironment, words: &[&str]) -> String {
    ids(env, words).into_iter().next().unwrap_or_default()
}

#[test]
fn what_is_meant_is_found_and_says_why() {
    let env = project();
    for (query, expected) in [
        ("will it rain in Paris", "get_weather"),
        ("shrink a photo", "resize_image"),
        ("write a mail to my boss", "send_email"),
        ("may I release on friday", "deploying"),
        ("get_weather", "get_weather"),
        ("get_wether", "get_weather"),
        ("csv read", "csv_read"),
        ("csvRead", "csv_read"),
    ] {
        assert_eq!(first(&env, &[query]), expected, "{query}");
    }
    let (_, found) = env.json(&["search", "get_weather", "--explain"]);
    let hit = &found["hits"][0];
    for (field, value) in
        [("item_type", "tool"), ("version", "1.0.0"), ("source", "project"), ("summary", WEATHER)]
    {
        assert_eq!(hit[field], value, "{hit}");
    }
    assert_eq!(hit["score"], 1.0);
    assert!(hit["why"].as_str().unwrap().starts_with("its name"), "{hit}");
    assert!(hit["explain"]["text"].as_f64().unwrap() > 0.0, "{hit}");
    assert!(found["took_us"].as_u64().is_some());
    let plain = env.run(&["search", "weather"]);
    assert!(plain.stdout.starts_with("get_weather project tool\n"), "{}", plain.stdout);
}

#[test]
fn filters_and_tiers_narrow() {
    let env = project();
    env.write_user(
        "tools/get_weather.sh",
        "# kiwi: version: \"2.0.0\"\n# kiwi: description: Weather of the user\necho\n",
    );
    env.write_user(
        "tools/own_weather.sh",
        "# kiwi: version: \"2.0.0\"\n# kiwi: description: Weather of the user\necho\n",
    );
    assert_eq!(ids(&env, &["deploy", "--type", "knowledge"]), ["deploying"]);
    assert_eq!(first(&env, &["read a table", "--category", "data"]), "csv_read");
    assert_eq!(ids(&env, &["read a table", "--category", "data/etl"]), ["csv_read"]);
    assert!(ids(&env, &["read a table", "--category", "data/e"]).is_empty());
    assert!(!ids(&env, &["weather", "--tag", "demo"]).contains(&"own_weather".to_owned()));
    assert_eq!(first(&env, &["python", "--tool-type", "runtime"]), "python_runtime");
    assert_eq!(ids(&env, &["weather", "--limit", "1"]).len(), 1);
    let (_, found) = env.json(&["search", "get_weather"]);
    let of_project = found["hits"].as_array().unwrap().iter().filter(|hit| hit["item_id"] == "get_weather");
    let sources: Vec<&str> = of_project.map(|hit| hit["source"].as_str().unwrap()).collect();
    // What the project has under a name is what the name means.
    assert_eq!(sources, ["project"]);
    let (_, found) = env.json(&["search", "get_weather", "--tier", "user"]);
    assert_eq!(
        (&found["hits"][0]["item_id"], &found["hits"][0]["source"]),
        (&json!("get_weather"), &json!("user"))
    );
    assert_eq!(first(&env, &["read a file", "--tier", "system"]), "filesystem.read");
    let (code, refused) = env.json(&["search", "x", "--tier", "registry"]);
    assert_ne!(code, 0);
    assert_eq!(refused["error"]["kind"], "missing_requirement");
    assert_eq!(env.run(&["search", "x", "--mode", "dowsing"]).code, 2);
}

#[test]
fn every_change_shows_at_the_next_command() {
    let env = project();
    assert_eq!(first(&env, &["get_weather"]), "get_weather");
    tool(&env, "new/translate", "Puts a text into another language");
    assert_eq!(first(&env, &["say it in French"]), "translate");
    tool(&env, "new/translate", "Bakes bread and rolls");
    assert_eq!(first(&env, &["oven for a loaf"]), "translate");
    env.write("tools/new/translate.sh", "# kiwi: version: nonsense\necho\n");
    assert!(!ids(&env, &["translate"]).contains(&"translate".to_owned()));
    let (_, states) = env.json(&["index", "status"]);
    assert_eq!(
        (&states["tiers"][0]["items"], &states["tiers"][0]["refused"]),
        (&json!(5), &json!(1)),
        "{states}"
    );
    tool(&env, "new/translate", "Bakes bread and rolls");
    assert_eq!(first(&env, &["translate"]), "translate");
    std::fs::remove_file(env.project().join(".ai/tools/new/translate.sh")).unwrap();
    assert!(!ids(&env, &["translate"]).contains(&"translate".to_owned()));
    // Two of one name: neither is what the name means.
    tool(&env, "new/get_weather", "Another one");
    assert!(!ids(&env, &["get_weather"]).contains(&"get_weather".to_owned()));
}

#[test]
fn an_installed_tool_that_was_changed_is_not_shown() {
    let env = project();
    let manifest =
        "tool_id: brew\ntool_type: bash\nversion: 1.0.0\ndescription: Makes coffee\nentrypoint: run.sh\n";
    let folder = env.install("brew", "1.0.0", &[("tool.yaml", manifest), ("run.sh", "echo coffee\n")]);
    assert_eq!(first(&env, &["espresso please"]), "brew");
    std::fs::write(folder.join("run.sh"), "echo poison\n").unwrap();
    assert!(!ids(&env, &["brew"]).contains(&"brew".to_owned()));
    std::fs::write(folder.join("run.sh"), "echo coffee\n").unwrap();
    assert_eq!(first(&env, &["brew"]), "brew");
}

#[test]
fn a_batch_is_answered_line_by_line() {
    let env = project();
    let ran =
        env.run_with_input(&["search", "--batch", "-", "--limit", "2"], "rain in Paris\n\nshrink a photo\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answers: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["hits"][0]["item_id"], "get_weather");
    assert_eq!(answers[2]["hits"][0]["item_id"], "resize_image");
    assert!(answers.iter().all(|it| it["took_us"].is_u64() && it["hits"].as_array().unwrap().len() <= 2));
    assert_eq!(env.run(&["search", "--batch", "nowhere"]).code, 2);
}

#[test]
fn what_was_used_after_a_search_comes_earlier_next_time() {
    let env = TestEnvironment::new();
    tool(&env, "tea_one", "Makes tea");
    tool(&env, "tea_two", "Makes tea");
    let before = ids(&env, &["hot tea"]);
    let other = before.iter().find(|id| **id != before[0] && id.starts_with("tea")).unwrap().clone();
    for _ in 0..4 {
        assert_eq!(env.run(&["run", &other]).code, 0);
    }
    assert_eq!(first(&env, &["hot tea"]), other);
    assert_eq!(ids(&env, &["", "--limit", "1"]), [other]);
    env.write_user("config/kiwi.toml", "[search]\nusage = false\n");
    assert_eq!(ids(&env, &["hot tea"]), before);
}

#[test]
fn a_running_server_finds_what_was_just_saved() {
    let env = project();
    trusted(&env);
    let mut pipe = Pipe::modern(&env, &[], json!({}));
    let mut first = |query: &str| {
        let found = pipe.call("search", json!({"query": query}));
        found["structuredContent"]["results"][0]["id"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(first("will it rain in Paris"), "get_weather");
    let mut within_a_second = |query: &str, is_right: &dyn Fn(&str) -> bool| {
        let begun = Instant::now();
        loop {
            let found = first(query);
            if is_right(&found) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(1), "{query}: {found}");
        }
    };
    tool(&env, "fresh/translate", "Puts a text into another language");
    within_a_second("say it in French", &|id| id == "translate");
    tool(&env, "fresh/translate", "Bakes bread and rolls");
    within_a_second("oven for a loaf", &|id| id == "translate");
    env.write("tools/fresh/translate.sh", "# kiwi: version: nonsense\necho\n");
    within_a_second("translate", &|id| id != "translate");
    env.write("knowledge/new/moon.md", "---\nid: moon\n---\nHow far away the moon is.\n");
    within_a_second("distance of the moon", &|id| id == "moon");
    std::fs::remove_dir_all(env.project().join(".ai/knowledge/new")).unwrap();
    within_a_second("moon", &|id| id != "moon");
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn nobody_is_shown_what_they_may_not_call() {
    let env = TestEnvironment::new();
    let names: Vec<String> = ["alpha", "beta", "gamma", "delta"]
        .iter()
        .flat_map(|a| (0..4).map(move |n| format!("{a}_{n}")))
        .collect();
    for name in &names {
        tool(&env, name, "Does the work that is to be done");
    }
    // Patterns of every kind: all, a beginning, an end, one name, none; allowed and refused.
    let patterns = ["*", "alpha_*", "*_1", "beta_2", "nothing", "*a_*", "ga*_3"];
    let matches = |pattern: &str, name: &str| {
        let parts: Vec<&str> = pattern.split('*').collect();
        let mut rest = name;
        for (at, part) in parts.iter().enumerate() {
            let Some(found) = rest.find(part) else { return false };
            if at == 0 && found != 0 {
                return false;
            }
            rest = rest.get(found + part.len()..).unwrap_or_default();
        }
        pattern.ends_with('*')
            || name.ends_with(parts.last().unwrap()) && (parts.len() > 1 || name == pattern)
    };
    let mut seed = 7_u64;
    let mut next = |count: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % count
    };
    for round in 0..crate::support::rounds(200) {
        let mut pick =
            |most: usize| -> Vec<&str> { (0..=next(most)).map(|_| patterns[next(patterns.len())]).collect() };
        let (allow, deny) = (pick(3), pick(2));
        let deny = if round % 3 == 0 { Vec::new() } else { deny };
        let refused: Vec<String> = deny.iter().map(|it| format!("tools:{it}")).collect();
        env.write_user(
            "config/kiwi.toml",
            format!("[profiles.narrow.permissions]\ntools = {allow:?}\ndeny = {refused:?}\n"),
        );
        let shown =
            ids(&env, &["work to be done", "--limit", "50", "--tier", "project", "--profile", "narrow"]);
        let may = |name: &&String| {
            allow.iter().any(|it| matches(it, name)) && !deny.iter().any(|it| matches(it, name))
        };
        let mut expected: Vec<&String> = names.iter().filter(may).collect();
        let mut shown: Vec<&String> = shown.iter().collect();
        expected.sort();
        shown.sort();
        assert_eq!(shown, expected, "allow {allow:?} deny {deny:?}");
        if let Some(name) = names.iter().find(|name| !may(name)) {
            assert!(!ids(&env, &[name, "--profile", "narrow"]).contains(name), "{name}: {allow:?} {deny:?}");
        }
    }
}

#[test]
fn a_damaged_index_is_built_again() {
    let env = project();
    assert_eq!(first(&env, &["get_weather"]), "get_weather");
    let folders: Vec<_> = std::fs::read_dir(env.project().join(".ai/vectors")).unwrap().flatten().collect();
    let folder = folders.iter().find(|entry| entry.path().is_dir()).unwrap().path();
    let files = || -> Vec<std::path::PathBuf> {
        std::fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some())
            .collect()
    };
    for file in files() {
        if !file.exists() {
            continue;
        }
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(first(&env, &["will it rain in Paris"]), "get_weather", "{}", file.display());
        assert_eq!(env.run(&["index", "build"]).code, 0);
        let verified = env.run(&["index", "verify"]);
        if verified.code != 0 {
            assert_eq!(env.run(&["index", "build", "--anew"]).code, 0);
        }
        assert_eq!(env.run(&["index", "verify"]).code, 0, "{}", file.display());
    }
    // A vector that was bent is found by looking at it.
    let rows = files().into_iter().find(|path| path.extension().is_some_and(|it| it == "rows")).unwrap();
    let mut bent = std::fs::read(&rows).unwrap();
    bent[20] ^= 0x40;
    std::fs::write(&rows, bent).unwrap();
    let (code, verified) = env.json(&["index", "verify"]);
    assert_eq!((code, &verified["ok"]), (1, &json!(false)), "{verified}");
    assert_eq!(env.run(&["index", "build", "--anew"]).code, 0);
    assert_eq!(env.run(&["index", "verify"]).code, 0);
}

/// Turns half of a file's bits over, in its middle: its length and its end stay as they were.
fn bend(file: &std::path::Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let quarter = bytes.len() / 4;
    for byte in bytes.iter_mut().skip(quarter).take(2 * quarter) {
        *byte ^= 0xff;
    }
    std::fs::write(file, bytes).unwrap();
}

/// The largest file of a kind in the project's index.
fn largest(env: &TestEnvironment, extension: &str) -> std::path::PathBuf {
    let folders = std::fs::read_dir(env.project().join(".ai/vectors")).unwrap().flatten();
    let folders = folders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let files = files.map(|entry| entry.path());
    let of_kind = files.filter(|path| path.extension().is_some_and(|it| it == extension));
    of_kind.max_by_key(|path| path.metadata().unwrap().len()).unwrap()
}

const PARTS: [&str; 10] =
    ["fast", "idx", "term", "store", "fieldnorm", "rows", "codes", "tokens", "ends", "pos"];

fn many_tools() -> TestEnvironment {
    let env = project();
    for number in 0..300 {
        tool(&env, &format!("many/tool_{number}"), &format!("Sends the mail of customer {number}"));
    }
    assert_eq!(env.run(&["index", "build"]).code, 0);
    env
}

#[test]
fn damage_inside_a_file_is_never_a_panic_and_building_mends_it() {
    let env = many_tools();
    for part in PARTS {
        for words in
            [&["search", "mail"][..], &["index", "status"], &["index", "verify"], &["index", "build"]]
        {
            bend(&largest(&env, part));
            let ran = env.run(&[words, &["--json"]].concat());
            assert!(!ran.stderr.contains("panicked"), "{part} {words:?}: {}", ran.stderr);
            let told: Value = serde_json::from_str(&ran.stdout)
                .unwrap_or_else(|_| panic!("{part} {words:?}: {} {}", ran.stdout, ran.stderr));
            let is_told = ran.stderr.contains("is built again");
            match words {
                ["index", "verify"] => {
                    assert_eq!((ran.code, &told["ok"]), (1, &json!(false)), "{part}: {told}");
                }
                ["index", "build"] => assert!(ran.code == 0 && is_told, "{part}: {}", ran.stderr),
                ["search", ..] => {
                    assert_eq!(told["hits"].as_array().unwrap().len(), 10, "{part}: {told}");
                }
                _ => assert_eq!(ran.code, 0, "{part}: {}", ran.stderr),
            }
            let built = env.run(&["index", "build"]);
            assert_eq!(built.code, 0, "{part} {words:?}: {}", built.stderr);
            let (code, verified) = env.json(&["index", "verify"]);
            assert_eq!(code, 0, "{part} {words:?}: {verified}");
            assert_eq!(verified["tiers"][0]["documents"], 305, "{part} {words:?}: {verified}");
        }
    }
    // What makes an index unreadable is mended by whoever meets it first.
    for words in [&["search", "mail"][..], &["index", "status"]] {
        bend(&largest(&env, "fast"));
        let ran = env.run(words);
        assert!(ran.code == 0 && ran.stderr.contains("is built again"), "{words:?}: {}", ran.stderr);
        assert_eq!(env.run(&["index", "verify"]).code, 0, "{words:?}");
    }
}

#[test]
fn a_server_mends_a_damaged_index_and_goes_on() {
    let env = many_tools();
    trusted(&env);
    for part in ["fast", "idx", "store"] {
        assert_eq!(env.run(&["index", "build"]).code, 0);
        bend(&largest(&env, part));
        let mut pipe = Pipe::modern(&env, &[], json!({}));
        let begun = Instant::now();
        loop {
            let found = pipe.call("search", json!({"query": "mail of a customer"}));
            assert_ne!(found["isError"], true, "{part}: {found}");
            let count = found["structuredContent"]["count"].as_u64().unwrap();
            if count == 10 {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{part}: {found}");
        }
        assert_eq!(pipe.leave(), Some(0));
    }
}

/// Makes nothing of where the terms of the project's index are: all but the end of the file.
fn blank(file: &std::path::Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let most = bytes.len() * 3 / 4;
    bytes[..most].fill(0);
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn a_change_to_a_damaged_index_ends_no_process() {
    let env = many_tools();
    for part in ["idx", "term", "fast", "fieldnorm"] {
        blank(&largest(&env, part));
        tool(&env, "many/tool_7", &format!("Bakes bread, with {part} in it"));
        let ran = env.run(&["search", "oven for a loaf", "--limit", "1"]);
        assert!(ran.code == 0 && ran.stdout.starts_with("tool_7 "), "{part}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("is built again"), "{part}: {}", ran.stderr);
        assert_eq!(env.run(&["index", "verify"]).code, 0, "{part}");
    }
    trusted(&env);
    blank(&largest(&env, "idx"));
    let mut pipe = Pipe::modern(&env, &[], json!({}));
    tool(&env, "many/tool_8", "Puts a text into another language");
    let begun = Instant::now();
    loop {
        let found = pipe.call("search", json!({"query": "say it in French"}));
        if found["structuredContent"]["results"][0]["id"] == "tool_8" {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found}");
    }
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn an_older_index_is_in_nobodys_way() {
    let env = project();
    assert_eq!(env.run(&["index", "build"]).code, 0);
    let own = largest(&env, "idx").parent().unwrap().to_owned();
    let older = own.with_file_name(own.file_name().unwrap().to_str().unwrap().replacen("v1.2-", "v1.1-", 1));
    std::fs::create_dir(&older).unwrap();
    let lock = std::fs::File::create(older.join("lock")).unwrap();
    lock.lock().unwrap();
    let ran = env.run(&["index", "build"]);
    assert!(ran.code == 0 && older.exists() && !ran.stderr.contains("warning"), "{}", ran.stderr);
    drop(lock);
    assert_eq!(env.run(&["index", "build"]).code, 0);
    assert!(!older.exists());
}

#[test]
fn scripts_are_found_by_the_type_that_they_are_written_as() {
    let env = project();
    env.write("tools/web/snake.py", "__version__ = \"1.0.0\"\n\ndef execute():\n    return 1\n");
    assert_eq!(ids(&env, &["snake", "--tool-type", "python"]), ["snake"]);
    let shells = ids(&env, &["weather", "--tool-type", "bash"]);
    assert!(
        shells.contains(&"get_weather".to_owned()) && !shells.contains(&"snake".to_owned()),
        "{shells:?}"
    );
    assert!(ids(&env, &["snake", "--tool-type", "script"]).contains(&"snake".to_owned()));
    assert!(ids(&env, &["weather", "--tool-type", "node"]).is_empty());
    trusted(&env);
    let mut pipe = Pipe::modern(&env, &[], json!({}));
    let found = pipe.call("search", json!({"query": "snake", "tool_type": "python"}));
    assert_eq!(found["structuredContent"]["results"][0]["id"], "snake", "{found}");
    for limit in [json!(-1), json!(0), json!(101), json!(1.5), json!("ten")] {
        let refused = pipe.call("search", json!({"query": "anything", "limit": limit}));
        let told = &refused["structuredContent"];
        assert_eq!(told["kind"], "invalid_params", "{limit}: {told}");
        assert_eq!(told["message"], "search: `limit` must be a whole number from 1 to 100", "{limit}");
    }
    for limit in [json!(1), json!(1.0)] {
        let found = pipe.call("search", json!({"query": "weather", "limit": limit}));
        assert_eq!(found["structuredContent"]["count"], 1, "{limit}: {found}");
    }
    assert_eq!(pipe.leave(), Some(0));
}

#[test]
fn the_beginning_of_a_name_finds_it_among_thousands() {
    let env = TestEnvironment::new();
    for number in 0..400 {
        tool(&env, &format!("many/handler_{number}"), "Makes, writes, adds and creates a new thing");
    }
    tool(&env, "create_issue", "Opens a ticket");
    tool(&env, "create_issue_comment", "Says something about a ticket");
    for query in ["cr", "cre", "crea", "creat", "create_i", "issu"] {
        let (_, found) = env.json(&["search", query, "--limit", "4"]);
        let hits = found["hits"].as_array().unwrap();
        let ids: Vec<&str> = hits.iter().map(|hit| hit["item_id"].as_str().unwrap()).collect();
        assert!(ids.contains(&"create_issue") && ids.contains(&"create_issue_comment"), "{query}: {ids:?}");
        let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{query}: {scores:?}");
    }
    assert_eq!(first(&env, &["kiwi.val"]), "kiwi.validate");
    assert_eq!(first(&env, &["create_i"]), "create_issue");
}

#[test]
fn a_place_that_cannot_be_written_is_searched_all_the_same() {
    let env = project();
    env.write("vectors", "not a folder");
    let ran = env.run(&["search", "will it rain in Paris", "--json"]);
    assert!(ran.stderr.contains("warning:"), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["hits"][0]["item_id"], "get_weather");
}

#[test]
fn another_embedder_takes_over_once_it_is_ready() {
    let env = project();
    assert_eq!(first(&env, &["get_weather"]), "get_weather");
    // Vectors by which everything about rain is the same, and nothing else is.
    let server = Server::start(|asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let vector = |text: &Value| {
            let wet = text.as_str().unwrap().to_lowercase();
            if wet.contains("inbox") || wet.contains("zzz") {
                json!([1.0, 0.0, 0.0])
            } else {
                json!([0.0, 1.0, 0.1])
            }
        };
        let texts = body["input"].as_array().unwrap().iter().enumerate();
        let data: Vec<Value> =
            texts.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect();
        ("200 OK", json!({ "data": data }).to_string())
    });
    let config = format!(
        "[search]\nembedder = \"http\"\nurl = {:?}\nname = \"m\"\ndimensions = 3\n",
        server.url("/v1/embeddings")
    );
    env.write_user("config/kiwi.toml", &config);
    assert_eq!(first(&env, &["zzz", "--mode", "vector"]), "send_email");
    assert!(!server.asked().is_empty());
    assert_eq!(env.run(&["index", "verify"]).code, 0);
    let (_, states) = env.json(&["index", "status"]);
    assert!(states["tiers"][0]["embedder"].as_str().unwrap().starts_with("http "), "{states}");
    env.write_user("config/kiwi.toml", "[search]\nembedder = \"http\"\n");
    let (code, refused) = env.json(&["search", "x"]);
    assert_ne!(code, 0);
    assert_eq!(refused["error"]["kind"], "missing_requirement");
    env.write_user("config/kiwi.toml", "");
    assert_eq!(first(&env, &["will it rain in Paris"]), "get_weather");
    // A project must not send anywhere what its user looks for.
    env.write("config/kiwi.toml", &config);
    let ran = env.run(&["search", "rain", "--json"]);
    assert!(ran.stderr.contains("embedder"), "{}", ran.stderr);
}
