//! Published studies of several experiments, each a file; those of one lie in its folder.
//!
//! A claim is a finding of a study, put as a question that figures can answer.

mod includeos_2015;

use tare_figures::claims::Published;

/// The published studies.
pub(crate) const STUDIES: &[&Published] = &[&includeos_2015::STUDY];

#[cfg(test)]
mod tests {
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
}
