//! A symlink is followed as far as reading follows it.

use super::common::{Ground, manifest};
use super::{project, settle, stamps};
use kiwi_space::Spaces;
use std::fs;
use std::os::unix::fs::symlink;

fn link(ground: &Ground, target: impl AsRef<std::path::Path>, link: &str) {
    let _ = fs::remove_file(ground.ai(link));
    symlink(target, ground.ai(link)).expect("link");
    settle();
}

fn stamp(spaces: &Spaces, key: &str) -> Option<u64> {
    stamps(spaces).get(key).copied()
}

#[test]
fn what_a_link_leads_to_shows_in_the_stamp() {
    let ground = project();
    ground.write("files/impl.sh", "echo 1\n");
    ground.write("files/other.sh", "echo 1\n");
    link(&ground, "../../files/impl.sh", "tools/data/linked.sh");
    let spaces = ground.spaces();
    let first = stamp(&spaces, "tools/data/linked.sh");
    assert!(first.is_some());
    assert_eq!(stamp(&spaces, "tools/data/linked.sh"), first);
    fs::write(ground.ai("files/impl.sh"), "echo 2\n").expect("write");
    settle();
    let second = stamp(&spaces, "tools/data/linked.sh");
    assert_ne!(second, first);
    link(&ground, "../../files/other.sh", "tools/data/linked.sh");
    let third = stamp(&spaces, "tools/data/linked.sh");
    assert_ne!(third, second);
    fs::remove_file(ground.ai("files/other.sh")).expect("remove");
    let dangling = stamp(&spaces, "tools/data/linked.sh");
    assert!(dangling.is_some() && dangling != third, "it lies there, and reading it says what is wrong");
}

#[test]
fn a_linked_folder_is_a_tool_or_nothing() {
    let ground = project();
    ground.write("files/inner/tool.yaml", manifest("inner", "1.0.0"));
    ground.write("files/inner/main.sh", "echo 1\n");
    link(&ground, "../files/inner", "tools/inner");
    let spaces = ground.spaces();
    let first = stamp(&spaces, "tools/inner");
    assert!(first.is_some());
    fs::write(ground.ai("files/inner/main.sh"), "echo 2\n").expect("write");
    settle();
    assert_ne!(stamp(&spaces, "tools/inner"), first);
    fs::remove_file(ground.ai("files/inner/tool.yaml")).expect("remove");
    settle();
    assert_eq!(stamp(&spaces, "tools/inner"), None);
    assert_eq!(stamp(&spaces, "tools/inner/main.sh"), None, "a link is no category");
    let rebuilds = spaces.counters()["index_folders_read"];
    assert_eq!(stamp(&spaces, "tools/inner"), None);
    assert_eq!(spaces.counters()["index_folders_read"], rebuilds, "and costs no look at everything");
}

#[test]
fn a_link_inside_a_tool_is_followed() {
    let ground = project();
    ground.write("files/data.csv", "1\n");
    link(&ground, "../../../files/data.csv", "tools/data/pack/data.csv");
    let spaces = ground.spaces();
    let first = stamp(&spaces, "tools/data/pack");
    assert_eq!(stamp(&spaces, "tools/data/pack"), first);
    fs::write(ground.ai("files/data.csv"), "2\n").expect("write");
    settle();
    assert_ne!(stamp(&spaces, "tools/data/pack"), first);
}

#[test]
fn what_lies_outside_the_space_is_not_looked_at() {
    let ground = project();
    let outside = ground.path().join("outside.sh");
    fs::write(&outside, "echo 1\n").expect("file");
    link(&ground, &outside, "tools/data/escapes.sh");
    let spaces = ground.spaces();
    let first = stamp(&spaces, "tools/data/escapes.sh");
    assert!(first.is_some());
    fs::write(&outside, "echo 2, longer\n").expect("write");
    settle();
    assert_eq!(stamp(&spaces, "tools/data/escapes.sh"), first);
}
