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
