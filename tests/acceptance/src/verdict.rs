//! Figures with their bounds, printed as they come.

use std::error::Error;

/// The verdict on all bounds.
#[derive(Debug, Default)]
pub struct Verdicts {
    failed: usize,
}

impl Verdicts {
    /// Prints a figure that must be from `least` to `most`.
    pub fn within(&mut self, what: &str, figure: f64, least: f64, most: f64) {
        let holds = (least..=most).contains(&figure);
        let bound = if least > f64::MIN {
            format!("{least} to {most}")
        } else {
            format!("at most {most}")
        };
        self.put(what, figure, &bound, holds);
    }

    /// Prints a figure that must not exceed `most`.
    pub fn at_most(&mut self, what: &str, figure: f64, most: f64) {
        self.within(what, figure, f64::MIN, most);
    }

    /// Prints a figure that must not be below `least`.
    pub fn at_least(&mut self, what: &str, figure: f64, least: f64) {
        self.put(what, figure, &format!("at least {least}"), figure >= least);
    }

    /// Prints why a check did not get its figures, which counts as a figure that does not hold.
    pub fn missing(&mut self, check: &str, why: &dyn Error) {
        println!("FAILS  {check}: {why}");
        self.failed += 1;
    }

    /// Returns whether every figure so far was within its bounds.
    pub fn all_hold(&self) -> bool {
        self.failed == 0
    }

    fn put(&mut self, what: &str, figure: f64, bound: &str, holds: bool) {
        let word = if holds { "holds" } else { "FAILS" };
        println!("{word}  {what}: {figure:.3} ({bound})");
        self.failed += usize::from(!holds);
    }
}
