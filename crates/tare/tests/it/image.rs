//! Booting an image by itself: its console, its failure, its end, and a debugger.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::common::{self, Bench, wait_for};
use crate::unikernel::is_usable;
use rustix::process::Signal;
use tare_wire::line::MARKER;

#[test]
fn an_image_says_what_it_says_and_its_status_counts() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let ran = bench.run("image run hello,machine=pc,mem=2M,irq=off one two");
    ran.expect(0, &[]);
    assert_eq!(ran.out, "hello from tare: irq=off cpus=1 one two\n");
    // A guest's output reaches no terminal as a command.
    let ran = bench.run("image run hello \u{1b}[2Jx");
    ran.expect(0, &["\\u001b[2Jx"]);
    assert!(!ran.out.contains('\u{1b}'), "{ran:?}");
    let ran = bench.run("image run hello then=panic");
    ran.expect(1, &["panic at", "asked for on the command line", "main"]);
    bench
        .run("image run bench nonsense")
        .expect(1, &["'workload=…' is missing"]);
    let words = "workload=prime limit=22 repetitions=1000";
    let ran = bench.run(&format!("image run bench {words}"));
    ran.expect(
        0,
        &[
            "hello protocol=",
            "environment=\"unikernel\"",
            "ready tsc=",
            "end records=",
        ],
    );
    assert!(!ran.out.contains(MARKER), "{}", ran.out);
    let ran = bench.run(&format!("image run bench --raw {words}"));
    ran.expect(0, &[&format!("{MARKER} 0 hello ")]);
    bench
        .run("image run no-such")
        .expect(5, &["no-such", "make build"]);
    bench.run("image run ./no-such").expect(5, &["./no-such"]);
    bench.run("image run hello,mem=1K").expect(2, &["mem"]);
}

#[test]
fn ctrl_c_ends_an_image_that_would_not_end() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let started = bench.start("image run hello then=idle");
    let mark = bench.state().display().to_string();
    wait_for("QEMU", || {
        (common::processes_with(&mark).len() > 1).then_some(())
    });
    started.signal(Signal::INT);
    let ran = started.end();
    ran.expect(4, &[]);
    assert_eq!(common::processes_with(&mark), Vec::<u32>::new());
}

#[test]
fn a_debugger_decides_when_the_image_runs() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    // Not one of the ports that the kernel gives to clients: one that waits for QEMU could be given
    // the very port, and would be connected with itself.
    let first = 23_000 + u16::try_from(std::process::id() % 9_000).unwrap();
    let port = (first..first + 100).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    let port = port.unwrap();
    let started = bench.start(&format!("image run hello --gdb={port} bye"));
    let mut gdb = wait_for("QEMU's port", || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    gdb.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // gdb's remote protocol: why did it stop? Then: go on.
    gdb.write_all(b"+$?#3f").unwrap();
    let mut answer = Vec::new();
    while !answer.contains(&b'#') {
        let mut bytes = [0; 100];
        let read = gdb.read(&mut bytes).unwrap();
        assert!(read > 0, "QEMU closed the connection");
        answer.extend(&bytes[..read]);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(
        answer.contains("$T05") || answer.contains("$S05"),
        "{answer}"
    );
    gdb.write_all(b"+$c#63").unwrap();
    let ran = started.end();
    ran.expect(0, &["target remote 127.0.0.1"]);
    assert!(ran.out.ends_with("bye\n"), "{}", ran.out);
}
