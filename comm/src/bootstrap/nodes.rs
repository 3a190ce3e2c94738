//! Slurm's short form of a list of hosts, as in `node[03-05,9],login1`.

/// The first host of the list, and whether it is the only one. `None` if a bracket is not closed
/// or the list names nobody.
pub(super) fn first(list: &str) -> Option<(String, bool)> {
    let (mut host, mut only, mut rest) = (String::new(), true, list.trim());
    while let Some(at) = rest.find(['[', ',']) {
        host.push_str(&rest[..at]);
        if rest[at..].starts_with(',') {
            return (!host.is_empty()).then_some((host, false));
        }
        let (numbers, after) = rest[at + 1..].split_once(']')?;
        let end = numbers.find(['-', ',']).unwrap_or(numbers.len());
        only &= end == numbers.len();
        host.push_str(&numbers[..end]);
        rest = after;
    }
    host.push_str(rest);
    (!host.is_empty()).then_some((host, only))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_host_is_found_in_every_form_of_list() {
        for (list, host, only) in [
            ("node7", "node7", true),
            ("node7,node9", "node7", false),
            ("node[03-05,9]", "node03", false),
            ("node[9,03-05],login1", "node9", false),
            ("node[12]", "node12", true),
            ("rack[1-2]node[3-4].local", "rack1node3.local", false),
            ("login1,node[3-4]", "login1", false),
        ] {
            assert_eq!(first(list), Some((host.into(), only)), "{list}");
        }
    }

    #[test]
    fn a_list_that_names_nobody_has_no_first_host() {
        for list in ["", ",", "node[1-2"] {
            assert_eq!(first(list), None, "{list}");
        }
    }
}
