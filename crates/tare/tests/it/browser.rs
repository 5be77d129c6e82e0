//! The report in a real browser: it needs nothing but itself, and draws in light and dark.

use tare_testkit::browser;

use crate::common::Bench;

#[test]
fn the_report_draws_without_errors_and_without_network() {
    draws("noise --repetitions 20000 --runs 3 --output run", 4);
}

#[test]
fn so_does_that_of_wake_ups() {
    let phases = "--load idle --load command:true --phase 1.5";
    draws(
        &format!("wakeup -i 500 --policy other -a 0 --runs 2 {phases} --output run"),
        5,
    );
}

/// Opens the report of a measurement, which has at least so many pictures.
fn draws(words: &str, pictures: usize) {
    let bench = Bench::new();
    bench.run(words).expect(0, &[]);
    let page = bench.work().join("run/report.html");
    let Some(shown) = browser::open(&page, &["--dump-dom"]) else {
        return;
    };
    assert!(shown.dom.contains("</html>"), "{}", shown.log);
    assert!(shown.dom.matches("<svg").count() >= pictures);
    assert!(!shown.log.contains("CONSOLE"), "{}", shown.log);
    assert!(
        !shown.dom.contains("NaN"),
        "a figure or a coordinate is no number"
    );

    let size = std::fs::metadata(&page).unwrap().len();
    assert!(size < 2_000_000, "{size} bytes");
    let html = std::fs::read_to_string(&page).unwrap();
    for reaches_out in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!html.contains(reaches_out), "{reaches_out}");
    }

    let mut pictures = Vec::new();
    for scheme in ["1", "0"] {
        let picture = bench.work().join(format!("{scheme}.png"));
        let options = [
            format!("--screenshot={}", picture.display()),
            format!("--blink-settings=preferredColorScheme={scheme}"),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        browser::open(&page, &options).unwrap();
        pictures.push(std::fs::read(&picture).unwrap());
    }
    assert!(pictures.iter().all(|picture| picture.len() > 20_000));
    assert_ne!(pictures[0], pictures[1], "light and dark look the same");
}
