//! What did not change is no news, and need not be read to be known.

use super::{project, settle, stamps};
use crate::common::{Ground, id, manifest};
use kiwi_model::Space;
use kiwi_space::Spaces;
use std::collections::BTreeSet;
use std::fs;

/// The keys of what is news to whoever knows these stamps.
fn news(spaces: &Spaces, known: &std::collections::BTreeMap<String, u64>) -> BTreeSet<String> {
    let is_known = |key: &str, stamp: u64| known.get(key) == Some(&stamp);
    let news = spaces.news(Space::Project, None, &is_known).expect("news");
    news.into_iter().map(|sighting| sighting.key.into()).collect()
}

#[test]
fn only_what_changed_is_news() {
    let ground = project();
    settle();
    let spaces = ground.spaces();
    let known = stamps(&spaces);
    assert!(news(&spaces, &known).is_empty());
    ground.write("tools/data/one.sh", "# kiwi: version: \"1.0.1\"\necho\n");
    ground.write("tools/data/pack/main.sh", "echo other\n");
    ground.write("tools/data/three.sh", "# kiwi: version: \"1.0.0\"\necho\n");
    ground.write("knowledge/art/colours.md", "# Colours\nBlue is cold.\n");
    fs::remove_file(ground.ai("tools/top.sh")).expect("remove");
    let changed = ["knowledge/art/colours.md", "tools/data/one.sh", "tools/data/pack", "tools/data/three.sh"];
    assert_eq!(news(&spaces, &known), changed.map(str::to_owned).into());
    let folder = BTreeSet::from(["knowledge/art".to_owned()]);
    let is_known = |key: &str, stamp: u64| known.get(key) == Some(&stamp);
    let some = spaces.news(Space::Project, Some(&folder), &is_known).expect("news");
    assert_eq!(some.iter().map(|it| it.key.as_ref()).collect::<Vec<_>>(), ["knowledge/art/colours.md"]);
}

type Change<'a> = &'a dyn Fn(&Ground);

#[test]
fn a_tool_is_what_it_was_until_anything_about_it_or_its_name_changes() {
    let key = "tools/data/one.sh";
    let is_still = |ground: &Ground, stamp| ground.spaces().is_still(Space::Project, &id("one"), key, stamp);
    let text = "# kiwi: version: \"1.0.0\"\necho\n";
    let changes: [(&str, Change<'_>); 7] = [
        ("written", &|ground| {
            ground.write(key, "# kiwi: version: \"1.0.0\"\necho other\n");
        }),
        ("written with the same bytes", &|ground| {
            ground.write(key, text);
        }),
        ("removed", &|ground| fs::remove_file(ground.ai(key)).expect("remove")),
        ("moved", &|ground| {
            fs::rename(ground.ai(key), ground.ai("tools/one.sh")).expect("rename");
        }),
        ("another of its name", &|ground| {
            ground.write("tools/one.sh", text);
        }),
        ("another of its name and other form", &|ground| {
            ground.write("tools/data/one/tool.yaml", manifest("one", "1.0.0"));
        }),
        ("a package of its name", &|ground| {
            ground.write("packages/one/1.0.0/tool.yaml", manifest("one", "1.0.0"));
        }),
    ];
    for (what, change) in changes {
        let ground = project();
        settle();
        let stamp = stamps(&ground.spaces())[key];
        assert!(is_still(&ground, stamp), "{what}: before");
        assert!(!is_still(&ground, stamp ^ 1), "{what}: another stamp");
        assert!(!ground.spaces().is_still(Space::Project, &id("two"), key, stamp), "{what}: another name");
        change(&ground);
        assert!(!is_still(&ground, stamp), "{what}");
    }
}
