//! The order of Debian's versions, as `dpkg --compare-versions` has it (deb-version(7)).
//!
//! The newest kernel in the store is found without the distribution's tools, since a store may have
//! been copied to another machine.

use std::cmp::Ordering;

/// Compares two versions, `[epoch:]upstream[-revision]`.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, upstream_a, revision_a) = split(a);
    let (epoch_b, upstream_b, revision_b) = split(b);
    compare_part(epoch_a, epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

fn split(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Compares by turns what is not a number, letter by letter, and numbers by value.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = cut(a, |c| !c.is_ascii_digit());
        let (text_b, rest_b) = cut(b, |c| !c.is_ascii_digit());
        let (number_a, rest_a) = cut(rest_a, |c| c.is_ascii_digit());
        let (number_b, rest_b) = cut(rest_b, |c| c.is_ascii_digit());
        let order = compare_text(text_a, text_b).then_with(|| compare_numbers(number_a, number_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn cut(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// The tilde sorts before the end, the end before letters, letters before all else.
fn compare_text(a: &str, b: &str) -> Ordering {
    let weight = |c: Option<char>| match c {
        Some('~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => i64::from(u32::from(c)),
        Some(c) => i64::from(u32::from(c)) + 0x11_0000,
    };
    let (mut a, mut b) = (a.chars(), b.chars());
    loop {
        let (next_a, next_b) = (a.next(), b.next());
        match weight(next_a).cmp(&weight(next_b)) {
            Ordering::Equal if next_a.is_none() => return Ordering::Equal,
            Ordering::Equal => {}
            order => return order,
        }
    }
}

/// Compares without converting: a number may have any length.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const VERSIONS: [&str; 12] = [
        "6.1.176-1",
        "6.1.192-2",
        "6.1.192-10",
        "6.1.192-2+b1",
        "6.12.117-1~deb12u1",
        "6.12.117-1~deb12u2",
        "6.12.117-1",
        "6.12.9-1",
        "6.12~rc3-1",
        "6.12-1",
        "1:5.0-1",
        "6.012.9-1",
    ];

    #[test]
    fn the_order_is_that_of_dpkg() {
        if Command::new("dpkg").arg("--version").output().is_err() {
            return tare_testkit::skip("dpkg", "it is not installed");
        }
        for a in VERSIONS {
            for b in VERSIONS {
                let is = |relation: &str| {
                    let dpkg = Command::new("dpkg")
                        .args(["--compare-versions", a, relation, b])
                        .status();
                    dpkg.unwrap().success()
                };
                let order = compare(a, b);
                assert_eq!(order == Ordering::Less, is("lt"), "{a} {b}");
                assert_eq!(order == Ordering::Equal, is("eq"), "{a} {b}");
            }
        }
    }
}
