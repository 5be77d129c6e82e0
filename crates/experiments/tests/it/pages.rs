//! The page as its reader sees it, in a real browser: wide, narrow, dark and printed.

use std::fs;

use tare_pages::page;
use tare_testkit::assert_contains;
use tare_testkit::browser;

use crate::html::{everything, woken};
use crate::synthetic::{Fold, Run, analyse, gaps_like, linux_like, spin, timed};
use crate::{claims, consistency, landolfi};

/// Makes pages of each kind with the names that they go by.
fn pages() -> Vec<(&'static str, String)> {
    let page = |run: Run| page::render(&run.analyse());
    let study = [claims::LINUX, claims::UNIKERNEL, claims::QUIET];
    let loads = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];
    let each = consistency::runs().into_iter();
    let each = each.map(|(name, report, _)| (name, page::render(&report)));
    let more = [
        ("all of noise", page::render(&analyse(everything()))),
        ("wake-ups", page::render(&analyse(woken(3, 2, &loads)))),
        ("kot-2019", page(claims::run(&study, false, 1))),
        (
            "landolfi-2018",
            page(landolfi::run(
                &landolfi::STUDY,
                false,
                ",cpus=2,mem=1G,disk=scratch:4G",
                0,
            )),
        ),
        ("unlike targets", page(unlike())),
    ];
    each.chain(more).collect()
}

/// Makes a run of targets with long names, of which one takes ten times as long and one has no gap.
pub fn unlike() -> Run {
    let mut random = fastrand::Rng::with_seed(5);
    let mut run = Run::new(26);
    for block in 1..=3 {
        for (target, seconds) in [
            ("process", 0.4),
            ("crun", 0.4),
            (
                "linux,kernel=debian,cpus=2,isolate=1,nohz_full=1,preempt=voluntary,mem=1G,disk=scratch:4G",
                0.4,
            ),
            (QUIET, 0.0),
            (
                "unikernel,image=/srv/images/of/somebody/with/many/folders/and-a-long-name.elf",
                4.0,
            ),
        ] {
            let (gaps, reads) = match seconds {
                0.0 => (Vec::new(), 60_000_000),
                _ => (
                    gaps_like(seconds, 100.0, &mut random),
                    (seconds * 1.2e8) as u64,
                ),
            };
            let gaps = spin(reads, 25, &gaps, Fold::default());
            run.done(block, target, "gap", None, gaps);
            let durations = linux_like(5_000, 1_100, 26, 0.3, &mut random);
            let durations = timed(&durations, Fold::default());
            run.done(block, target, "prime", Some(22), durations);
        }
    }
    run
}

/// The target that nothing interrupts.
const QUIET: &str = "unikernel,irq=off";

#[test]
fn nothing_overlaps_or_leaves_its_place_on_a_wide_or_a_narrow_screen() {
    for (name, page) in pages() {
        for width in [1_280, 400] {
            let Some(faults) = browser::faults(&page, width, false, &[]) else {
                return;
            };
            assert!(faults.is_empty(), "{name} at {width}: {faults:#?}");
        }
    }
}

#[test]
fn every_strip_fills_its_width_and_what_never_happened_takes_no_room() {
    let page = page::render(&unlike().analyse());
    let (_, strips) = page.split_once(">Interruptions over time<").unwrap();
    let (strips, _) = strips.split_once("</svg>").unwrap();
    assert_contains(strips, &[&format!("{QUIET}: nothing to draw")]);
    // Each says how long its runs are, since they differ.
    assert_eq!(strips.matches(" a run</text>").count(), 4, "{strips}");
    let dots = strips.split("class=\"dots s0\" d=\"").skip(1);
    let widths = dots.map(|path| {
        let (path, _) = path.split_once('"').unwrap();
        let steps = path.split('m').skip(1).map(|step| {
            let end = step[1..].find(|c: char| c != '.' && !c.is_ascii_digit());
            step[..=end.unwrap_or(0)].parse::<f64>().unwrap()
        });
        steps.sum::<f64>()
    });
    let widths: Vec<f64> = widths.collect();
    assert_eq!(widths.len(), 12, "{widths:?}");
    // A third of the picture, less what lies before the first dot and behind the last one.
    assert!(widths.iter().all(|width| *width > 200.0), "{widths:?}");
}

#[test]
fn nothing_is_lost_on_a_dark_page() {
    let dark = ["--blink-settings=preferredColorScheme=0"];
    for (name, page) in pages() {
        let Some(faults) = browser::faults(&page, 1_280, false, &dark) else {
            return;
        };
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
}

#[test]
fn on_paper_tables_are_open_and_no_page_is_empty() {
    for (name, page) in pages() {
        let Some(faults) = browser::faults(&page, 688, true, &[]) else {
            return;
        };
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        let folder = tempfile::tempdir().unwrap();
        let (html, pdf) = (folder.path().join("page.html"), folder.path().join("pdf"));
        fs::write(&html, page).unwrap();
        let to = format!("--print-to-pdf={}", pdf.display());
        let _ = browser::open(&html, &[&to, "--no-pdf-header-footer"]);
        let sizes = sizes_of_pages(&fs::read(&pdf).unwrap());
        assert!(sizes.len() > 2, "{name}: {sizes:?}");
        // A blank page has some dozen bytes of its own.
        assert!(sizes.iter().all(|size| *size > 400), "{name}: {sizes:?}");
    }
}

/// Returns how many bytes each page of a PDF is drawn with.
fn sizes_of_pages(pdf: &[u8]) -> Vec<usize> {
    let text = String::from_utf8_lossy(pdf);
    let number = |text: &str| -> usize {
        let digits = text.trim_start().split(|c: char| !c.is_ascii_digit());
        digits.into_iter().next().unwrap().parse().unwrap()
    };
    let pages = text.split("/Type /Page\n").skip(1);
    let contents = pages.map(|page| number(page.split_once("/Contents ").unwrap().1));
    let size = |object: usize| {
        let (_, rest) = text.split_once(&format!("\n{object} 0 obj")).unwrap();
        number(rest.split_once("/Length ").unwrap().1)
    };
    contents.map(size).collect()
}
