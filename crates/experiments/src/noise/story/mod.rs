//! How noise is shown.

mod measures;

use tare_report::View;
use tare_report::rows::Measure;

use super::{NAME, Noise};

impl View for Noise {
    fn experiment(&self) -> &'static str {
        NAME
    }

    fn measures(&self) -> &'static [Measure] {
        measures::MEASURES
    }
}
