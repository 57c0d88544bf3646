//! What must hold for any bytes given to the reader of shell commands. Panics when it does not hold.
//!
//! Apart from the other bodies, since those are also compiled by rooms that know no gate.

use kiwi_gate::programs_of_line;

/// A command line is judged, twice the same, or refused. More of it is never less: what a line runs it also runs with
/// something behind it, and what stands behind it on a line of its own is found.
pub fn command(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(alone) = programs_of_line(&text) else { return };
    assert_eq!(programs_of_line(&text).as_ref(), Some(&alone), "read once, read twice");
    if let Some(more) = programs_of_line(&format!("{text}; rm x")) {
        assert!(more.len() >= alone.len(), "{alone:?} became {more:?}");
    }
    // A line may go on behind a backslash.
    if !text.ends_with('\\')
        && let Some(more) = programs_of_line(&format!("{text}\nrm x"))
    {
        assert_eq!(more.len(), alone.len() + 1, "{alone:?} became {more:?}");
        assert!(more.iter().any(|program| program == "rm x"), "{more:?}");
    }
    for (before, behind) in [("( ", "\n)"), ("{ ", "\n}"), ("true && ", "\n")] {
        if let Some(more) = programs_of_line(&format!("{before}{text}{behind}")) {
            assert!(more.len() >= alone.len(), "{alone:?} became {more:?}");
        }
    }
}
