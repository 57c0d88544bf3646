//! Choosing versions and spaces along a chain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use kiwi_model::{ErrorKind, Explain, Space};
use support::{Memory, runtime, script};

/// The chain as `id@version/space …`, or `kind: message | hint`.
#[track_caller]
fn check(catalog: &Memory, ask: &str, expect: &str) {
    let got = match catalog.plan(ask) {
        Ok(plan) => plan
            .links()
            .iter()
            .map(|l| format!("{}@{}/{}", l.tool_id, l.version, l.space))
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => format!("{}: {} | {}", error.kind(), error, error.hint().unwrap_or_default()),
    };
    assert_eq!(got, expect);
}

#[test]
fn the_nearest_space_wins_and_within_it_the_highest_release() {
    let catalog = Memory::system()
        .with(Space::User, &runtime("rt", "3.0.0", ""), &[])
        .with(Space::Project, &runtime("rt", "1.0.0", ""), &[])
        .with(Space::Project, &runtime("rt", "1.2.0", ""), &[])
        .with(Space::Project, &runtime("rt", "2.0.0-beta.1", ""), &[])
        .with(Space::Project, &script("a", "1.0.0", "rt", ""), &[])
        .with(Space::Project, &script("b", "1.0.0", "{id: rt, version: \"^1.0, <1.2\"}", ""), &[])
        .with(Space::Project, &script("c", "1.0.0", "{id: rt, version: \"^3\"}", ""), &[])
        .with(Space::Project, &script("d", "1.0.0", "{id: rt, version: \"=2.0.0-beta.1\"}", ""), &[]);
    check(&catalog, "a", "a@1.0.0/project rt@1.2.0/project subprocess@1.0.0/system");
    check(&catalog, "b", "b@1.0.0/project rt@1.0.0/project subprocess@1.0.0/system");
    check(&catalog, "c", "c@1.0.0/project rt@3.0.0/user subprocess@1.0.0/system");
    check(&catalog, "d", "d@1.0.0/project rt@2.0.0-beta.1/project subprocess@1.0.0/system");
}

#[test]
fn a_prerelease_serves_when_there_is_no_release() {
    let catalog = Memory::system().with(Space::Project, &runtime("rt", "2.0.0-beta.1", ""), &[]).with(
        Space::Project,
        &script("a", "1.0.0", "rt", ""),
        &[],
    );
    check(&catalog, "a", "a@1.0.0/project rt@2.0.0-beta.1/project subprocess@1.0.0/system");
    check(&catalog, "rt@^2", "rt@2.0.0-beta.1/project subprocess@1.0.0/system");
}

#[test]
fn executors_are_looked_up_from_the_childs_space_downward() {
    let catalog = Memory::system()
        .with(Space::Project, &runtime("rt", "2.0.0", ""), &[])
        .with(Space::User, &runtime("rt", "1.0.0", ""), &[])
        .with(Space::User, &script("a", "1.0.0", "rt", ""), &[])
        .with(Space::Project, &runtime("mine", "1.0.0", ""), &[])
        .with(Space::User, &script("b", "1.0.0", "mine", ""), &[]);
    check(&catalog, "a", "a@1.0.0/user rt@1.0.0/user subprocess@1.0.0/system");
    check(
        &catalog,
        "b",
        "space_violation: `b@1.0.0` from the user space needs `mine`, which only the project space has | put `mine` into the user space, or move the tool up",
    );
}

#[test]
fn what_is_missing_is_named_with_the_nearest_names() {
    let catalog =
        Memory::system().with(Space::Project, &script("data_processor", "1.0.0", "pyton_runtime", ""), &[]);
    check(
        &catalog,
        "data_procesor",
        "not_found: there is no tool `data_procesor` | did you mean `data_processor`?",
    );
    check(
        &catalog,
        "zzz",
        "not_found: there is no tool `zzz` | `kiwi tool list` shows the tools that are here",
    );
    check(
        &catalog,
        "data_processor",
        "not_found: there is no tool `pyton_runtime`, which `data_processor@1.0.0` needs as its executor | did you mean `python_runtime`?",
    );
}

#[test]
fn circles_and_long_chains_are_shown() {
    let mut catalog = Memory::system();
    for (id, next) in [("a", "b"), ("b", "c"), ("c", "a"), ("self", "self")] {
        catalog = catalog.with(Space::Project, &script(id, "1.0.0", next, ""), &[]);
    }
    check(
        &catalog,
        "a",
        "cycle: the chain runs in a circle: a → b → c → a | one of these must name another executor; every chain ends in `subprocess` or `http_client`",
    );
    check(
        &catalog,
        "self",
        "cycle: the chain runs in a circle: self → self | one of these must name another executor; every chain ends in `subprocess` or `http_client`",
    );

    // `l1 → … → l9 → subprocess` has ten links and is the longest there may be.
    let mut catalog = Memory::system();
    for i in 0..10 {
        let next = if i == 9 { "subprocess".to_owned() } else { format!("l{}", i + 1) };
        catalog = catalog.with(Space::Project, &script(&format!("l{i}"), "1.0.0", &next, ""), &[]);
    }
    assert_eq!(catalog.plan("l1").unwrap().links().len(), 10);
    assert_eq!(catalog.plan("l0").map_err(|e| e.kind()).err(), Some(ErrorKind::TooDeep));
}

#[test]
fn clashing_requirements_are_both_named() {
    let bounded = "child_constraints: {reader: {min_version: \"1.0.0\", max_version: \"2.0.0\"}}\n";
    let catalog = Memory::system()
        .with(Space::Project, &runtime("processor", "1.0.0", bounded), &[])
        .with(Space::Project, &script("reader", "0.9.0", "processor", ""), &[])
        .with(Space::Project, &script("reader", "1.5.0", "processor", ""), &[])
        .with(Space::Project, &script("reader", "2.1.0", "processor", ""), &[])
        .with(Space::Project, &script("needs", "1.0.0", "{id: processor, version: \"^9\"}", ""), &[]);
    // The highest that everybody accepts, not the highest.
    check(&catalog, "reader", "reader@1.5.0/project processor@1.0.0/project subprocess@1.0.0/system");
    check(
        &catalog,
        "reader@^2",
        "version_conflict: no version of `reader` satisfies both `^2` (asked for) and `>=1.0.0, <=2.0.0` (child_constraints of `processor@1.0.0`): there is 2.1.0 (project), 1.5.0 (project), 0.9.0 (project) | loosen one of the requirements, or install a version that satisfies them",
    );
    check(
        &catalog,
        "reader@^7",
        "version_conflict: no version of `reader` satisfies `^7` (asked for): there is 2.1.0 (project), 1.5.0 (project), 0.9.0 (project) | loosen one of the requirements, or install a version that satisfies them",
    );
    check(
        &catalog,
        "needs",
        "version_conflict: no version of `processor` satisfies `^9` (executor of `needs@1.0.0`): there is 1.0.0 (project) | loosen one of the requirements, or install a version that satisfies them",
    );
}

#[test]
fn an_older_version_is_chosen_when_the_newest_cannot_rest_on_anything() {
    let catalog = Memory::system()
        .with(Space::Project, &runtime("rt", "1.0.0", ""), &[])
        .with(Space::Project, &script("a", "2.0.0", "{id: rt, version: \"^2\"}", ""), &[])
        .with(Space::Project, &script("a", "1.0.0", "{id: rt, version: \"^1\"}", ""), &[]);
    check(&catalog, "a", "a@1.0.0/project rt@1.0.0/project subprocess@1.0.0/system");
}

#[test]
fn bounds_that_nobody_else_contradicts_are_left_to_validation() {
    let bounded = "child_constraints: {reader: {min_version: \"1.0.0\", max_version: \"2.0.0\"}}\n";
    let catalog = Memory::system().with(Space::Project, &runtime("processor", "1.0.0", bounded), &[]).with(
        Space::Project,
        &script("reader", "0.9.0", "processor", ""),
        &[],
    );
    let plan = catalog.plan("reader").unwrap();
    assert_eq!(
        plan.report().issues,
        ["`processor` does not accept this version of `reader`: 0.9.0 is below the minimum 1.0.0"]
    );
    assert_eq!(plan.require().map_err(|e| e.kind()), Err(ErrorKind::ChainInvalid));
}
