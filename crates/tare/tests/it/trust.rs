//! What others wrote runs no program of this machine unless the user says so.

use std::fs;
use std::os::unix::fs::chown;

use crate::common::Bench;

const REFUSED: &str = "add --trust";

#[test]
fn a_study_that_names_programs_runs_only_when_it_is_trusted() {
    let bench = Bench::new();
    let mark = bench.work().with_file_name("started");
    let study = |target: &str, load: &str| {
        let text = format!(
            "runs = 1\ntargets = [\"{target}\"]\nloads = [\"{load}\"]\n[[experiment]]\nkind = \"noise\"\nworkload = [\"prime\"]\n\
             repetitions = 1000\n"
        );
        fs::write(bench.work().join("s.toml"), text).unwrap();
    };
    let proxy = format!("ssh,host=lab,option=proxycommand=touch {}", mark.display());
    study(&proxy, "idle");
    let named = format!(
        "names programs to run: proxycommand=touch {}",
        mark.display()
    );
    bench
        .run("run s.toml")
        .expect(2, &["the study s.toml", &named, REFUSED]);
    bench
        .run("run s.toml --dry-run")
        .expect(0, &["ssh,host=lab"]);
    for option in [
        "SmartcardDevice=/x.so",
        "PKCS11Provider=/x.so",
        "include=/x",
        "UserKnownHostsFile=/x",
        "KeywordOfTomorrow=x",
    ] {
        study(&format!("ssh,host=lab,option={option}"), "idle");
        bench.run("run s.toml").expect(2, &[option, REFUSED]);
    }
    // Neither does it sleep, nor anything else that writing a file of the kernel's can do.
    let text =
        "runs = 1\n[settings]\n\"/sys/power/state\" = \"mem\"\n[[experiment]]\nkind = \"noise\"\n";
    fs::write(bench.work().join("s.toml"), text).unwrap();
    bench
        .run("run s.toml")
        .expect(2, &["/sys/power/state=mem", REFUSED]);
    study("process", &format!("command:touch {}", mark.display()));
    bench
        .run("run s.toml")
        .expect(2, &["command:touch", REFUSED]);
    assert!(!mark.exists());
    bench.run("run s.toml --trust --output run").expect(0, &[]);
    assert!(mark.exists());
    fs::remove_file(&mark).unwrap();
    // So is its run: whoever sends a folder has written its plan.
    fs::remove_dir_all(bench.work().join("run/cells")).unwrap();
    fs::create_dir(bench.work().join("run/cells")).unwrap();
    bench
        .run("run --resume run")
        .expect(2, &["the run run", "command:touch", REFUSED]);
    assert!(!mark.exists());
    bench.run("run --resume run --trust").expect(0, &["[1/1]"]);
    assert!(mark.exists());
}

#[test]
fn the_study_of_another_user_runs_only_when_it_is_trusted() {
    if !rustix::process::geteuid().is_root() {
        return tare_testkit::skip("a study of another user", "this is not root");
    }
    let bench = Bench::new();
    let path = bench.work().join("s.toml");
    let text =
        "runs = 1\n[[experiment]]\nkind = \"noise\"\nworkload = [\"prime\"]\nrepetitions = 1000\n";
    fs::write(&path, text).unwrap();
    chown(&path, Some(4711), None).unwrap();
    bench
        .run("run s.toml")
        .expect(2, &["s.toml belongs to user 4711", REFUSED]);
    bench.run("run s.toml --trust").expect(0, &[]);
    chown(&path, Some(0), None).unwrap();
    bench.run("run s.toml").expect(0, &[]);
}
