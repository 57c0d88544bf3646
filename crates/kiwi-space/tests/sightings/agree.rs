//! What is sighted and read is what a listing says.

use super::common::{Ground, manifest};
use super::{SKILL, note, project, settle};
use kiwi_model::{ErrorKind, Space};
use kiwi_space::{Sighted, Spaces, TextKind};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

/// What identifies an item that could be read.
fn named(sighted: &Sighted) -> String {
    match sighted {
        Sighted::Tool(tool) => format!("{} {} {:?}", tool.path, tool.integrity, tool.identity),
        Sighted::Text(text) => format!("{} {} {:?}", text.path, text.sha256, text.kind),
    }
}

/// The good items of listings; those that are there twice must be left out of the space.
fn listed(spaces: &Spaces, space: Space) -> BTreeSet<String> {
    let tools = spaces.list(space).into_iter().filter_map(|it| it.result.ok()).map(Sighted::Tool);
    let texts =
        [TextKind::Directive, TextKind::Knowledge].into_iter().flat_map(|kind| spaces.texts(kind, space));
    let texts = texts.filter_map(|it| it.result.ok()).map(Sighted::Text);
    tools.chain(texts).map(|item| named(&item)).collect()
}

#[track_caller]
fn agrees(spaces: &Spaces, space: Space) -> usize {
    let seen = spaces.sightings(space).unwrap_or_else(|error| panic!("{error}"));
    let mut read = BTreeSet::new();
    for sighting in &seen {
        let (by_sighting, by_key) = (spaces.sighted(space, sighting), spaces.at_key(space, &sighting.key));
        match (by_sighting, by_key) {
            (Ok(one), Ok(other)) => {
                assert_eq!(named(&one), named(&other));
                assert!(read.insert(named(&one)), "{} was there before", sighting.key);
            }
            (Err(one), Err(other)) => assert_eq!(one.message, other.message),
            (one, other) => panic!("{}: {one:?}, {other:?}", sighting.key),
        }
    }
    assert_eq!(read, listed(spaces, space));
    seen.len()
}

/// Adds what is broken, odd, or lies where nothing is looked for.
fn spoil(ground: &Ground) {
    for (path, text) in [
        ("tools/data/broken.yaml", "tool_id: [\n"),
        ("tools/data/other.yaml", "tool_id: another\nversion: \"1.0.0\"\n"),
        ("tools/data/x.py.yaml", "nothing"),
        ("tools/data/Bad-Name.sh", "echo\n"),
        ("tools/lib/shared.sh", "echo\n"),
        ("tools/node_modules/x/y.sh", "echo\n"),
        ("tools/_draft/y.sh", "echo\n"),
        ("tools/.git/y.sh", "echo\n"),
        ("tools/data/pack/deep/inner.sh", "echo\n"),
        ("tools/primitive.yaml", "tool_id: primitive\nversion: \"1.0.0\"\ntool_type: primitive\n"),
        ("tools/data/bash_runtime.sh", "echo\n"),
        ("packages/by_hand/1.0.0/main.sh", "echo\n"),
        ("packages/wrong/2.0.0/main.sh", "echo\n"),
        ("packages/empty/1.0.0/main.sh", "echo\n"),
        ("packages/by_hand/latest/main.sh", "echo\n"),
        ("packages/Not-An-Id/1.0.0/main.sh", "echo\n"),
        ("directives/none.md", "nothing here"),
        ("directives/SKILL.md", SKILL),
        ("directives/plain.txt", "no item"),
        ("directives/bad/SKILL.md", "---\nname: [\n"),
        ("knowledge/a/b/c/d/e/f/g/h/deepest.md", "deep"),
        ("knowledge/a/b/c/d/e/f/g/h/i/deeper.md", "too deep"),
        ("knowledge/.hidden/x.md", "hidden"),
        ("knowledge/named.md", "---\nid: else\n---\n"),
        ("scripts/legacy.sh", "# kiwi: version: \"1.0.0\"\necho\n"),
    ] {
        ground.write(path, text);
    }
    ground.write("packages/by_hand/1.0.0/tool.yaml", manifest("by_hand", "1.0.0"));
    ground.write("packages/wrong/2.0.0/tool.yaml", manifest("wrong", "1.0.0"));
    ground.write("tools/data/dotted.sh/tool.yaml", manifest("dotted.sh", "1.0.0"));
    ground.write("tools/data/dotted.sh/main.sh", "echo\n");
    fs::write(ground.ai("knowledge/binary.md"), [0xff, 0xfe]).expect("file");
    fs::write(ground.ai("knowledge/large.md"), vec![b'x'; (1 << 20) + 1]).expect("file");
    fs::create_dir_all(ground.ai("knowledge/folder.md")).expect("folder");
}

#[test]
fn what_is_sighted_is_what_is_listed() {
    let ground = project();
    assert_eq!(agrees(&ground.spaces(), Space::Project), 8);
    spoil(&ground);
    let outside = ground.path().join("outside.sh");
    fs::write(&outside, "echo\n").expect("file");
    for (target, link) in [
        (outside.as_path(), "tools/data/escapes.sh"),
        ("nowhere".as_ref(), "tools/data/dangling.sh"),
        ("one.sh".as_ref(), "tools/data/linked.sh"),
        ("pack".as_ref(), "tools/data/linked_pack"),
        ("../data".as_ref(), "tools/data/linked_category"),
        ("loop".as_ref(), "tools/data/loop"),
        ("art".as_ref(), "knowledge/linked"),
        ("art/colours.md".as_ref(), "knowledge/hues.md"),
        (outside.as_path(), "knowledge/escapes.md"),
        ("1.0.0".as_ref(), "packages/by_hand/1.0.1"),
    ] {
        symlink(target, ground.ai(link)).expect("link");
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        ground.ai("tools/data/fifo.sh"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o644),
        0,
    )
    .expect("fifo");
    for _ in 0..2 {
        agrees(&ground.spaces(), Space::Project);
        settle();
    }
    let spaces = ground.spaces();
    agrees(&spaces, Space::User);
    assert!(agrees(&spaces, Space::System) >= 9);
    // A package that is damaged, and one that is gone.
    fs::remove_file(note(&ground)).expect("remove");
    fs::write(ground.ai("packages/packed/1.0.0/main.sh"), "other\n").expect("write");
    agrees(&spaces, Space::Project);
    fs::remove_dir_all(ground.ai("packages/packed")).expect("remove");
    agrees(&spaces, Space::Project);
    let gone = spaces.at_key(Space::Project, "packages/packed/1.0.0").map_err(|fault| fault.kind);
    assert_eq!(gone.expect_err("gone"), ErrorKind::NotFound);
}

#[test]
fn a_key_of_nothing_finds_nothing() {
    let ground = project();
    spoil(&ground);
    ground.write("knowledge/a/ok.md", "ok");
    symlink("art", ground.ai("knowledge/linked")).expect("link");
    symlink("data", ground.ai("tools/linked")).expect("link");
    fs::write(ground.path().join("outside.md"), "secret").expect("file");
    let spaces = ground.spaces();
    let kind = |space, key: &str| spaces.at_key(space, key).map(|it| named(&it)).map_err(|fault| fault.kind);
    assert!(kind(Space::Project, "knowledge/a/ok.md").is_ok());
    assert!(kind(Space::Project, "tools/data/dotted.sh").is_ok());
    for key in [
        "",
        "/",
        "tools",
        "tools/data",
        "tools/data/",
        "tools//data/one.sh",
        "tools/data/nope.sh",
        "tools/data/one",
        "tools/data/one.py",
        "tools/lib/shared.sh",
        "tools/node_modules/x/y.sh",
        "tools/_draft/y.sh",
        "tools/.git/y.sh",
        "tools/data/pack/main.sh",
        "tools/data/pack/tool.yaml",
        "tools/linked/one.sh",
        "tools/../tools/data/one.sh",
        "packages/packed",
        "packages/packed/1.0.1",
        "packages/packed/01.0.0",
        "packages/by_hand/latest",
        "packages/.records/packed@1.0.0.json",
        "directives/SKILL.md",
        "directives/code/review",
        "knowledge/linked/colours.md",
        "knowledge/.hidden/x.md",
        "knowledge/folder.md",
        "knowledge/a/b/c/d/e/f/g/h/i/deeper.md",
        "knowledge/../../../outside.md",
        "config/kiwi.toml",
        "system:tools/core",
        "a\0b",
    ] {
        assert_eq!(kind(Space::Project, key), Err(ErrorKind::NotFound), "{key}");
        assert_eq!(kind(Space::System, key), Err(ErrorKind::NotFound), "{key}");
    }
    assert_eq!(kind(Space::User, "tools/data/one.sh"), Err(ErrorKind::NotFound));
}

#[test]
fn the_system_keeps_its_stamps() {
    let ground = Ground::new();
    let one = ground.spaces().sightings(Space::System).expect("sightings");
    assert_eq!(ground.spaces().sightings(Space::System).expect("sightings"), one);
    for sighting in &one {
        assert!(sighting.key.starts_with("system:tools/") || sighting.key.contains(".md"), "{sighting:?}");
        let folders = BTreeSet::from([sighting.folder().to_owned()]);
        let some = ground.spaces().sightings_in(Space::System, &folders).expect("some");
        assert!(some.contains(sighting) && some.len() < one.len());
    }
    let stamps: BTreeSet<u64> = one.iter().map(|sighting| sighting.stamp).collect();
    assert_eq!(stamps.len(), one.len());
}

#[test]
fn what_went_away_since_it_was_sighted_is_not_found() {
    let ground = project();
    let spaces = ground.spaces();
    let seen = spaces.sightings(Space::Project).expect("sightings");
    for tree in ["tools", "packages/packed", "directives", "knowledge"] {
        fs::remove_dir_all(ground.ai(tree)).expect("remove");
    }
    for sighting in seen {
        let kind = spaces.sighted(Space::Project, &sighting).map_err(|fault| fault.kind);
        assert_eq!(kind.expect_err("gone"), ErrorKind::NotFound, "{}", sighting.key);
    }
    assert!(spaces.sightings(Space::Project).expect("sightings").is_empty());
}
