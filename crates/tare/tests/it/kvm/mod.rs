//! Guests under KVM, on machines whose processors offer none: QEMU's TCG emulates AMD's SVM, so a
//! guest with the kernel's `kvm-amd` has a `/dev/kvm` in which guests really run. The outer guest is
//! Debian's cloud kernel with an initramfs of the programs of this machine; the checks run in it one
//! after the other.
//!
//! The outer guest's time is a count of instructions: it stands still while other work has the
//! machine, and jumps while the outer guest is idle. One thread executes both of its CPUs and their
//! timers. With a thread for each, guests froze: `do_vmexit` of QEMU 7.2 changes
//! `interrupt_request` without a lock (corrected in 2025), so an interrupt that came at that moment
//! was lost.
//!
//! What this cannot show: speed, Intel's VMX, AVIC, an invariant time-stamp counter. Wake-ups are
//! 5 ms apart: `helper_vmrun` of QEMU 7.2 does not restore the interrupt shadow of `sti`, so a guest
//! that sleeps by `sti; hlt` for less than a millisecond may lose its wake-up there.

mod outer;

use std::collections::BTreeMap;

use crate::common::skip;
use outer::Outer;

/// A check: what the shell of the outer guest executes, its status, and parts of what it prints.
struct Check {
    name: &'static str,
    script: &'static str,
    status: i32,
    parts: &'static [&'static str],
}

/// In their order: the first ones see a machine without KVM. `$NOISE` is a short run on the unikernel.
const CHECKS: &[Check] = &[
    Check {
        name: "no-node",
        script: "$NOISE",
        status: 5,
        parts: &["KVM does not work here: there is no /dev/kvm"],
    },
    Check {
        name: "no-module",
        script: "mknod /dev/kvm c 10 232; $NOISE",
        status: 5,
        parts: &[
            "no module of the kernel drives /dev/kvm",
            "modprobe kvm-amd",
        ],
    },
    Check {
        name: "load",
        script: "ls /dev/kvm",
        status: 0,
        parts: &["/dev/kvm"],
    },
    Check {
        name: "no-right",
        script: "chmod 1777 /tmp; su -s /bin/sh nobody -c \"HOME=/tmp/nobody $NOISE\"",
        status: 5,
        parts: &["is this user in the group kvm?"],
    },
    Check {
        name: "hangs",
        script: r#"mkdir fake
echo '#!/bin/sh' >fake/qemu-system-x86_64
echo 'exec /usr/bin/qemu-system-x86_64 "$@" -append then=idle' >>fake/qemu-system-x86_64
chmod +x fake/*
PATH=/tmp/fake:$PATH $NOISE"#,
        status: 5,
        parts: &["was not done within 2 s: the guest was still running"],
    },
    Check {
        name: "images",
        script: r#"for machine in microvm q35 pc; do
    tare image run "hello,mem=16M,accel=kvm,machine=$machine"
done
tare image run hello,mem=16M,accel=kvm then=panic"#,
        status: 1,
        parts: &["panic at", "under way were, innermost first: "],
    },
    Check {
        name: "study",
        // `guest_time` comes in ticks of 10 ms: 10,000 ns for each of 1,000 requests.
        script: "tare run /study.toml --output study\n\
                 grep -E 'place=inside service=dns,cpu,ns,mean,[1-9][0-9]*0000,' study/figures.csv\n\
                 grep -E 'reason=all service=dns,exits,,mean,[0-9.]*[1-9]' study/figures.csv\n\
                 grep -Eo 'part=[^,]*,exits,,mean,[0-9.]+' study/figures.csv | sort -u",
        status: 0,
        parts: &["[7/7] "],
    },
    Check {
        name: "pinned",
        // A QEMU may end while it is looked at. KVM's thread that gives back large pages once an
        // hour begins where the vCPU's thread is.
        script: r#"(
    set +e
    while sleep 0.1; do
        for qemu in $(pidof qemu-system-x86_64); do
            echo pinned $(sed -n 's/^Cpus_allowed_list:\t//p' \
                $(grep -L kvm-nx-lpage /proc/$qemu/task/*/status))
            grep -e VmLck -e VmRSS /proc/$qemu/status
        done
    done
) 2>/dev/null &
trap "kill $!" EXIT
tare noise --workload gap --repetitions 1000000 --runs 3 --output split --target process \
    --target unikernel,irq=off,accel=kvm"#,
        status: 0,
        parts: &["emulated, although by KVM"],
    },
    Check {
        name: "split",
        // Figures of emulated guests are not split; here their mark is removed.
        script: r#"sed -i 's/"emulated": *true/"emulated": false/' split/cells/*/cell.json
for sums in split/cells/*/SHA256SUMS split/SHA256SUMS; do
    cd "/tmp/${sums%/*}"
    sha256sum $(sed 's/.*  //' SHA256SUMS) >/tmp/sums
    mv /tmp/sums SHA256SUMS
done
cd /tmp
tare report split"#,
        status: 0,
        parts: &["What the operating system adds"],
    },
    Check {
        name: "exits",
        script: r#"cd /sys/kernel/tracing
echo 1 >events/kvm/kvm_exit/enable
for word in a a a a a a a a a a ab; do
    echo >trace
    tare image run hello,mem=64M,accel=kvm $word
    sed -n 's/.*kvm_exit: .*reason \([^ ]*\).*/\1/p' trace | sort | uniq -c
done"#,
        status: 0,
        parts: &[],
    },
    Check {
        name: "left",
        script: r#"rm -r fake nobody study split
ls /tmp /run
[ ! -e /dev/stdout ]
pidof tare tare-agent tare-service qemu-system-x86_64 || true
/bin/ip netns
/bin/ip -brief link | cut -d' ' -f1"#,
        status: 0,
        parts: &[],
    },
];

/// One boot with the times of its exits.
const TRACED: &str = "echo 1 >/sys/kernel/tracing/events/kvm/kvm_exit/enable
tare image run hello,mem=64M,accel=kvm
cat /sys/kernel/tracing/trace";

/// How often `hello` leaves its guest without interrupts of the outer machine, and with which files.
const RECORDED: ([&str; 4], u32) = (
    [
        "1493008ba0036014c727bb23bbe2f399135867e9b5c4fe288ef2b4b816f46b0c",
        "5c4d986a8829abc3ccc45302bb0e9e93e9f78435a6ed4d13a48f4e2822f91f74",
        "b9ea6660d2abac0b2d65aaf11d07cb9d9012b4beb1287d6eb539fccecd1aebd2",
        "1db262769f9f201667f89b6c24617dcc0bf70ddaec4ac9e6ffcfc3913129fe4e",
    ],
    184,
);

#[test]
#[ignore = "takes a minute or more: make test-kvm, which make acceptance runs"]
fn guests_run_under_kvm() {
    let Some(outer) = Outer::new() else {
        return;
    };
    let scripts: Vec<_> = CHECKS.iter().map(|one| (one.name, one.script)).collect();
    let said = outer.run(2, &scripts);
    for (check, said) in CHECKS.iter().zip(&said) {
        eprintln!("{} ended after {} s", check.name, said.end_seconds);
        assert_eq!(said.status, check.status, "{}: {}", check.name, said.text);
        tare_testkit::assert_contains(&said.text, check.parts);
    }
    let text = |name| {
        let place = CHECKS.iter().position(|check| check.name == name).unwrap();
        &*said[place].text
    };
    assert_threads_are_pinned(text("pinned"));
    let exits = equal_exits(text("exits"));
    let files = outer.files_of_a_boot();
    if files == RECORDED.0 {
        assert_eq!(exits, RECORDED.1);
    } else {
        eprintln!("hello leaves its guest {exits} times with {files:?}, {RECORDED:?}");
    }
    assert!(!text("study").contains("Not measured"), "{}", text("study"));
    assert_parts_add_up(text("study"));
    assert_eq!(text("left"), "/run:\n\n/tmp:\nsaid\nlo\n");
}

/// What a boot needs is a count of instructions, so each boot is the same, exits and their times.
#[test]
#[ignore = "boots five times: make test-kvm, which make acceptance runs"]
fn a_boot_can_be_repeated_exactly() {
    let Some(outer) = Outer::new() else {
        return;
    };
    let scripts = [("load", "dmesg"), ("exits", TRACED)];
    let first = outer.run(1, &scripts);
    assert!(first[1].text.contains("kvm_exit"), "{first:?}");
    for _ in 1..5 {
        assert_eq!(outer.run(1, &scripts), first);
    }
}

/// The thread of the measured CPU is on CPU 1, all others are not; nothing is locked where nothing
/// can be swapped out, and what the guest leaves alone is not there.
fn assert_threads_are_pinned(text: &str) {
    let samples = text.lines().filter_map(|line| line.strip_prefix("pinned "));
    let pinned = samples.filter(|sample| {
        let on = |cpu| sample.split(' ').filter(|set| *set == cpu).count();
        assert!(on("1") <= 1, "{sample}");
        on("1") == 1 && on("0-1") == 0
    });
    assert!(pinned.count() > 0, "{text}");
    let sizes = |name: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let kib = lines.map(|line| line.trim().trim_end_matches(" kB").parse().unwrap());
        kib.collect()
    };
    let (locked, resident) = (sizes("VmLck:"), sizes("VmRSS:"));
    assert_eq!(locked.iter().max(), Some(&0), "{text}");
    assert!(resident.iter().max() < Some(&(200 << 10)), "{text}");
}

/// The exits of a start by reason are those of its parts.
fn assert_parts_add_up(text: &str) {
    let (mut whole, mut sums) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines().filter_map(|line| line.strip_prefix("part=")) {
        let (labels, number) = line.split_once(",exits,,mean,").unwrap();
        let (part, reason) = labels.split_once(" reason=").unwrap();
        let number: f64 = number.parse().unwrap();
        match part {
            "all" => drop(whole.insert(reason, number)),
            _ => *sums.entry(reason).or_default() += number,
        }
    }
    assert!(whole["all"] > whole["io"] && whole["io"] > 0.0, "{text}");
    assert_eq!(whole, sums);
}

/// Boots of one image leave the guest equally often, apart from interrupts of the outer machine; one
/// that writes one character more, by one access to the port, once more. Returns how often.
fn equal_exits(text: &str) -> u32 {
    let mut boots: Vec<BTreeMap<&str, u32>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("hello from tare") {
            boots.push(BTreeMap::new());
        } else {
            let (number, reason) = line.trim().split_once(' ').unwrap();
            let exits = boots.last_mut().unwrap();
            exits.insert(reason, number.parse().unwrap());
            exits.remove("interrupt");
        }
    }
    let longer = boots.pop().unwrap();
    let mut expected = boots[0].clone();
    let all = expected.values().sum();
    eprintln!("hello leaves its guest {all} times: {expected:?}");
    assert_eq!(boots.len(), 10);
    assert!(boots.iter().all(|boot| *boot == expected), "{boots:?}");
    *expected.get_mut("io").unwrap() += 1;
    assert_eq!(longer, expected);
    all
}

/// For people: `make kvm`.
#[test]
#[ignore = "opens a shell"]
fn a_shell_in_the_outer_guest() {
    match Outer::new() {
        Some(outer) => outer.shell(),
        None => skip("KVM in a guest", "see above"),
    }
}
