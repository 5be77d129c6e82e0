//! What a run of stream tells.

use tare_pages::{page, terminal};
use tare_testkit::assert_contains;

use crate::gates::judge;
use crate::synthetic::{Run, alarm, figure, ids, verdict};

/// Returns 40 rates around one, in GB/s, by a fixed pattern.
fn steady(around: f64) -> Vec<f64> {
    (0..40)
        .map(|number| around + f64::from(number % 5) / 100.0)
        .collect()
}

/// Makes six runs on two targets, the second one per cent slower.
fn two() -> Run {
    let mut run = Run::new(1);
    for block in 1..=6 {
        let rate = 10.0 + f64::from(block) / 100.0;
        run.streamed(block, "process", &steady(rate));
        run.streamed(block, "crun", &steady(rate * 0.99));
    }
    run
}

#[test]
fn bandwidths_are_those_of_the_bytes_moved_and_targets_differ_by_a_share() {
    let analysis = two().analyse();
    let triad = figure(&analysis, "bandwidth.p50{target=process,kernel=triad}").unwrap();
    assert!((triad / 10.055e9 - 1.0).abs() < 0.002, "{triad}");
    let best = figure(&analysis, "bandwidth.max{target=process,kernel=copy}").unwrap();
    assert!(best > triad, "{best}");
    let said = verdict(&analysis);
    assert_eq!(
        said[0],
        "Triad moves a median of 10.1 GB/s on process and 9.95 GB/s on crun."
    );
    assert!(
        said[1].starts_with(
            "crun against process, bandwidth of Triad: worse (median difference −100 MB/s (−1.0 %), adjusted p "
        ),
        "{said:?}"
    );
    assert!(
        judge(&analysis, "bandwidth{kernel=triad,target=crun} < 10GB/s")
            .unwrap()
            .failed
    );
    assert!(
        !judge(&analysis, "bandwidth{kernel=triad,target=process} < 9GB/s")
            .unwrap()
            .failed
    );
    let text = terminal::render(&analysis, 80, false);
    // In the order of a pass.
    let places = ["Bandwidth of memory", "copy", "scale", "add", "triad"]
        .map(|word| text.find(word).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn what_is_said_of_two_targets_names_its_loads() {
    for (runs, of) in [
        (1, " without a load and under dd: inconclusive"),
        (
            4,
            ": not shown to differ without a load (adjusted p 1) and under dd (adjusted p 1) (",
        ),
    ] {
        let mut run = Run::new(1);
        for (block, load) in (1..=runs).flat_map(|block| [(block, ""), (block, "dd")]) {
            run.load = load;
            for target in ["process", "crun"] {
                run.streamed(block, target, &steady(10.0));
            }
        }
        let said = verdict(&run.analyse());
        let of = format!("crun against process, bandwidth of Triad{of}");
        assert!(said[1].starts_with(&of), "{said:?}");
    }
}

#[test]
fn what_all_figures_have_in_common_is_said_once() {
    let mut run = Run::new(1);
    run.further = Some(("size", 16 << 20));
    for target in ["process", "crun"] {
        run.streamed(1, target, &steady(10.0));
    }
    assert_eq!(
        verdict(&run.analyse())[0],
        "Triad moves a median of 10 GB/s on process and 10 GB/s on crun, arrays of 16 MiB."
    );
}

#[test]
fn halves_that_differ_are_named() {
    let mut run = two();
    let mut drifting = steady(10.0);
    drifting.iter_mut().skip(20).for_each(|rate| *rate *= 0.95);
    run.streamed(7, "crun", &drifting);
    let analysis = run.analyse();
    assert_contains(alarm(&analysis, "halves-differ"), &["crun"]);
    // The table shows the p-value that the notice is about.
    let text = terminal::render(&analysis, 100, false);
    let of_crun = text.rsplit_once("crun\n").unwrap().1;
    let triad = of_crun.lines().find(|line| line.starts_with("triad"));
    let p: f64 = triad
        .unwrap()
        .split(' ')
        .next_back()
        .unwrap()
        .parse()
        .unwrap();
    assert!(p <= 0.1, "{text}");
    assert!(!ids(&two().analyse()).contains(&"halves-differ"));
}

#[test]
fn few_passes_have_a_mean() {
    let mut run = Run::new(1);
    run.streamed(1, "process", &steady(10.0)[..8]);
    let analysis = run.analyse();
    assert_eq!(
        verdict(&analysis)[0],
        "Triad moves a mean of 10 GB/s on process."
    );
    let page = page::render(&analysis);
    assert_contains(
        &page,
        &["<h3>Bandwidth of memory (mean)</h3>", "Mean is that of"],
    );
    // Captions name no column that is not there.
    let text = terminal::render(&analysis, 80, false);
    assert!(!text.contains("p50"), "{text}");
}

#[test]
fn a_condition_has_one_name() {
    let mut run = Run::new(1);
    run.further = Some(("size", 16 << 20));
    for (block, rate) in [(1, 10.0), (2, 11.0), (3, 9.0)] {
        let mut rates = steady(rate);
        rates.iter_mut().skip(20).for_each(|rate| *rate *= 0.9);
        run.streamed(block, "process", &rates);
    }
    let analysis = run.analyse();
    let name = "process, arrays of 16 MiB";
    assert_contains(&verdict(&analysis)[0], &[name]);
    assert_contains(alarm(&analysis, "halves-differ"), &[name]);
    let page = page::render(&analysis);
    assert_contains(&page, &["process, arrays of 16 MiB, copy"]);
    // The least is that of all runs.
    let text = terminal::render(&analysis, 100, false);
    assert_contains(&text, &[name, "8.1 GB/s"]);
}

#[test]
fn a_bandwidth_with_two_modes_is_none_between_them() {
    let mut run = Run::new(1);
    for block in 1..=6 {
        let mut rates = steady(20.0);
        rates.iter_mut().step_by(2).for_each(|rate| *rate /= 10.0);
        run.streamed(block, "process", &rates);
        run.streamed(block, "crun", &steady(10.0));
    }
    let said = verdict(&run.analyse()).join(" ");
    let headline =
        "Triad moves about 2 GB/s and 20 GB/s (two modes) on process and 10 GB/s (p50) on crun.";
    assert_contains(&said, &[headline]);
}
