//! The names of the language, and what to say about the others.

use crate::rule::{Function, Root};

/// Names that would make an answer depend on more than the request.
pub(super) const FORBIDDEN: [&str; 5] = ["time", "now", "random", "read_file", "http_get"];

pub(super) const EFFECTS: [&str; 3] = ["set", "apply", "emit"];

/// Functions with their fewest and most arguments; `None` leaves the most to the budget.
pub(super) const FUNCTIONS: [(&str, usize, Option<usize>); 10] = [
    ("matches", 2, Some(2)),
    ("has", 1, Some(1)),
    ("starts_with", 2, Some(2)),
    ("contains", 2, Some(2)),
    ("len", 1, Some(1)),
    ("min", 2, None),
    ("max", 2, None),
    ("bps_mul", 2, Some(2)),
    ("bps_div", 2, Some(2)),
    ("decay", 3, Some(3)),
];

/// A function that only needs the values of its arguments.
pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "starts_with" => Function::StartsWith,
        "contains" => Function::Contains,
        "len" => Function::Len,
        "min" => Function::Min,
        "max" => Function::Max,
        "bps_mul" => Function::BpsMul,
        "bps_div" => Function::BpsDiv,
        "decay" => Function::Decay,
        _ => return None,
    })
}

/// What is in scope; those with open fields take any path.
pub(super) const ROOTS: [(Root, bool); 9] = [
    (Root::Caller, false),
    (Root::Tool, false),
    (Root::Mode, false),
    (Root::Args, true),
    (Root::ToolType, false),
    (Root::Space, false),
    (Root::Mutates, false),
    (Root::State, true),
    (Root::Interactive, false),
];

/// The hint for an unknown name: the nearest known one, or all of them.
pub(super) fn suggestion<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    sigil: &str,
) -> String {
    let nearest = known
        .clone()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    if let Some((_, candidate)) = nearest {
        return format!("did you mean `{sigil}{candidate}`?");
    }
    let all: Vec<String> = known.map(|candidate| format!("`{sigil}{candidate}`")).collect();
    format!("known are {}", all.join(", "))
}
