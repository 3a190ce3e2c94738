//! What the environment says of settings and launchers.

use crate::doctor::finding::Finding;
use crate::doctor::readings::Readings;

/// Settings that make no sense, unknown ones, and launchers that disagree.
pub(super) fn variables(readings: &Readings) -> Option<Finding> {
    match &readings.config {
        Err(error) => Some(Finding::error(
            error,
            "every rank refuses to start with it",
            "correct the variable, or unset it",
        )),
        Ok(config) if config.warnings.is_empty() => None,
        Ok(config) => Some(Finding::warning(
            config.warnings.join("; "),
            "the job may run otherwise than it is meant to",
            "correct these variables, or unset them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    fn found(set: &[(&str, &str)]) -> Finding {
        variables(&Readings::with_variables(set)).unwrap()
    }

    #[test]
    fn a_misspelt_setting_is_a_warning_with_the_right_name() {
        let found = found(&[("TUTTI_DEADLIN", "3")]);
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.found.contains("did you mean TUTTI_DEADLINE"), "{found:?}");
    }

    #[test]
    fn a_value_without_sense_is_an_error() {
        let found = found(&[("TUTTI_TRANSPORT", "pigeon")]);
        assert_eq!(found.severity, Severity::Error);
        assert!(found.found.contains("auto, shm, tcp"), "{found:?}");
    }

    #[test]
    fn launchers_that_disagree_are_named() {
        let set = [
            ("RANK", "0"),
            ("WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
        ];
        let found = found(&set);
        assert!(found.found.contains("RANK=0 and OMPI_COMM_WORLD_RANK=1"), "{found:?}");
    }
}
