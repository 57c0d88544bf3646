//! The verdicts of document 002, and those of the kernel page on top of it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and drives the real program"
)]

mod support;

use kiwi_chain::{Catalog, Identity, Mode, Report};
use kiwi_model::{Digest, ErrorKind, Explain, Space};
use support::{Memory, runtime, script};

fn report(catalog: &Memory, ask: &str) -> Report {
    catalog.plan(ask).unwrap().report().clone()
}

#[test]
fn document_002_valid_chain() {
    let catalog = Memory::system()
        .with(
            Space::Project,
            &runtime("my_runtime", "1.0.0", "inputs: [json_array]\noutputs: [json_object]\n"),
            &[],
        )
        .with(Space::Project, &script("csv_reader", "1.0.0", "my_runtime", "outputs: [json_array]\n"), &[]);
    let report = report(&catalog, "csv_reader");
    assert_eq!((report.valid(), report.issues.len(), report.validated_pairs), (true, 0, 2));
}

#[test]
fn document_002_invalid_chains() {
    let chain = |outputs: &str, inputs: &str| {
        let catalog = Memory::system()
            .with(Space::Project, &runtime("processor", "1.0.0", &format!("inputs: {inputs}\n")), &[])
            .with(
                Space::Project,
                &script("reader", "1.0.0", "processor", &format!("outputs: {outputs}\n")),
                &[],
            );
        report(&catalog, "reader").issues
    };
    assert_eq!(
        chain("[json_array]", "[json_object]"),
        ["type mismatch: `reader` provides [json_array], `processor` expects [json_object]"]
    );
    assert_eq!(
        chain("[data]", "[data, config]"),
        ["`processor` expects [config], which `reader` does not provide; it provides [data]"]
    );
    assert!(chain("[json, xml]", "[json]").is_empty());
    assert!(chain("[json]", "[json]").is_empty());
}

#[test]
fn document_002_version_constraints() {
    for (version, ok) in [("0.9.0", false), ("1.0.0", true), ("2.0.0", true), ("2.1.0", false)] {
        let bounded = "child_constraints: {reader: {min_version: \"1.0.0\", max_version: \"2.0.0\"}}\n";
        let catalog = Memory::system()
            .with(Space::Project, &runtime("processor", "1.0.0", bounded), &[])
            .with(Space::Project, &script("reader", version, "processor", ""), &[]);
        assert_eq!(report(&catalog, "reader").valid(), ok, "{version}");
    }
}

#[test]
fn a_parent_without_schemas_is_an_issue_or_where_lenient_a_warning() {
    let bare =
        "tool_id: bare\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: x}\n";
    let catalog = Memory::system().with(Space::Project, bare, &[]).with(
        Space::Project,
        &script("a", "1.0.0", "bare", ""),
        &[],
    );
    let strict = catalog.plan("a").unwrap();
    assert_eq!(strict.report().issues, ["`bare` defines no child_schemas, so it cannot accept `a`"]);
    let lenient = catalog.plan_in("a", Mode::Lenient).unwrap();
    assert!(lenient.report().valid());
    assert_eq!(lenient.warnings(), ["`bare` defines no child_schemas, so it cannot accept `a`"]);
}

#[test]
fn the_first_matching_schema_judges_and_all_issues_are_reported() {
    let choosy = "tool_id: choosy\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nconfig: {command: x}\ninputs: [a]\nvalidation:\n  child_schemas:\n    - {match: {manifest.language: lua}, schema: {properties: {manifest: {required: [entrypoint, license]}}}}\n    - {match: {tool_type: script}, schema: false}\n";
    let catalog = Memory::system()
        .with(Space::Project, choosy, &[])
        .with(Space::Project, &script("a", "1.0.0", "choosy", "language: lua\noutputs: [b]\n"), &[])
        .with(Space::Project, "tool_id: b\nversion: \"1.0.0\"\ntool_type: api\nexecutor: choosy\n", &[]);
    let issues = report(&catalog, "a").issues;
    assert_eq!(issues.len(), 3, "{issues:?}");
    assert!(
        issues[0].contains("entrypoint")
            && issues[1].contains("license")
            && issues[2].contains("type mismatch"),
        "{issues:?}"
    );
    assert_eq!(report(&catalog, "b").issues, ["`choosy` has no schema that matches `b` (type api)"]);
}

#[test]
fn shipped_runtimes_refuse_what_they_cannot_run() {
    let catalog = Memory::system()
        .with(Space::Project, &script("no_entry", "1.0.0", "python_runtime", ""), &[])
        .with(
            Space::Project,
            &script("wrong_file", "1.0.0", "python_runtime", "entrypoint: a.rb\n"),
            &["a.rb"],
        )
        .with(
            Space::Project,
            &script("wrong_language", "1.0.0", "python_runtime", "entrypoint: a.py\nlanguage: ruby\n"),
            &["a.py"],
        )
        .with(Space::Project, &script("builtin", "1.0.0", "kiwi_runtime", "entrypoint: info\n"), &[])
        .with(Space::Project, &script("no_command", "1.0.0", "subprocess", ""), &[]);
    for id in ["no_entry", "wrong_file", "wrong_language", "builtin", "no_command"] {
        assert_eq!(
            catalog.plan(id).unwrap().require().map_err(|e| e.kind()),
            Err(ErrorKind::ChainInvalid),
            "{id}"
        );
    }
}

#[test]
fn a_chain_of_one_link_is_valid_and_has_no_pairs() {
    let report = report(&Memory::system(), "subprocess");
    assert_eq!((report.valid(), report.validated_pairs), (true, 0));
}

#[test]
fn a_recorded_identity_that_differs_names_the_file() {
    let catalog = Memory::system()
        .with(Space::Project, &runtime("rt", "1.0.0", ""), &["tool.yaml", "helper.py", "new.py"])
        .map_last(|tool| {
            let mut files: Vec<_> = tool
                .files
                .iter()
                .map(|file| file.entry.clone())
                .filter(|entry| entry.path != "new.py")
                .collect();
            files[1].sha256 = Digest::of(b"before");
            tool.identity = Identity::Recorded { integrity: Digest::of(b"recorded"), files };
        });
    let error = catalog.plan("rt").unwrap().require().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IntegrityMismatch);
    let message = error.to_string();
    assert!(message.starts_with("integrity mismatch for rt@1.0.0: computed sha256:"), "{message}");
    assert!(
        message.contains("`helper.py` changed")
            && message.contains("`new.py` was added")
            && !message.contains("tool.yaml"),
        "{message}"
    );
}

/// Planning leaves out the pairs inside the binary; this is where they are judged.
#[test]
fn every_pair_inside_the_binary_is_accepted() {
    let catalog = Memory::system();
    let mut judged = 0;
    for id in catalog.ids() {
        let chain = kiwi_chain::resolve(&catalog, &id.into(), kiwi_chain::Pins::none()).unwrap();
        let report = kiwi_chain::validate(&chain, Mode::Strict, &kiwi_chain::Caches::default());
        assert_eq!(report.issues, Vec::<String>::new());
        judged += report.validated_pairs;
    }
    assert!(judged >= 6, "{judged}");
}
