//! An image boots on every machine type, with little memory, and ends with a status.

mod common;

use std::fs;
use std::time::Duration;

use common::{CRASHED, DONE, Guest, MACHINES, MISUSED, backtrace};
use object::{Object, ObjectSegment};

const HELLO: &str = env!("CARGO_BIN_EXE_hello");
const BENCH: &str = env!("CARGO_BIN_EXE_bench");

#[test]
fn hello_boots_everywhere_in_2_mib_and_with_the_oldest_cpu() {
    for machine in MACHINES {
        for cpu in ["qemu64", "max"] {
            let guest = Guest {
                machine,
                cpu,
                memory_mib: 2,
                ..Guest::new(HELLO, "some words")
            };
            let Some(ended) = guest.boot() else { return };
            assert!(
                ended.text.contains("hello from tare: some words"),
                "{machine} {cpu}"
            );
            assert_eq!(ended.status, DONE, "{machine} {cpu}");
        }
    }
}

#[test]
fn without_the_exit_device_the_machine_is_powered_off() {
    for machine in MACHINES {
        let guest = Guest {
            machine,
            debug_exit: false,
            limit: Duration::from_secs(20),
            ..Guest::new(HELLO, "")
        };
        let Some(ended) = guest.boot() else { return };
        assert_eq!(ended.status, Some(0), "{machine}");
    }
}

#[test]
fn no_part_of_an_image_is_writable_and_executable() {
    const BOTH: u32 = 3; // PF_W and PF_X
    for image in [HELLO, BENCH] {
        let bytes = fs::read(image).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let pages = |segment: &object::Segment<'_, '_>| {
            let first = segment.address() / 4096;
            first..(segment.address() + segment.size()).div_ceil(4096)
        };
        let rights = |segment: &object::Segment<'_, '_>| match segment.flags() {
            object::SegmentFlags::Elf { p_flags, .. } => p_flags,
            _ => panic!("not ELF"),
        };
        for one in file.segments() {
            assert_ne!(rights(&one).0 & BOTH, BOTH);
            // Nor do two of them share a page.
            let shared = file.segments().filter(|other| {
                other.address() != one.address()
                    && pages(other).start < pages(&one).end
                    && pages(&one).start < pages(other).end
            });
            assert_eq!(shared.count(), 0, "{image}");
        }
    }
}

#[test]
fn a_panic_is_a_message_a_backtrace_and_a_status() {
    let Some(ended) = Guest::new(HELLO, "then=panic").boot() else {
        return;
    };
    assert_eq!(ended.status, CRASHED);
    assert!(
        ended
            .text
            .contains("unikernel: panic at images/src/bin/hello.rs:")
    );
    assert!(ended.text.contains(": asked for on the command line\n"));
    let names = backtrace(HELLO, &ended.text);
    assert!(names.iter().any(|name| name.contains("main")), "{names:?}");
}

#[test]
fn an_idle_guest_is_ended_by_its_limit() {
    let guest = Guest {
        limit: Duration::from_secs(8),
        ..Guest::new(HELLO, "then=idle")
    };
    let Some(ended) = guest.boot() else { return };
    assert_eq!(ended.status, None);
    assert!(ended.text.contains("hello from tare"));
}

#[test]
fn a_command_line_that_can_not_be_read_is_told() {
    for (words, message) in [
        ("workload=gap repetitions=1 x=1", "no such key 'x'"),
        ("workload=gap repetitions=1 irq=maybe", "want on or off"),
        (
            "service=dns workload=gap repetitions=1",
            "not of service=dns",
        ),
        ("", "'workload=…' is missing"),
    ] {
        let Some(ended) = Guest::new(BENCH, words).boot() else {
            return;
        };
        assert_eq!(ended.status, MISUSED, "{words}");
        assert!(ended.text.contains(message), "{}", ended.text);
    }
}

#[test]
fn a_command_line_that_is_too_long_is_rejected() {
    let too_long = "unikernel: the command line exceeds 2,048 bytes\n";
    let overwritten = "unikernel: no PVH start information: QEMU overwrites it if the command line exceeds 4,096 bytes\n";
    for machine in MACHINES {
        let is_small = machine == "microvm";
        for (bytes, message, status) in [
            (2_048, "hello from tare: word=1 ", DONE),
            (2_049, too_long, MISUSED),
            (
                8_000,
                if is_small { too_long } else { overwritten },
                MISUSED,
            ),
            (30_000, too_long, MISUSED),
        ] {
            // QEMU's loader for the others overwrites itself, and never reaches the image.
            if bytes == 30_000 && !is_small {
                continue;
            }
            let words = "word=1 ".chars().cycle().take(bytes).collect::<String>();
            let guest = Guest {
                machine,
                ..Guest::new(HELLO, &words)
            };
            let Some(ended) = guest.boot() else { return };
            assert!(ended.text.contains(message), "{machine}: {}", ended.text);
            assert_eq!(ended.status, status, "{machine} {bytes}");
        }
    }
}

#[test]
#[cfg(not(debug_assertions))]
fn the_hello_image_without_symbols_is_below_11_kb() {
    use object::ObjectSection;

    let bytes = fs::read(HELLO).unwrap();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    let loaded = file
        .segments()
        .map(|segment| segment.file_range())
        .map(|(start, length)| start + length);
    // `strip` keeps the following after the segments: all sections but two, by their names and
    // headers, and the header of none.
    let names = file.sections().map(|section| section.name().unwrap());
    let kept = names.filter(|name| ![".symtab", ".strtab"].contains(name));
    let bytes = kept.fold((1, 64), |(names, headers), name| {
        (names + name.len() as u64 + 1, headers + 64)
    });
    let stripped = (loaded.max().unwrap() + bytes.0).next_multiple_of(8) + bytes.1;
    assert!(stripped < 11_000, "{stripped} bytes");
}
