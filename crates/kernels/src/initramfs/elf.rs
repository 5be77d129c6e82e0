//! What an ELF file says of the libraries that it needs.

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object};

/// Holds what the dynamic loader would look at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dynamic {
    /// The dynamic loader itself.
    pub(super) interpreter: Option<String>,
    /// Names of the libraries.
    pub(super) needed: Vec<String>,
    /// Where to look before all else; the loader ignores it if there is a `runpath`.
    pub(super) rpath: Vec<String>,
    /// Where to look before the usual places, for this file's own needs.
    pub(super) runpath: Vec<String>,
}

/// Reads the dynamic section of a program or library for x86-64, or says why it is none.
pub(super) fn dynamic(bytes: &[u8]) -> Result<Dynamic, String> {
    let file: ElfFile64<'_, Endianness> =
        ElfFile64::parse(bytes).map_err(|error| format!("it is no 64-bit program ({error})"))?;
    if file.architecture() != object::Architecture::X86_64 {
        return Err("it is a program for another architecture".to_owned());
    }
    let damaged = |error: object::Error| format!("it is damaged ({error})");
    let endian = file.endian();
    let mut dynamic = Dynamic::default();
    for segment in file.elf_program_headers() {
        if let Some(interpreter) = segment.interpreter(endian, bytes).map_err(damaged)? {
            dynamic.interpreter = Some(String::from_utf8_lossy(interpreter).into_owned());
        }
    }
    let sections = file.elf_header().sections(endian, bytes).map_err(damaged)?;
    let Some((entries, index)) = sections.dynamic(endian, bytes).map_err(damaged)? else {
        return Ok(dynamic);
    };
    let texts = sections.strings(endian, bytes, index).map_err(damaged)?;
    for entry in entries {
        let tag = entry.tag(endian);
        let list = match tag {
            elf::DT_NEEDED => &mut dynamic.needed,
            elf::DT_RPATH => &mut dynamic.rpath,
            elf::DT_RUNPATH => &mut dynamic.runpath,
            _ => continue,
        };
        let text = entry.string(endian, texts).map_err(damaged)?;
        let text = String::from_utf8_lossy(text).into_owned();
        if tag == elf::DT_NEEDED {
            list.push(text);
        } else {
            list.extend(text.split(':').map(str::to_owned));
        }
    }
    Ok(dynamic)
}
