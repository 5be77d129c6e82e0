//! The report in a real browser: it needs nothing but itself, and draws in light and dark.

use tare_testkit::browser;

use crate::common::Bench;

#[test]
fn the_report_draws_without_errors_and_without_network() {
    let bench = Bench::new();
    bench
        .run("noise --repetitions 20000 --runs 3 --output run")
        .expect(0, &[]);
    let page = bench.work().join("run/report.html");
    let Some(shown) = browser::open(&page, &["--dump-dom"]) else {
        return;
    };
    assert!(shown.dom.contains("</html>"), "{}", shown.log);
    assert!(shown.dom.matches("<svg").count() >= 4);
    assert!(!shown.log.contains("CONSOLE"), "{}", shown.log);
    assert!(
        !shown.dom.contains("NaN"),
        "a figure or a coordinate is not a number"
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
