//! Published studies, each a file; those of an experiment that exists lie beside it.
//!
//! A claim is a finding of a study, put as a question that figures can answer. A study whose
//! experiment tare does not have yet lists its claims all the same.

mod includeos_2015;

use tare_figures::claims::Published;

/// The published studies.
pub(crate) const STUDIES: &[&Published] = &[&includeos_2015::STUDY];

#[cfg(test)]
mod tests {
    use tare_figures::claims::cannot;

    use super::includeos_2015;
    use crate::catalogue;

    #[test]
    fn every_study_has_claims_and_its_tables_are_whole() {
        for study in &catalogue().studies {
            let found = catalogue().study(study.name).unwrap();
            assert_eq!(found.question, study.question);
            assert!(!study.claims.is_empty());
            for table in study.parsed() {
                assert!(!table.rows.is_empty(), "{}", table.title);
                assert!(!table.note.is_empty(), "{}", table.title);
                for row in &table.rows {
                    assert_eq!(row.len(), table.head.len(), "{row:?}");
                }
            }
        }
    }

    #[test]
    fn a_claim_without_its_experiment_names_it() {
        let study = includeos_2015::STUDY;
        assert_eq!(
            study.untold(&["noise"]).claims[0].finding,
            cannot("tare does not measure what a service costs yet (experiment service)")
        );
        assert_eq!(study.lacks(&["noise", "service", "stream"]), None);
    }
}
