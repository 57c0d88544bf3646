use super::*;
use crate::document::Document;
use crate::embed::StaticEmbedder;
use crate::index::Index;
use std::sync::Arc;

fn item(id: &str, description: &str) -> Item {
    Item {
        kind: Kind::Tool,
        id: id.into(),
        title: None,
        version: Some("1.0.0".into()),
        description: description.into(),
        parameters: Vec::new(),
        signature: "()".into(),
        tags: vec!["all".into()],
        category: "a/b".into(),
        tool_type: Some("bash".into()),
        runtime: None,
        is_support: false,
        is_alone: false,
        body: String::new(),
    }
}

fn index(items: Vec<Item>) -> Index {
    let index = Index::in_memory(Arc::new(StaticEmbedder::new())).unwrap();
    let mut writer = index.write().unwrap();
    let documents: Vec<Document> = items
        .into_iter()
        .map(|item| Document { key: item.id.clone(), group: String::new(), stamp: 1, item: Some(item) })
        .collect();
    let prepared = index.prepare(&documents).unwrap();
    writer.add(prepared).unwrap();
    writer.commit(true).unwrap();
    writer.finish().unwrap();
    index
}

fn tools() -> Vec<Item> {
    vec![
        item("get_weather", "Tells the weather forecast for a city"),
        item("send_email", "Sends a message to somebody's inbox"),
        item("csv.read", "Reads a table of comma separated values"),
        item("resize_image", "Makes a picture smaller or larger"),
        item("read_calendar", "Lists the appointments of a day"),
        item("github.create_issue", "Opens a ticket in a repository"),
        Item { is_support: true, tool_type: Some("runtime".into()), ..item("python_runtime", "Runs Python") },
        Item {
            kind: Kind::Knowledge,
            body: "How to deploy on a Friday".into(),
            ..item("deploying", "Releases")
        },
        Item { title: Some("Convert Currency".into()), ..item("fx1", "Turns one money into another") },
    ]
}

fn ask(index: &Index, text: &str, filter: &Filter, mode: Mode, limit: usize) -> Vec<Hit> {
    let view = index.view().unwrap();
    let query = Query { text, filter, limit, mode, may_see: &|_| true, usage: &|_| 0.0 };
    search(&[&view], &query).unwrap()
}

fn check(text: &str, first: &str) {
    let index = index(tools());
    let hits = ask(&index, text, &Filter::default(), Mode::Hybrid, 5);
    let ids: Vec<&str> = hits.iter().map(|hit| hit.item.id.as_str()).collect();
    assert_eq!(ids.first(), Some(&first), "{text}: {ids:?}");
}

#[test]
fn what_is_meant_comes_first_in_other_words_too() {
    check("will it rain tomorrow in Paris", "get_weather");
    check("write a mail to my boss", "send_email");
    check("shrink a photo", "resize_image");
    check("what meetings do I have today", "read_calendar");
    check("file a bug on github", "github.create_issue");
    check("how do I deploy on a friday", "deploying");
}

#[test]
fn names_come_first_however_they_are_written() {
    for (text, first) in [
        ("csv.read", "csv.read"),
        ("CSV read", "csv.read"),
        ("create_issue", "github.create_issue"),
        ("createIssue", "github.create_issue"),
        ("get_wether", "get_weather"),
        ("gte_weather", "get_weather"),
        ("resizeimge", "resize_image"),
        ("convert currency", "fx1"),
        ("convert curency", "fx1"),
        ("python_runtime", "python_runtime"),
    ] {
        if text != "python_runtime" {
            check(text, first);
        }
    }
    let exact = ask(&index(tools()), "get_weather", &Filter::default(), Mode::Text, 1);
    assert!((exact[0].score - 1.0).abs() < 1e-6 && exact[0].why.starts_with("its name"), "{exact:?}");
}

/// The ids that a query finds, in their order.
fn ids(index: &Index, text: &str, limit: usize) -> Vec<String> {
    let hits = ask(index, text, &Filter::default(), Mode::Hybrid, limit);
    hits.into_iter().map(|hit| hit.item.id).collect()
}

#[test]
fn who_begins_a_name_is_shown_what_begins_so_before_what_is_meant() {
    let mut many: Vec<Item> = (0..2000)
        .map(|number| item(&format!("tool_{number}"), "Makes, writes and adds a new thing: an issue, a file"))
        .collect();
    many.extend([
        item("create_issue", "Opens a ticket"),
        item("create_issue_comment", "Says something about a ticket"),
        item("filesystem.create", "Creates a new file"),
        item("kiwi.validate", "Holds a tool against its schema"),
        item("kiwi.info", "Tells about kiwi: kiwi, kiwi, kiwi"),
        item("list_recreations", "Lists what people do"),
        Item { title: Some("Mail Merge".into()), ..item("mm1", "Fills letters") },
    ]);
    let index = index(many);
    for (text, whole, words) in [
        ("c", 3, 0),
        ("cr", 3, 0),
        ("cre", 3, 0),
        ("crea", 3, 0),
        ("creat", 3, 0),
        ("create_i", 2, 0),
        ("create is", 2, 0),
        ("createIssue_c", 1, 0),
        ("kiwi.val", 1, 0),
        ("mail m", 1, 0),
        ("issu", 0, 2),
        ("comm", 0, 1),
        ("rec", 0, 1),
        ("merg", 0, 1),
        ("vali", 1, 0),
    ] {
        let hits = ask(&index, text, &Filter::default(), Mode::Hybrid, 20);
        let whys: Vec<&str> = hits.iter().map(|hit| hit.why.as_str()).collect();
        let (first, rest) = whys.split_at(whole);
        assert!(first.iter().all(|why| why.starts_with("its name begins so")), "{text}: {whys:?}");
        let (second, rest) = rest.split_at(words);
        assert!(second.iter().all(|why| why.starts_with("a word of its name begins so")), "{text}: {whys:?}");
        assert!(!rest.iter().any(|why| why.contains("begins so")), "{text}: {whys:?}");
    }
    // Sentences are not read as beginnings of words.
    assert!(!ids(&index, "write a comm", 20).contains(&"create_issue_comment".to_owned()));
}

#[test]
fn a_beginning_ends_where_the_query_says_so() {
    let named = |id: &str| item(id, "Does it");
    let many = index(
        [
            "abort_build",
            "create_issue",
            "create_issue_comment",
            "fileShred",
            "file_shred",
            "issue_set_label",
            "issue_state",
            "issue_subscribe",
            "listIssues",
            "list_files",
            "list_issues",
            "run_tests",
            "search_issues",
            "test_scaffold",
            "GitHub_sync",
        ]
        .map(named)
        .to_vec(),
    );
    let called = |text: &str| -> Vec<String> {
        let hits = ask(&many, text, &Filter::default(), Mode::Hybrid, 20);
        let hits = hits
            .into_iter()
            .filter(|hit| hit.why.starts_with("its name") || hit.why.starts_with("a word of"));
        let mut called: Vec<String> = hits.map(|hit| hit.item.id).collect();
        called.sort();
        called
    };
    for (text, expected) in [
        ("issues", vec!["listIssues", "list_issues", "search_issues"]),
        ("files", vec!["list_files"]),
        ("tests", vec!["run_tests"]),
        ("a b", vec![]),
        ("abort b", vec!["abort_build"]),
        ("ab", vec!["abort_build"]),
        ("fileS", vec!["fileShred", "file_shred", "list_files"]),
        ("file_s", vec!["fileShred", "file_shred"]),
        ("create", vec!["create_issue", "create_issue_comment"]),
        ("create_i", vec!["create_issue", "create_issue_comment"]),
        ("createi", vec!["create_issue", "create_issue_comment"]),
        ("creat_i", vec![]),
        ("issue_st", vec!["issue_state"]),
        ("github", vec!["GitHub_sync"]),
        ("GitHub_s", vec!["GitHub_sync"]),
        ("github_s", vec!["GitHub_sync"]),
    ] {
        assert_eq!(called(text), expected, "{text}");
    }
    // A word that is meant is no worse than a beginning; both come before what only has a word that begins so.
    let tests = index(["run_tests", "testsuite_run", "all_testsuites"].map(named).to_vec());
    assert_eq!(ids(&tests, "tests", 9).last().map(String::as_str), Some("all_testsuites"));
}

#[test]
fn what_does_not_count_takes_nobodys_place_among_beginnings() {
    let mut many: Vec<Item> = (0..500)
        .map(|number| Item { kind: Kind::Knowledge, ..item(&format!("weather_{number:03}"), "Rain") })
        .collect();
    many.push(item("weather_zone", "Draws borders"));
    let tools = Filter { kinds: vec![Kind::Tool], ..Filter::default() };
    let hits = ask(&index(many), "weath", &tools, Mode::Hybrid, 3);
    assert_eq!(hits.len(), 1);
    assert!(hits[0].why.starts_with("its name begins so"), "{}", hits[0].why);
}

#[test]
fn scores_follow_the_ranking() {
    let mut many = tools();
    many.extend([
        item("create_issue", "Zeigt etwas"),
        item("make_isue_creation", "create isue: create an isue in the list of isues"),
    ]);
    let index = index(many);
    for text in ["create_isue", "crea", "get", "send_emial", "get_weather", "a bug on github", "read", "zzz"]
    {
        let hits = ask(&index, text, &Filter::default(), Mode::Hybrid, 20);
        let scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{text}: {scores:?}");
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{text}: {scores:?}");
    }
}

#[test]
fn a_script_is_of_the_type_that_it_was_written_as_too() {
    let script = |id: &str, runtime: &str| Item {
        tool_type: Some("script".into()),
        runtime: Some(runtime.into()),
        ..item(id, "Does something")
    };
    let index = index(vec![
        script("snake", "python_runtime"),
        script("shell", "bash_runtime"),
        Item { tool_type: Some("python".into()), ..item("literal", "Does something") },
    ]);
    for (tool_type, expected) in [
        ("python", vec!["literal", "snake"]),
        ("bash", vec!["shell"]),
        ("script", vec!["shell", "snake"]),
        ("node", vec![]),
    ] {
        let filter = Filter { tool_type: Some(tool_type.into()), ..Filter::default() };
        let mut found: Vec<String> =
            ask(&index, "something", &filter, Mode::Hybrid, 9).into_iter().map(|hit| hit.item.id).collect();
        found.sort();
        assert_eq!(found, expected, "{tool_type}");
    }
}

#[test]
fn filters_hold_in_every_mode() {
    let index = index(tools());
    let only = |filter: &Filter, mode| -> Vec<String> {
        let text = if mode == Mode::Text { "read a thing" } else { "read, deploy, run python" };
        let mut ids: Vec<String> =
            ask(&index, text, filter, mode, 50).into_iter().map(|hit| hit.item.id).collect();
        ids.sort();
        ids
    };
    for mode in [Mode::Vector, Mode::Hybrid] {
        let knowledge = Filter { kinds: vec![Kind::Knowledge], ..Filter::default() };
        assert_eq!(only(&knowledge, mode), ["deploying"]);
        let runtimes = Filter { tool_type: Some("runtime".into()), ..Filter::default() };
        assert_eq!(only(&runtimes, mode), ["python_runtime"]);
        let above = Filter { category: Some("a".into()), tags: vec!["ALL".into()], ..Filter::default() };
        assert!(only(&above, mode).len() >= 4);
        for nothing in [
            Filter { category: Some("b".into()), ..Filter::default() },
            Filter { tags: vec!["all".into(), "none".into()], ..Filter::default() },
        ] {
            assert!(only(&nothing, mode).is_empty());
        }
        assert!(!only(&Filter::default(), mode).contains(&"python_runtime".to_owned()));
    }
    assert_eq!(only(&Filter::default(), Mode::Text), ["csv.read", "read_calendar"]);
}

#[test]
fn what_may_not_be_seen_leaves_room_for_the_rest() {
    let many: Vec<Item> = (0..3000)
        .map(|number| item(&format!("weather_{number}"), "Tells the weather forecast for a city"))
        .collect();
    let index = index(many);
    let view = index.view().unwrap();
    let may_see = |it: &Prospect<'_>| it.item.id.ends_with("77");
    let query = Query {
        text: "weather in a city",
        filter: &Filter::default(),
        limit: 20,
        mode: Mode::Hybrid,
        may_see: &may_see,
        usage: &|_| 0.0,
    };
    let hits = search(&[&view], &query).unwrap();
    assert_eq!(hits.len(), 20);
    assert!(hits.iter().all(|hit| hit.item.id.ends_with("77")));
}

#[test]
fn of_many_candidates_each_is_weighed() {
    // Some are weighed on another thread than the rest: all of them alike.
    let many = (0..150).map(|number| item(&format!("weather_{number}"), "Tells the weather forecast"));
    let hits = ask(&index(many.collect()), "weather forecast", &Filter::default(), Mode::Hybrid, 150);
    assert_eq!(hits.len(), 150);
    for Hit { item, weighed, .. } in &hits {
        let meaning = [weighed.likeness, weighed.name, weighed.late];
        assert!(weighed.text > 0.0 && meaning.iter().all(|it| *it > 0.5), "{}: {weighed:?}", item.id);
    }
}

#[test]
fn use_nudges_and_the_earlier_tier_wins() {
    let near = index(vec![item("a_tool", "Makes coffee"), item("b_tool", "Makes coffee")]);
    let far = index(vec![item("a_tool", "Makes coffee"), item("c_tool", "Makes coffee")]);
    let (near, far) = (near.view().unwrap(), far.view().unwrap());
    let ids = |usage: &dyn Fn(&Item) -> f32| -> Vec<(usize, String)> {
        let query = Query {
            text: "coffee",
            filter: &Filter::default(),
            limit: 9,
            mode: Mode::Hybrid,
            may_see: &|_| true,
            usage,
        };
        search(&[&near, &far], &query).unwrap().into_iter().map(|hit| (hit.tier, hit.item.id)).collect()
    };
    let expected = [(0, "a_tool"), (0, "b_tool"), (1, "c_tool")].map(|(tier, id)| (tier, id.to_owned()));
    assert_eq!(ids(&|_| 0.0).len(), 3);
    assert!(expected.iter().all(|it| ids(&|_| 0.0).contains(it)));
    let nudged = ids(&|item| if item.id == "c_tool" { 1.0 } else { 0.0 });
    assert_eq!(nudged[0], (1, "c_tool".to_owned()));
}

#[test]
fn nothing_strange_breaks_it() {
    let index = index(tools());
    let long = "weather ".repeat(50_000);
    for text in
        ["", " ", "!!!", "日本語", "\u{0}", "the of and", "💥", long.as_str(), "a:b AND (c", "\"", "*"]
    {
        for mode in [Mode::Text, Mode::Vector, Mode::Hybrid] {
            ask(&index, text, &Filter::default(), mode, 10);
            ask(&index, text, &Filter::default(), mode, 0);
        }
    }
    let empty = Index::in_memory(Arc::new(StaticEmbedder::new())).unwrap();
    assert!(ask(&empty, "weather", &Filter::default(), Mode::Hybrid, 10).is_empty());
}
