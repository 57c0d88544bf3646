//! Names short enough to type.

/// Without letters that look like digits.
const ALPHABET: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'j', 'k', 'm',
    'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'y', 'z',
];
const LENGTH: u32 = 8;

/// Eight characters, chosen at random: forty bits.
pub(crate) fn fresh() -> String {
    // The low bits of a version 7 id are random.
    let random = uuid::Uuid::now_v7().as_u128();
    let character = |at: u32| {
        let index = usize::try_from(random >> (at * 5) & 31).unwrap_or(0);
        ALPHABET.get(index).copied().unwrap_or('0')
    };
    (0..LENGTH).map(character).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn they_are_short_and_all_different() {
        let all: std::collections::HashSet<String> = (0..5000).map(|_| super::fresh()).collect();
        assert_eq!(all.len(), 5000);
        assert!(all.iter().all(|id| id.len() == 8 && id.chars().all(|c| super::ALPHABET.contains(&c))));
        let firsts: std::collections::HashSet<char> = all.iter().filter_map(|id| id.chars().next()).collect();
        assert_eq!(firsts.len(), 32);
    }
}
