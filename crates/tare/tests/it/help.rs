//! The help texts, as people see them.

use crate::common::Bench;

fn help(words: &str) -> String {
    let bench = Bench::new();
    let ran = bench.run(words);
    ran.expect(0, &[]);
    ran.out
}

#[test]
fn tare() {
    insta::assert_snapshot!(help("--help"));
}

#[test]
fn noise() {
    insta::assert_snapshot!(help("noise --help"));
}

#[test]
fn noise_top() {
    insta::assert_snapshot!(help("noise top --help"));
}

#[test]
fn wakeup() {
    insta::assert_snapshot!(help("wakeup --help"));
}

#[test]
fn primitives() {
    insta::assert_snapshot!(help("primitives --help"));
}

#[test]
fn start() {
    insta::assert_snapshot!(help("start --help"));
}

#[test]
fn quick() {
    insta::assert_snapshot!(help("quick --help"));
}

#[test]
fn report() {
    insta::assert_snapshot!(help("report --help"));
}

#[test]
fn doctor() {
    insta::assert_snapshot!(help("doctor --help"));
}

#[test]
fn run() {
    insta::assert_snapshot!(help("run --help"));
}

#[test]
fn study() {
    insta::assert_snapshot!(help("study --help"));
}

#[test]
fn study_explain() {
    insta::assert_snapshot!(help("study explain --help"));
}

#[test]
fn reproduce() {
    insta::assert_snapshot!(help("reproduce --help"));
}

#[test]
fn kernel() {
    insta::assert_snapshot!(help("kernel --help"));
}

#[test]
fn kernel_fetch() {
    insta::assert_snapshot!(help("kernel fetch --help"));
}

#[test]
fn kernel_add() {
    insta::assert_snapshot!(help("kernel add --help"));
}

#[test]
fn image_run() {
    insta::assert_snapshot!(help("image run --help"));
}

#[test]
fn cyclictest() {
    insta::assert_snapshot!(help("cyclictest --help"));
}

#[test]
fn export() {
    insta::assert_snapshot!(help("export --help"));
}

#[test]
fn import() {
    insta::assert_snapshot!(help("import --help"));
}

#[test]
fn compare() {
    insta::assert_snapshot!(help("compare --help"));
}

#[test]
fn scale() {
    insta::assert_snapshot!(help("scale --help"));
}
