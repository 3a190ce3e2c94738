/// The known word that a misspelt one most likely stands for: the one that takes the fewest
/// insertions, deletions, changes and swaps of neighbours, if they are few for its length.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= 1 + candidate.chars().count() / 4)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KNOWN: [&str; 4] = ["ring", "recursive_doubling", "bw", "lat"];

    #[test]
    fn a_slip_of_the_finger_finds_its_word() {
        assert_eq!(nearest("rnig", KNOWN), Some("ring"));
        assert_eq!(nearest("recursive-dubling", KNOWN), Some("recursive_doubling"));
        assert_eq!(nearest("lta", KNOWN), Some("lat"));
    }

    #[test]
    fn a_word_like_no_other_finds_nothing() {
        assert_eq!(nearest("colour", KNOWN), None);
    }
}
