//! What a module says of itself, in its section `.modinfo`: texts `key=value`, each ended by 0.

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// Holds the texts of a module's `.modinfo`.
pub(super) struct ModInfo {
    texts: Vec<String>,
}

impl ModInfo {
    /// Reads a module, or says why it is none.
    pub(super) fn parse(module: &[u8]) -> Result<Self, String> {
        let elf: ElfFile64<'_> =
            ElfFile64::parse(module).map_err(|error| format!("it is not an ELF file ({error})"))?;
        let section = elf
            .section_by_name(".modinfo")
            .ok_or("it has no section .modinfo")?;
        let bytes = section
            .data()
            .map_err(|error| format!("its .modinfo can't be read ({error})"))?;
        Ok(Self::of(bytes))
    }

    /// Reads texts as they stand in `.modinfo`.
    fn of(bytes: &[u8]) -> Self {
        let texts = bytes
            .split(|byte| *byte == 0)
            .filter(|text| !text.is_empty())
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        Self { texts }
    }

    /// Returns the modules that must be loaded before.
    pub(super) fn depends(&self) -> impl Iterator<Item = &str> {
        self.values("depends")
            .flat_map(|names| names.split(','))
            .filter(|name| !name.is_empty())
    }

    /// Returns what the module would have `modprobe` load before, of `pre: a b post: c`.
    pub(super) fn soft_before(&self) -> impl Iterator<Item = &str> {
        self.values("softdep").flat_map(|text| {
            let mut before = false;
            text.split_whitespace().filter(move |word| {
                let is_label = matches!(*word, "pre:" | "post:");
                if is_label {
                    before = *word == "pre:";
                }
                before && !is_label
            })
        })
    }

    /// Returns whether the module can be asked for by this name.
    pub(super) fn provides(&self, name: &str) -> bool {
        self.values("alias")
            .any(|alias| super::normal(alias) == name)
    }

    /// Returns whether the module is for CPUs with certain features only.
    pub(super) fn needs_cpu_feature(&self) -> bool {
        self.values("alias").any(|alias| alias.starts_with("cpu:"))
    }

    /// Checks that the module was built for a kernel: the kernel would refuse it.
    pub(super) fn check_release(&self, release: &str) -> Result<(), String> {
        let magic = self.values("vermagic").next().unwrap_or_default();
        let built_for = magic.split_whitespace().next().unwrap_or_default();
        if built_for == release {
            Ok(())
        } else {
            Err(format!(
                "it was built for the kernel '{built_for}', not for '{release}'"
            ))
        }
    }

    fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.texts
            .iter()
            .filter_map(move |text| text.strip_prefix(key)?.strip_prefix('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_dependencies_are_those_before() {
        let info = ModInfo::of(
            b"softdep=pre: crc32c sha256 post: late\0softdep=post: x\0depends=jbd2,mbcache\0",
        );
        assert_eq!(info.soft_before().collect::<Vec<_>>(), ["crc32c", "sha256"]);
        assert_eq!(info.depends().collect::<Vec<_>>(), ["jbd2", "mbcache"]);
        assert_eq!(ModInfo::of(b"depends=\0").depends().count(), 0);
    }

    #[test]
    fn a_module_of_another_kernel_is_told() {
        let info = ModInfo::of(b"vermagic=6.1.0-56-amd64 SMP preempt mod_unload modversions \0");
        assert_eq!(info.check_release("6.1.0-56-amd64"), Ok(()));
        let why = info.check_release("6.1.0-55-amd64").unwrap_err();
        assert!(why.contains("6.1.0-56-amd64"), "{why}");
        assert!(ModInfo::of(b"").check_release("6.1").is_err());
    }

    proptest::proptest! {
        #[test]
        fn garbage_is_refused_without_a_panic(bytes: Vec<u8>) {
            proptest::prop_assert!(ModInfo::parse(&bytes).is_err());
            let info = ModInfo::of(&bytes);
            info.depends().count();
            info.soft_before().count();
        }
    }
}
