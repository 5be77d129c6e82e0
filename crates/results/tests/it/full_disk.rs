//! A full disk: a clear error, nothing lost, and the run goes on when there is space.
//!
//! The disk is a small file system in memory, mounted where only a child process sees it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{RUN, alone, create, done, machine, plan};
use tare_results::{CellState, ResultsError, RunFolder};
use tare_testkit::skip;

/// The exit code of the shell if nothing can be mounted.
const NO_MOUNT: i32 = 77;

#[test]
fn a_full_disk_costs_one_cell() {
    let disk = tempfile::tempdir().unwrap();
    let test = alone("full_disk::on_a_small_disk", disk.path());
    let script = format!(
        "mount -t tmpfs -o size=1m tare-test \"${RUN}\" || exit {NO_MOUNT}; exec \"$0\" \"$@\""
    );
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        // It lets an ordinary user mount. Root needs none, and has none in a chroot or container.
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--mount", "sh", "-c", &script])
        .arg(test.get_program())
        .args(test.get_args())
        .env(RUN, disk.path());
    match command.output() {
        Err(error) => skip("full disk", &format!("unshare: {error}")),
        Ok(output) if output.status.code() == Some(NO_MOUNT) => {
            skip("full disk", "nothing can be mounted in a namespace here");
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            if text.contains("unshare: ") {
                skip("full disk", &text);
            } else {
                assert!(output.status.success(), "{text}");
                assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
            }
        }
    }
}

/// No test by itself: works on the disk given by the environment.
#[test]
fn on_a_small_disk() {
    let Some(disk) = std::env::var_os(RUN).map(PathBuf::from) else {
        return;
    };
    let path = disk.join("a run");
    let run = create(&path, 2);
    let (cell, samples) = done(&run.plan().cells[0], 1);
    run.write_cell(&cell, Some(&samples)).unwrap();
    run.derived(None)
        .unwrap()
        .write("summary.json", b"first")
        .unwrap();

    let rest = fill(&disk);
    let (second, of_second) = done(&run.plan().cells[1], 2);
    let error = run.write_cell(&second, Some(&of_second)).unwrap_err();
    assert!(is_full(&error), "{error}");
    let text = error.to_string();
    assert!(text.contains("cells/.0002.partial-"), "{text}");
    let remedy = format!("then go on with `tare noise --resume '{}'`", path.display());
    assert!(text.ends_with(&remedy), "{text}");

    let error = run
        .derived(None)
        .unwrap()
        .write("summary.json", &[b'x'; 100_000])
        .unwrap_err();
    assert!(is_full(&error), "{error}");
    assert_eq!(fs::read(path.join("summary.json")).unwrap(), b"first");

    let error = RunFolder::create(&disk.join("other"), &plan(2_000), &machine()).unwrap_err();
    assert!(is_full(&error), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("or choose another folder with --output"),
        "{error}"
    );

    assert!(!disk.join("other").exists());

    assert_eq!(run.state(1), CellState::Done(Box::new(cell)));
    assert_eq!(run.samples(1).unwrap(), samples);
    let left: Vec<_> = fs::read_dir(path.join("cells")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");

    fs::remove_file(rest).unwrap();
    run.write_cell(&second, Some(&of_second)).unwrap();
    assert!(run.missing().is_empty());
}

fn is_full(error: &ResultsError) -> bool {
    error.to_string().contains("the file system is full")
}

/// Fills the disk to its last byte and returns the file that did it.
fn fill(disk: &Path) -> PathBuf {
    let path = disk.join("rest");
    let mut file = File::create(&path).unwrap();
    for size in [4_096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}
