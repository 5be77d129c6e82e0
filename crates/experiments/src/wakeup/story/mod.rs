//! How wakeup is shown.

mod measures;

use tare_report::View;
use tare_report::rows::Measure;

use super::{NAME, Wakeup};

impl View for Wakeup {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }
}
