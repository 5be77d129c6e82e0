//! The options that the kernel was built with, where they can be read.
//!
//! Whether a kernel has RT_GROUP_SCHED, which preemption model it starts with, or
//! whether it carries lockdep cannot be seen reliably anywhere else.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::fact::Fact;
use crate::source::Source;

/// No configuration unpacks to more than a few hundred KiB; a damaged file must not unpack to
/// gigabytes.
const MAX_UNPACKED_BYTES: u64 = 4 << 20;

/// The build options of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelConfig {
    /// The file they were read from.
    pub(super) path: String,
    options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// Looks where kernels and distributions put the configuration.
    pub(super) fn find(source: &Source) -> Fact<Self> {
        let release = source.line("/proc/sys/kernel/osrelease").into_known();
        // The release is about to become a part of a path.
        let release = release.filter(|release| !release.is_empty() && !release.contains('/'));
        let packed = || {
            let path = "/proc/config.gz";
            let bytes = source.bytes(path).into_known()?;
            let mut text = Vec::new();
            let mut unpacked = GzDecoder::new(&*bytes).take(MAX_UNPACKED_BYTES);
            unpacked.read_to_end(&mut text).ok()?;
            Self::parse(path, &String::from_utf8_lossy(&text))
        };
        let plain = |path: String| Self::parse(&path, source.text(&path).known()?);
        let files = |release| {
            [
                format!("/boot/config-{release}"),
                format!("/lib/modules/{release}/config"),
                format!("/usr/lib/modules/{release}/config"),
            ]
        };
        packed()
            .or_else(|| release.and_then(|release| files(release).into_iter().find_map(plain)))
            .map_or_else(
                || {
                    Fact::unknown(
                        "the kernel's build options cannot be read: neither /proc/config.gz nor \
                         /boot/config-* nor /lib/modules/*/config for this kernel",
                    )
                },
                Fact::Known,
            )
    }

    /// Returns whether an option is built in or a module.
    pub(crate) fn has(&self, option: &str) -> bool {
        matches!(self.value(option), Some("y" | "m"))
    }

    /// Returns the value of an option.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    fn parse(path: &str, text: &str) -> Option<Self> {
        let options = text.lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('"').to_owned()))
        });
        let options: BTreeMap<String, String> = options.collect();
        (!options.is_empty()).then(|| Self {
            path: path.to_owned(),
            options,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::tests::fixtures::Tree;

    const TEXT: &str =
        "# comment\nCONFIG_HZ=250\nCONFIG_PREEMPT_DYNAMIC=y\n# CONFIG_KASAN is not set\n";

    #[test]
    fn the_packed_configuration_of_the_kernel_itself_is_read() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(TEXT.as_bytes()).unwrap();
        let tree = Tree::new().bytes("/proc/config.gz", &packed.finish().unwrap());
        let config = KernelConfig::find(&tree.source()).into_known().unwrap();
        assert_eq!(config.path, "/proc/config.gz");
        assert_eq!(config.value("HZ"), Some("250"));
        assert!(config.has("PREEMPT_DYNAMIC") && !config.has("KASAN"));
    }

    #[test]
    fn the_distributions_file_stands_in() {
        let tree = Tree::new()
            .file("/proc/config.gz", "not gzip")
            .file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
            .file("/boot/config-6.1.0-18-amd64", TEXT);
        let config = KernelConfig::find(&tree.source()).into_known().unwrap();
        assert_eq!(config.path, "/boot/config-6.1.0-18-amd64");
    }
}
