//! What `apt-cache show` prints: paragraphs of `Field: value`.

/// A package that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) package: String,
    pub(super) version: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
    pub(super) depends: String,
    /// Whether it is built from the distribution's main kernel, not from another series.
    pub(super) is_default: bool,
}

/// Reads paragraphs; those of packages that can't be fetched (installed by hand, for instance) are
/// left out.
pub(super) fn offers(text: &str) -> Vec<Offer> {
    text.split("\n\n").filter_map(offer).collect()
}

fn offer(paragraph: &str) -> Option<Offer> {
    let field = |name: &str| {
        paragraph.lines().find_map(|line| {
            let value = line.strip_prefix(name)?.strip_prefix(':')?;
            Some(value.trim().to_owned())
        })
    };
    field("Filename")?;
    let sha256 = field("SHA256")
        .filter(|sum| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let version = field("Version")?;
    // The other series is built from linux-signed-6.12-amd64; a backport keeps the name, and is
    // told by its version.
    let source = field("Source").unwrap_or_default();
    let is_main = source.split_whitespace().next() == Some("linux-signed-amd64");
    Some(Offer {
        is_default: is_main && !version.contains("~bpo"),
        package: field("Package")?,
        version,
        bytes: field("Size")?.parse().ok()?,
        sha256: sha256.to_ascii_lowercase(),
        depends: field("Depends").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_fetched_is_an_offer() {
        let sum = "0a".repeat(32);
        let text = format!(
            "Package: a\nSource: linux-signed-amd64 (1)\nVersion: 1\nSize: 5\nSHA256: {sum}\nFilename: pool/a.deb\nDepends: b (= 1)\n\
             \nPackage: c\nVersion: 2\nStatus: install ok installed\n"
        );
        let offers = offers(&text);
        assert_eq!(offers.len(), 1);
        assert_eq!(offers[0].depends, "b (= 1)");
        assert!(offers[0].is_default);
        assert_eq!((offers[0].bytes, &offers[0].sha256), (5, &sum));
    }
}
