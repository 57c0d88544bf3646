//! Frozen chains: what they hold on to, how they differ, how two are settled.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use kiwi_chain::{Caches, Difference, Mode, Pins, Plan, Side, compare, freeze, plan, settle, versions};
use kiwi_model::lockfile::{LockEnvironment, Lockfile};
use kiwi_model::{Digest, Pin, Space, ToolRef};
use support::{Memory, runtime};

const AT: &str = "2026-01-24T12:00:00Z";

fn leaf(version: &str, executor: &str) -> String {
    format!("tool_id: job\nversion: \"{version}\"\ntool_type: script\nexecutor: {executor}\ncategory: data")
}

fn runtimes(catalog: Memory, versions: &[&str]) -> Memory {
    versions.iter().fold(catalog, |catalog, version| {
        catalog.with(Space::Project, &runtime("rt", version, ""), &["a", "b"])
    })
}

fn locked(catalog: &Memory, ask: &str, lock: &Lockfile) -> Plan {
    plan(catalog, &ToolRef::parse(ask).unwrap(), &Pins::from(lock), Mode::Strict, &Caches::default()).unwrap()
}

fn frozen(catalog: &Memory, ask: &str) -> Lockfile {
    freeze(&catalog.plan(ask).unwrap(), None, AT).unwrap()
}

fn names(plan: &Plan) -> Vec<String> {
    plan.tools().iter().map(|tool| tool.name()).collect()
}

fn words(differences: &[Difference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn a_frozen_chain_is_kept_when_newer_versions_appear() {
    let job = leaf("1.2.0", "rt");
    let day_one = runtimes(Memory::system().with(Space::Project, &job, &[]), &["3.11.0"]);
    let lock = frozen(&day_one, "job");
    let day_thirty = runtimes(Memory::system().with(Space::Project, &job, &[]), &["3.11.0", "3.12.0"]);
    assert_eq!(names(&day_thirty.plan("job").unwrap())[1], "rt@3.12.0");
    let plan = locked(&day_thirty, "job", &lock);
    assert_eq!(names(&plan), ["job@1.2.0", "rt@3.11.0", "subprocess@1.0.0"]);
    assert_eq!(compare(&lock, &freeze(&plan, None, "later").unwrap()), []);
}

#[test]
fn the_leaf_is_pinned_too_and_a_newer_space_does_not_take_over() {
    let old = Memory::system().with(Space::User, &leaf("1.0.0", "rt"), &[]).with(
        Space::User,
        &runtime("rt", "1.0.0", ""),
        &[],
    );
    let lock = frozen(&old, "job");
    let new = old
        .with(Space::User, &leaf("1.1.0", "rt"), &[])
        .with(Space::Project, &leaf("2.0.0", "rt"), &[])
        .with(Space::Project, &runtime("rt", "2.0.0", ""), &[]);
    assert_eq!(names(&new.plan("job").unwrap())[..2], ["job@2.0.0", "rt@2.0.0"]);
    assert_eq!(names(&locked(&new, "job", &lock))[..2], ["job@1.0.0", "rt@1.0.0"]);
    // What the caller asks for comes before what was agreed.
    assert_eq!(names(&locked(&new, "job@2.0.0", &lock))[..2], ["job@2.0.0", "rt@1.0.0"]);
}

#[test]
fn prereleases_and_builds_are_pinned_exactly() {
    let job = leaf("1.0.0", "{id: rt, version: \"^2\"}");
    let with = |versions: &[&str]| runtimes(Memory::system().with(Space::Project, &job, &[]), versions);
    let lock = frozen(&with(&["2.0.0-beta.1"]), "job");
    let plan = locked(&with(&["2.0.0-beta.1", "2.0.0", "2.1.0"]), "job", &lock);
    assert_eq!(names(&plan)[1], "rt@2.0.0-beta.1");
    let lock = frozen(&with(&["2.0.0+build.5"]), "job");
    let plan = locked(&with(&["2.0.0+build.5", "2.0.0+build.6"]), "job", &lock);
    assert_eq!(names(&plan)[1], "rt@2.0.0+build.5");
}

#[test]
fn a_pin_that_no_longer_fits_gives_way_and_is_reported() {
    let lock = frozen(
        &runtimes(Memory::system().with(Space::Project, &leaf("1.0.0", "rt"), &[]), &["1.0.0"]),
        "job",
    );
    // The leaf now asks for more than what was agreed.
    let now = runtimes(
        Memory::system().with(Space::Project, &leaf("1.0.0", "{id: rt, version: \"^2\"}"), &[]),
        &["1.0.0", "2.0.0"],
    );
    let plan = locked(&now, "job", &lock);
    assert_eq!(names(&plan)[1], "rt@2.0.0");
    let told = words(&compare(&lock, &freeze(&plan, None, AT).unwrap()));
    assert!(told.iter().any(|line| line == "link 2 `rt`: version 1.0.0 → 2.0.0"), "{told:?}");
    assert!(told.iter().any(|line| line == "link 1 `job`: the manifest changed"), "{told:?}");
}

#[test]
fn every_difference_is_told_at_once() {
    let catalog = Memory::system().with(Space::Project, &leaf("1.0.0", "rt"), &[]).with(
        Space::Project,
        &runtime("rt", "1.0.0", ""),
        &["a", "b"],
    );
    let mut old = frozen(&catalog, "job");
    old.environment = Some(LockEnvironment {
        python: Some("3.11.7".into()),
        requires: vec!["six==1.16.0".parse().unwrap(), "gone==1".parse().unwrap()],
        ..LockEnvironment::default()
    });
    let moved = Memory::system()
        .with(Space::Project, &leaf("1.0.1", "rt"), &["extra"])
        .with(Space::Project, &runtime("rt", "1.0.0", "tags: [x]"), &["a", "c"])
        .map_last(|tool| tool.files[0].entry.sha256 = Digest::of(b"other"));
    let mut new = frozen(&moved, "job");
    new.environment = Some(LockEnvironment {
        python: Some("3.12.1".into()),
        requires: vec!["six==1.17.0".parse().unwrap()],
        ..LockEnvironment::default()
    });
    new.upstream = Some(serde_json::json!({"server": "github"}));
    new.resolved_chain[1].space = Some(Space::User);
    let short = |text: &str| text.get(..19).unwrap().to_owned();
    let integrity = |lock: &Lockfile, at: usize| short(&lock.resolved_chain[at].integrity.to_string());
    let hash = |bytes: &[u8]| short(&Digest::of(bytes).to_string());
    let arrow = |old: String, new: String| format!("{old}… → {new}…");
    assert_eq!(
        words(&compare(&old, &new)),
        [
            "link 1 `job`: version 1.0.0 → 1.0.1".to_owned(),
            format!("link 1 `job`: integrity {}", arrow(integrity(&old, 0), integrity(&new, 0))),
            format!("link 2 `rt`: integrity {}", arrow(integrity(&old, 1), integrity(&new, 1))),
            format!("link 2 `rt`: file `a` {}", arrow(hash(b"a"), hash(b"other"))),
            format!("link 2 `rt`: file `b` {}… → none", hash(b"b")),
            format!("link 2 `rt`: file `c` none → {}…", hash(b"c")),
            "link 2 `rt`: space project → user".to_owned(),
            "python 3.11.7 → 3.12.1".to_owned(),
            "package `gone` 1 → none".to_owned(),
            "package `six` 1.16.0 → 1.17.0".to_owned(),
            "definition of the upstream tool none → {\"server\":\"github\"}".to_owned(),
        ]
    );
    new.resolved_chain.remove(1);
    let told = words(&compare(&old, &new));
    assert_eq!(told[0], "links in the chain 3 → 2");
    assert!(told.contains(&"link 2 `rt`: tool rt → subprocess".to_owned()), "{told:?}");
    assert!(told.contains(&"link 3 `subprocess`: tool subprocess@1.0.0 → none".to_owned()), "{told:?}");
}

#[test]
fn programs_get_the_same_differences_as_data() {
    let catalog = Memory::system().with(Space::Project, &leaf("1.0.0", "bash_runtime"), &["x.sh"]);
    let old = frozen(&catalog, "job");
    let mut new = old.clone();
    new.resolved_chain[1].version = "9.0.0".parse().unwrap();
    assert_eq!(
        serde_json::to_value(compare(&old, &new)).unwrap(),
        serde_json::json!([{"position": 1, "tool": "bash_runtime", "field": "version", "old": "1.0.0", "new": "9.0.0"}])
    );
}

#[test]
fn all_allowed_versions_are_listed_nearest_and_highest_first() {
    let catalog = runtimes(Memory::system(), &["1.0.0", "2.0.0-beta.1", "1.5.0"]).with(
        Space::User,
        &runtime("rt", "3.0.0", ""),
        &[],
    );
    let list = |ask: &str| -> Vec<String> {
        let all = versions(&catalog, &ToolRef::parse(ask).unwrap()).unwrap();
        all.iter().map(|candidate| candidate.version.to_string()).collect()
    };
    assert_eq!(list("rt"), ["2.0.0-beta.1", "1.5.0", "1.0.0", "3.0.0"]);
    assert_eq!(list("rt@^1"), ["1.5.0", "1.0.0"]);
    assert_eq!(list("rt@^2"), ["2.0.0-beta.1"]);
    assert_eq!(list("nobody"), Vec::<String>::new());
}

fn pinned(pins: &[&str]) -> LockEnvironment {
    let requires: Vec<Pin> = pins.iter().map(|pin| pin.parse().unwrap()).collect();
    LockEnvironment { python: Some("3.11.7".into()), requires, ..LockEnvironment::default() }
}

#[test]
fn ours_theirs_and_a_merge_that_has_one_meaning() {
    let with = |version: &str| {
        runtimes(Memory::system().with(Space::Project, &leaf("1.0.0", "rt"), &[]), &[version])
    };
    let mut ours = frozen(&with("1.4.0"), "job");
    let mut theirs = frozen(&with("1.5.0"), "job");
    ours.environment = Some(pinned(&["six==1.17.0", "only-ours==1"]));
    theirs.environment = Some(pinned(&["six==1.9.0", "only-theirs==2"]));
    theirs.generated_at = "2026-02-01T00:00:00Z".into();
    ours.rest.insert("note".into(), "kept".into());
    assert_eq!(settle(&ours, &theirs, Side::Ours).unwrap(), ours);
    assert_eq!(settle(&ours, &theirs, Side::Theirs).unwrap(), theirs);
    let merged = settle(&ours, &theirs, Side::Merge).unwrap();
    assert_eq!(merged.resolved_chain, theirs.resolved_chain);
    assert_eq!(merged.environment, Some(pinned(&["only-ours==1", "only-theirs==2", "six==1.17.0"])));
    assert_eq!(
        (merged.generated_at.as_str(), merged.rest.get("note").is_some()),
        ("2026-02-01T00:00:00Z", true)
    );
    // What comes out is a lockfile that agrees with itself, and the same from either side.
    assert_eq!(Lockfile::parse(&merged.to_text()).unwrap(), merged);
    let other_way = settle(&theirs, &ours, Side::Merge).unwrap();
    assert_eq!(
        (&other_way.resolved_chain, &other_way.environment),
        (&merged.resolved_chain, &merged.environment)
    );
}

#[test]
fn a_merge_that_would_have_to_choose_is_refused_with_the_reasons() {
    let base = runtimes(Memory::system().with(Space::Project, &leaf("1.0.0", "rt"), &[]), &["1.0.0"]);
    let ours = frozen(&base, "job");
    // One version, two contents.
    let mut theirs = ours.clone();
    theirs.resolved_chain[1].integrity = Digest::of(b"else");
    theirs.resolved_chain[1].files.insert("a".into(), Digest::of(b"else"));
    let told = words(&settle(&ours, &theirs, Side::Merge).unwrap_err());
    assert!(
        told[0].starts_with("link 2 `rt`: integrity ") && told[1].starts_with("link 2 `rt`: file `a`"),
        "{told:?}"
    );
    // Another tool in the chain.
    let native = Memory::system().with(Space::Project, &leaf("1.0.0", "bash_runtime"), &["x.sh"]);
    let told = words(&settle(&ours, &frozen(&native, "job"), Side::Merge).unwrap_err());
    assert!(told.contains(&"link 2 `rt`: tool rt → bash_runtime".to_owned()), "{told:?}");
    // One version of a package, two contents.
    let (mut ours, mut theirs) = (ours.clone(), ours);
    ours.environment = Some(pinned(&[&format!("six==1 {}", Digest::of(b"1"))]));
    theirs.environment = Some(pinned(&[&format!("six==1 {}", Digest::of(b"2"))]));
    assert_eq!(settle(&ours, &theirs, Side::Merge).unwrap_err().len(), 1);
}
