//! The date of an answer.

use core::fmt;

/// A time in seconds since 1970, written as HTTP does (IMF-fixdate, RFC 9110 section 5.6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub u64);

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

const DAYS_OF_400_YEARS: u64 = 146_097;

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / 86_400, self.0 % 86_400);
        let weekday = DAYS[(days % 7) as usize];
        let (year, month, day) = calendar(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let month = MONTHS[month];
        write!(
            f,
            "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
        )
    }
}

/// Returns the year, the month from 0 and the day from 1 of a day counted from 1970.
fn calendar(days: u64) -> (u64, usize, u64) {
    // The pattern of leap years repeats every 400 years.
    let mut year = 1970 + days / DAYS_OF_400_YEARS * 400;
    let mut day = days % DAYS_OF_400_YEARS;
    while day >= 365 + leap(year) {
        day -= 365 + leap(year);
        year += 1;
    }
    let lengths = [31, 28 + leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    (year, month, day + 1)
}

fn leap(year: u64) -> u64 {
    u64::from(year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(Date(seconds).to_string(), text);
        }
    }
}
