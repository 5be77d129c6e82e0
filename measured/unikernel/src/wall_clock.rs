//! The time from the battery-backed clock of a PC (MC146818).

/// The registers of a reading: seconds, minutes, hours, day, month, and year of the century.
pub const REGISTERS: [u8; 6] = [0, 2, 4, 7, 8, 9];
/// The register with the format of the others.
pub const STATUS_B: u8 = 11;
/// The bits of status B for hours up to 23, and for binary numbers.
const HAS_24_HOURS: u8 = 1 << 1;
const IS_BINARY: u8 = 1 << 2;
/// The bit of the hours for p.m., in 12-hour format.
const IS_AFTERNOON: u8 = 1 << 7;

/// Returns the time in seconds since 1970 of a reading, with the status read at the same time. None
/// if it is no valid time. The clock is assumed to run in UTC, as QEMU's does, and in this century.
pub fn since_1970(reading: [u8; 6], status: u8) -> Option<u64> {
    let is_afternoon = status & HAS_24_HOURS == 0 && reading[2] & IS_AFTERNOON != 0;
    let mut reading = reading;
    if status & HAS_24_HOURS == 0 {
        reading[2] &= !IS_AFTERNOON;
    }
    let number = |byte: u8| -> u64 {
        match status & IS_BINARY {
            0 => u64::from(byte >> 4) * 10 + u64::from(byte & 15),
            _ => byte.into(),
        }
    };
    let [second, minute, mut hour, day, month, year] = reading.map(number);
    if status & HAS_24_HOURS == 0 {
        hour = hour % 12 + if is_afternoon { 12 } else { 0 };
    }
    let is_time = second < 60 && minute < 60 && hour < 24;
    let is_date = (1..=31).contains(&day) && (1..=12).contains(&month) && year < 100;
    if !is_time || !is_date {
        return None;
    }
    Some(((days(2000 + year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Returns the days from 1970-01-01 to a date.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // With years that begin in March, a leap day is the last day of its year.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // Months of 31 and 30 days in turn, but for two of 31 in a row twice: 153 days in five months.
    let days = year * 365 + leap_days + (153 * month + 2) / 5 + day - 1;
    // From 0000-03-01 to 1970-01-01.
    days - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_time_is_understood() {
        const BCD: u8 = HAS_24_HOURS;
        const BINARY: u8 = HAS_24_HOURS | IS_BINARY;
        let new_year = 946_684_800;
        for (reading, status, seconds) in [
            ([0, 0, 0, 1, 1, 0], BCD, Some(new_year)),
            (
                [0x59, 0x59, 0x23, 0x31, 0x12, 0x99],
                BCD,
                Some(4_102_444_799),
            ),
            ([59, 59, 23, 31, 12, 99], BINARY, Some(4_102_444_799)),
            ([0, 0, 0, 0x29, 2, 0x24], BCD, Some(1_709_164_800)),
            ([0, 0, 0, 1, 3, 0x24], BCD, Some(1_709_251_200)),
            ([0, 0, 0x12, 1, 1, 0], 0, Some(new_year)),
            ([0, 0, 0x92, 1, 1, 0], 0, Some(new_year + 12 * 3600)),
            ([0, 0, 0x81, 1, 1, 0], 0, Some(new_year + 13 * 3600)),
            ([0xff; 6], BCD, None),
            ([0xff; 6], 0xff, None),
            ([0, 0, 0, 0, 0, 0], BCD, None),
        ] {
            assert_eq!(since_1970(reading, status), seconds, "{reading:?}");
        }
    }

    #[test]
    fn every_day_is_the_one_behind_the_last() {
        let mut expected = 10_957;
        for year in 2000..2100 {
            let leap = u64::from(year % 4 == 0);
            for (month, length) in
                (1..).zip([31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
            {
                for day in 1..=length {
                    assert_eq!(days(year, month, day), expected);
                    expected += 1;
                }
            }
        }
    }
}
