//! The known name that a mistyped one probably meant.

/// The nearest of `known` to `name`, if it is near at all: at most a third of it is different.
pub(super) fn nearest_of(
    name: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    if name.len() > 128 {
        return None;
    }
    known
        .map(|candidate| (distance(&name.to_ascii_lowercase(), candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace) between two names; letter case does not count.
fn distance(lower: &str, candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.to_ascii_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=candidate.len()).collect();
    for (at, left) in lower.chars().enumerate() {
        let mut diagonal = at;
        let mut current = at + 1;
        let mut next = Vec::with_capacity(row.len());
        next.push(current);
        for (right, above) in candidate.iter().zip(row.iter().skip(1)) {
            let replace = diagonal + usize::from(left != *right);
            current = replace.min(above + 1).min(current + 1);
            diagonal = *above;
            next.push(current);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_edits() {
        assert_eq!(distance("listenport", "listenPort"), 0);
        assert_eq!(distance("listnport", "listenPort"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_name_far_from_all_known_ones_gets_no_hint() {
        assert_eq!(nearest_of("zzzzzz", ["listenPort"].into_iter()), None);
        assert_eq!(
            nearest_of("listenPrt", ["listenPort"].into_iter()),
            Some("listenPort")
        );
    }
}
