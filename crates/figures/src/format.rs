//! Numbers as people read them: grouped, with a unit, and with no more digits than are true.
//!
//! A figure is written with three significant digits unless something is known of its uncertainty:
//! then the last digit is the second one of the uncertainty. A duration is never written finer than
//! the timer's step allows.

/// The number of significant digits of a figure of which no uncertainty is known.
const DIGITS: i32 = 3;

/// Writes numbers for one medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Between groups of three digits.
    group: char,
    /// Between a number and its unit.
    gap: char,
}

impl Numbers {
    /// For terminals, logs and JSON: a comma between thousands, as in `1,203`.
    pub const PLAIN: Self = Self {
        group: ',',
        gap: ' ',
    };
    /// For typeset pages: a thin space between thousands that no line is broken at.
    pub const TYPESET: Self = Self {
        group: '\u{202f}',
        gap: '\u{a0}',
    };

    /// Writes a whole number: `1,203`.
    #[must_use]
    pub fn count(self, count: u64) -> String {
        self.grouped(&count.to_string())
    }

    /// Writes a number with at most this many digits after the point: `1,203.50`.
    #[must_use]
    pub fn fixed(self, value: f64, decimals: usize) -> String {
        self.grouped(&plain(value, decimals))
    }

    /// Writes a number with three significant digits, more in front of the point: `906`, `12,346`,
    /// `0.0423`.
    #[must_use]
    pub fn rounded(self, value: f64) -> String {
        self.fixed(value, decimals_for(value, DIGITS))
    }

    /// Writes a value so that its last digit is the second one of its uncertainty: 906.2634 with
    /// 0.0061 is `906.2634`, 906.26 with 12 is `906`.
    #[must_use]
    pub fn within(self, value: f64, uncertainty: f64) -> String {
        if !(uncertainty.is_finite() && uncertainty > 0.0) {
            return self.exact(value);
        }
        self.fixed(value, decimals_for(uncertainty, 2))
    }

    /// Writes a number with up to three digits after the point and no zeros at its end.
    #[must_use]
    pub fn exact(self, value: f64) -> String {
        self.fixed(value, decimals_of(value))
    }

    /// Writes a share of 1 as a percentage: `0.42 %`, `0 %`, `< 0.0001 %`, `99.996 %`. Only all is
    /// `100 %`.
    #[must_use]
    pub fn percent(self, share: f64) -> String {
        let percent = share * 100.0;
        let gap = self.gap;
        if percent > 0.0 && percent < 1e-4 {
            return format!("<{gap}0.0001{gap}%");
        }
        // What adding may lose of a whole is far less than the least that is written.
        let rest = 100.0 - percent;
        if rest > 1e-9 && rest < 1e-4 {
            return format!(">{gap}99.9999{gap}%");
        }
        let digits = if percent.abs() < 1.0 { 2 } else { DIGITS };
        let decimals = match rest {
            _ if percent == 0.0 => 0,
            // With three digits it would be 100.
            rest if (1e-4..=0.05).contains(&rest) => decimals_for(rest, 1),
            _ => decimals_for(percent, digits),
        };
        format!("{}{gap}%", self.fixed(percent, decimals))
    }

    /// Writes a rate per second: `1,203/s`, `0.25/s`.
    #[must_use]
    pub fn rate(self, per_second: f64) -> String {
        format!("{}/s", self.short(per_second))
    }

    /// Writes a number with three significant digits and no zeros behind the point at its end.
    #[must_use]
    pub fn short(self, value: f64) -> String {
        self.grouped(trimmed(&plain(value, decimals_for(value, DIGITS))))
    }

    /// Writes a duration in the unit that fits, with three significant digits but not finer than
    /// `resolution_ns` allows: `183 µs`, `< 0.001 ns`.
    #[must_use]
    pub fn ns(self, ns: f64, resolution_ns: Option<f64>) -> String {
        if ns > 0.0 && ns < 1e-3 {
            let gap = self.gap;
            return format!("<{gap}0.001{gap}ns");
        }
        let unit = Unit::of(ns);
        let value = ns / unit.ns;
        let wanted = decimals_for(value, DIGITS);
        let decimals = resolution_ns.map_or(wanted, |step| {
            // Half a step is what rounding may add to what the timer already did.
            wanted.min(decimals_for(step / 2.0 / unit.ns, 1))
        });
        format!("{}{}{}", self.fixed(value, decimals), self.gap, unit.name)
    }

    /// Writes a tick of a time axis: like [`Numbers::ns`], but without zeros behind the point.
    #[must_use]
    pub fn ns_tick(self, ns: f64) -> String {
        if ns == 0.0 {
            return "0".to_owned();
        }
        let unit = Unit::of(ns * (1.0 + 1e-9));
        let value = plain(ns / unit.ns, 6);
        let value = self.grouped(trimmed(&value));
        format!("{value}{}{}", self.gap, unit.name)
    }

    /// Writes a tick of an axis of plain numbers: `20`, `1,500`, `2 M`.
    #[must_use]
    pub fn tick(self, value: f64) -> String {
        let (value, suffix) = match value.abs() {
            v if v >= 999_999_999.5 => (value / 1e9, Some('G')),
            v if v >= 999_999.5 => (value / 1e6, Some('M')),
            _ => (value, None),
        };
        let mut text = self.grouped(trimmed(&plain(value, 9)));
        if let Some(suffix) = suffix {
            text.extend([self.gap, suffix]);
        }
        text
    }

    /// Writes a size in bytes with a binary unit: `512 KiB`.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> String {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = bytes as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        format!("{}{}{}", self.short(value), self.gap, UNITS[unit])
    }

    /// Writes bytes per second with a decimal unit, as STREAM does: `8.94 GB/s`.
    #[must_use]
    pub fn byte_rate(self, per_second: f64) -> String {
        const UNITS: [(&str, f64); 4] = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];
        let unit = UNITS.iter().find(|(_, size)| per_second.abs() >= *size);
        let (name, size) = unit.unwrap_or(&UNITS[3]);
        self.with_unit(&self.short(per_second / size), name)
    }

    /// Joins a number and its unit as this medium does.
    #[must_use]
    pub fn with_unit(self, number: &str, unit: &str) -> String {
        format!("{number}{}{unit}", self.gap)
    }

    fn grouped(self, plain: &str) -> String {
        let (sign, digits) = match plain.strip_prefix('-') {
            Some(digits) => ("−", digits),
            None => ("", plain),
        };
        let (whole, fraction) = digits
            .split_once('.')
            .map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
        let mut text = String::from(sign);
        for (place, digit) in whole.chars().enumerate() {
            if place > 0 && (whole.len() - place).is_multiple_of(3) {
                text.push(self.group);
            }
            text.push(digit);
        }
        if let Some(fraction) = fraction {
            text.push('.');
            text.push_str(fraction);
        }
        text
    }
}

/// A unit of time.
struct Unit {
    name: &'static str,
    ns: f64,
}

impl Unit {
    /// Returns the unit in which a duration has one to three digits in front of the point.
    fn of(ns: f64) -> Self {
        let (name, ns) = match ns.abs() {
            // What would be rounded to 1,000 of a unit belongs to the next.
            v if v < 999.5 => ("ns", 1.0),
            v if v < 999.5e3 => ("µs", 1e3),
            v if v < 999.5e6 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Self { name, ns }
    }
}

/// Returns how many digits behind the point give `digits` significant ones, at most 12.
fn decimals_for(value: f64, digits: i32) -> usize {
    let value = value.abs();
    if !(value.is_finite() && value > 0.0) {
        return 0;
    }
    let first = value.log10().floor() as i32;
    // Rounding may carry into a new digit: 9.996 has three digits as 10.0.
    let carried = i32::from(value / 10_f64.powi(first) + 0.5 * 10_f64.powi(1 - digits) >= 10.0);
    (digits - 1 - first - carried).clamp(0, 12) as usize
}

/// Returns how many digits behind the point, at most three, are not zeros at the end.
fn decimals_of(value: f64) -> usize {
    let text = plain(value, 3);
    trimmed(&text)
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len())
}

fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // A negative number that rounds to nothing is nothing.
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| matches!(c, '0' | '.')) => digits.to_owned(),
        _ => text,
    }
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: Numbers = Numbers::PLAIN;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(N.count(0), "0");
        assert_eq!(N.count(999), "999");
        assert_eq!(N.count(1_203), "1,203");
        assert_eq!(N.count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(N.fixed(-1_234_567.891, 2), "−1,234,567.89");
        assert_eq!(N.fixed(-0.001, 2), "0.00");
        assert_eq!(Numbers::TYPESET.count(10_000), "10\u{202f}000");
    }

    #[test]
    fn three_digits_unless_more_is_known() {
        assert_eq!(N.rounded(906.263), "906");
        assert_eq!(N.rounded(0.042_34), "0.0423");
        assert_eq!(N.rounded(9.996), "10.0");
        assert_eq!(N.rounded(12_345.6), "12,346");
        assert_eq!(N.within(906.263_4, 0.006_1), "906.2634");
        assert_eq!(N.within(906.263_4, 12.0), "906");
        assert_eq!(N.within(880.0, 0.0), "880");
    }

    #[test]
    fn durations_take_the_unit_that_fits_and_no_digit_below_the_step() {
        assert_eq!(N.ns(0.0, None), "0 ns");
        assert_eq!(N.ns(4.48e-7, None), "< 0.001 ns");
        assert_eq!(N.ns(3.94, None), "3.94 ns");
        assert_eq!(N.ns(3.94, Some(1.0)), "3.9 ns");
        assert_eq!(N.ns(401.8, Some(10.0)), "402 ns");
        assert_eq!(N.ns(401.8, Some(40.0)), "402 ns");
        assert_eq!(N.ns(20.04, Some(10.0)), "20 ns");
        assert_eq!(N.ns(999.6, None), "1.00 µs");
        assert_eq!(N.ns(182_978.0, Some(10.0)), "183 µs");
        assert_eq!(N.ns(4_000_123.0, Some(10.0)), "4.00 ms");
        assert_eq!(N.ns(61e9, None), "61.0 s");
    }

    #[test]
    fn shares_and_rates() {
        assert_eq!(N.percent(0.0), "0 %");
        assert_eq!(N.percent(0.004_2), "0.42 %");
        assert_eq!(N.percent(0.000_001_23), "0.00012 %");
        assert_eq!(N.percent(0.000_000_1), "< 0.0001 %");
        assert_eq!(N.percent(0.61), "61.0 %");
        assert_eq!(N.percent(0.999_4), "99.9 %");
        assert_eq!(N.percent(0.999_5), "99.95 %");
        assert_eq!(N.percent(0.999_962), "99.996 %");
        assert_eq!(N.percent(0.999_998_96), "99.9999 %");
        assert_eq!(N.percent(0.999_999_9), "> 99.9999 %");
        assert_eq!(N.percent(1.0 - f64::EPSILON), "100 %");
        assert_eq!(N.percent(1.0), "100 %");
        assert_eq!(N.rate(1_203.2), "1,203/s");
        assert_eq!(N.rate(0.25), "0.25/s");
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        assert_eq!(N.ns_tick(100.0), "100 ns");
        assert_eq!(N.ns_tick(0.0), "0");
        assert_eq!(N.ns_tick(1_000.0), "1 µs");
        assert_eq!(N.ns_tick(2.5e6), "2.5 ms");
        assert_eq!(N.tick(0.000_5), "0.0005");
        assert_eq!(N.tick(100_000.0), "100,000");
        assert_eq!(N.tick(2e6), "2 M");
        assert_eq!(N.bytes(102_400), "100 KiB");
    }
}
