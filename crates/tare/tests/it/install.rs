//! `make install`: what it puts where, that it works from there, and that `make uninstall` takes it
//! away.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{self, Bench, Ran, files};

const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn make(goal: &str, into: &Path) -> Ran {
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "-C", TREE, goal, "PREFIX=/usr"])
        .arg(format!("TARE={}", env!("CARGO_BIN_EXE_tare")))
        .arg(format!("DESTDIR={}", into.display()))
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null());
    Ran::of(make.output().unwrap())
}

/// Checks a file by a program that may not be here.
fn check(program: &str, arguments: &[&str], file: &Path) {
    let mut command = Command::new(program);
    match command.args(arguments).arg(file).output() {
        Ok(output) => {
            let ran = Ran::of(output);
            let told = (ran.code, ran.err.as_str());
            assert_eq!(told, (Some(0), ""), "{program} {}", file.display());
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{program}");
            common::skip(program, "it is not here (Debian's package of this name)");
        }
    }
}

#[test]
fn what_is_installed_works_from_where_it_is() {
    let bench = Bench::new();
    let root = bench.work().with_file_name("root");
    make("install", &root).expect(0, &[]);
    let usr = root.join("usr");
    let installed = files(&usr);
    for file in [
        "bin/tare",
        "lib/tare/images/bench",
        "lib/tare/images/dns",
        "lib/tare/images/hello",
        "lib/tare/tare-agent",
        "lib/tare/tare-service",
        "share/bash-completion/completions/tare",
        "share/fish/vendor_completions.d/tare.fish",
        "share/man/man1/tare-kernel-fetch.1",
        "share/man/man1/tare-noise.1",
        "share/man/man1/tare.1",
        "share/zsh/site-functions/_tare",
    ] {
        assert!(installed.iter().any(|name| name == file), "{installed:?}");
    }
    let tare = usr.join("bin/tare");
    let words = [
        "noise",
        "--workload",
        "prime",
        "--repetitions",
        "1000",
        "--runs",
        "1",
    ];
    // It is outside of the source tree: the agent is the installed one.
    Ran::of(bench.command_of(&tare, &words).output().unwrap()).expect(0, &["report.html"]);

    let share = usr.join("share");
    let completions = share.join("bash-completion/completions/tare");
    check("bash", &["-n"], &completions);
    let text = std::fs::read_to_string(&completions).unwrap();
    for word in ["noise", "--workload", "--fail-if", "unikernel"] {
        assert_eq!(text.contains(word), word != "unikernel", "{word}");
    }
    let shown = Command::new("bash")
        .args(["-c", "source \"$0\"; COMP_WORDS=(tare qui); COMP_CWORD=1; _tare tare qui tare; echo ${COMPREPLY[@]}"])
        .arg(&completions)
        .output()
        .unwrap();
    Ran::of(shown).expect(0, &["quick"]);
    check("zsh", &["-n"], &share.join("zsh/site-functions/_tare"));
    check(
        "fish",
        &["-n"],
        &share.join("fish/vendor_completions.d/tare.fish"),
    );
    let pages = files(&share.join("man/man1"));
    assert!(
        pages.len() > 15 && !pages.iter().any(|page| page.contains("share")),
        "{pages:?}"
    );
    for page in pages {
        let page: PathBuf = share.join("man/man1").join(page);
        check("groff", &["-Kutf8", "-man", "-ww", "-z", "-Tutf8"], &page);
    }

    make("uninstall", &root).expect(0, &[]);
    assert_eq!(files(&root), Vec::<String>::new());
}
