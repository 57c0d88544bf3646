use super::*;

/// Every version of a small world: all that can go wrong about neighbours is in it.
fn versions() -> Vec<Version> {
    let early = [
        "",
        "0",
        "1",
        "2",
        "10",
        "a",
        "a.1",
        "a.b",
        "a-b",
        "alpha",
        "alpha.beta",
        "beta.2",
        "beta.11",
        "rc.1",
    ];
    let mut all = Vec::new();
    for (major, minor, patch) in (0..3).flat_map(|a| (0..3).flat_map(move |b| (0..4).map(move |c| (a, b, c))))
    {
        for early in early {
            let mut version = Version::new(major, minor, patch);
            version.pre = Prerelease::new(early).unwrap();
            all.push(version);
        }
    }
    all.push(Version::new(10, 0, 0));
    all.push(Version::new(u64::MAX, u64::MAX, u64::MAX));
    all
}

#[test]
fn keys_are_in_the_order_of_versions() {
    let all = versions();
    for one in &all {
        for other in &all {
            let order = one.cmp_precedence(other);
            assert_eq!(version_key(one).cmp(&version_key(other)), order, "{one} and {other}");
        }
    }
}

#[test]
fn bounds_let_through_what_the_requirement_does() {
    let all = versions();
    let numbers =
        ["0", "1", "2", "0.0", "0.1", "1.0", "1.2", "2.2", "0.0.0", "0.0.3", "0.1.2", "1.0.0", "1.2.3"];
    let early = ["0.0.0-a", "1.0.0-a.1", "1.2.3-beta.2", "0.1.2-rc.1", "2.0.0-0"];
    let single: Vec<String> = ["", "=", ">", ">=", "<", "<=", "~", "^"]
        .iter()
        .flat_map(|op| numbers.iter().chain(&early).map(move |number| format!("{op}{number}")))
        .chain(["*", "1.*", "1.2.*", "0.*"].map(str::to_owned))
        .collect();
    let mut checked = 0;
    let mut check = |text: &str| {
        let requirement = VersionReq::parse(text).unwrap();
        let bounds = Bounds::of(&requirement);
        for version in &all {
            assert_eq!(bounds.has(version), requirement.matches(version), "{text} and {version}: {bounds:?}");
            checked += 1;
        }
    };
    for one in &single {
        check(one);
        for other in single.iter().step_by(7).filter(|other| !other.contains('*') && !one.contains('*')) {
            check(&format!("{one}, {other}"));
        }
    }
    assert!(checked > 500_000, "{checked}");
    assert!(Bounds::any().has(&Version::new(1, 0, 0)));
    assert!(!Bounds::any().has(&Version::parse("1.0.0-a").unwrap()));
}
