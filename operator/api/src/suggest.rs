//! The nearest known word to a misspelt one.
//!
//! **Invariant:** no suggestion rather than a far one: at most a third of the letters differ.

/// The word of `known` nearest to `word`, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (rank(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A beginning of the known word (`replica` for `replicasPerGroup`) is as near as one edit.
fn rank(word: &str, candidate: &str) -> usize {
    let (lower, known) = (word.to_lowercase(), candidate.to_lowercase());
    let edits = distance(&lower, &known);
    if lower.len() >= 4 && known.starts_with(&lower) {
        edits.min(1)
    } else {
        edits
    }
}

/// Edits from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(&b) {
            let above = *slot;
            let best = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(left + 1);
            diagonal = above;
            *slot = best;
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_its_neighbour() {
        let known = ["replicas", "config", "groups", "namePrefix"];
        assert_eq!(nearest("replica", known), Some("replicas"));
        assert_eq!(nearest("nameprefix", known), Some("namePrefix"));
        assert_eq!(nearest("gruops", known), Some("groups"));
        assert_eq!(
            nearest("replica", ["groups", "replicasPerGroup"]),
            Some("replicasPerGroup")
        );
    }

    #[test]
    fn a_far_word_finds_nothing() {
        assert_eq!(nearest("affinity", ["replicas", "config"]), None);
    }
}
