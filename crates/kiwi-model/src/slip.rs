//! What somebody meant who wrote nearly that.

/// So many letters may be wrong, in a long word.
const MOST: usize = 2;

/// The known word that a written one is a slip of, if there is one so near.
pub fn meant<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = MOST.min(written.chars().count() / 3);
    let distance = |word: &'a str| (strsim::osa_distance(written, word), word);
    known.into_iter().map(distance).filter(|(distance, _)| *distance <= most).min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_meant_and_others_not() {
        let known = ["requires", "requires_env", "tags"];
        assert_eq!(meant("require", known), Some("requires"));
        assert_eq!(meant("requries", known), Some("requires"));
        assert_eq!(meant("tag", known), Some("tags"));
        assert_eq!(meant("to", known), None);
        assert_eq!(meant("author", known), None);
    }
}
