//! Images with a disk, an archive, a console, a clock, and a name server.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{FAILED, Guest, MISUSED, Running};
use tare_networks::UserNetwork;

/// A machine with devices on PCI, one with MMIO devices, and the suffixes of their devices.
const MACHINES: [(&str, &str); 2] = [("q35", "pci"), ("microvm,acpi=off", "device")];
/// The time limit for asynchronous events.
const LIMIT: Duration = Duration::from_secs(60);

/// Creates an empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a guest with arguments for QEMU.
fn guest(image: &'static str, machine: &'static str, words: &str, arguments: &str) -> Guest {
    let modern = "-global virtio-mmio.force-legacy=false ";
    let all = modern.to_owned() + arguments;
    Guest {
        machine,
        arguments: all.split_whitespace().map(str::to_owned).collect(),
        ..Guest::new(image, words)
    }
}

/// Boots the HTTP service, and returns its address.
fn http(machine: &'static str, bus: &str, arguments: &str) -> Option<(Running, SocketAddr)> {
    let mut said = String::new();
    // Another process may take the free port before QEMU forwards it.
    for _ in 0..3 {
        let network = UserNetwork::new(&[80]).unwrap();
        let netdev = network.netdev("net");
        let card = format!("{arguments} -netdev {netdev} -device virtio-net-{bus},netdev=net");
        let mut guest = guest(env!("CARGO_BIN_EXE_http"), machine, "", &card).start()?;
        let mut text = String::new();
        let mut lines = BufReader::new(guest.console());
        while lines.read_line(&mut text).unwrap() > 0 {
            if text.contains("answering on ") {
                return Some((guest, network.address(80).unwrap()));
            }
        }
        said.push_str(&text);
    }
    panic!("{machine} has ended each time: {said}");
}

/// Requests a file, and returns the head and the content.
fn get(from: SocketAddr, path: &str) -> (String, Vec<u8>) {
    let mut connection = TcpStream::connect(from).unwrap();
    connection.set_read_timeout(Some(LIMIT)).unwrap();
    write!(connection, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut all = Vec::new();
    connection.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    (head, all[end + 4..].to_vec())
}

/// Returns the day in the form of HTTP.
fn today() -> String {
    let mut date = Command::new("date");
    date.args(["-u", "+%a, %d %b %Y"]).env("LC_ALL", "C");
    let day = date.output().unwrap().stdout;
    String::from_utf8(day).unwrap().trim().to_owned()
}

#[test]
fn files_come_from_a_disk_and_from_an_archive_and_answers_have_the_day() {
    let folder = folder("files");
    let large: Vec<u8> = (0..300_000_u32).map(|byte| (byte / 7) as u8).collect();
    let (disk, site) = (folder.join("disk"), folder.join("site"));
    for top in [&disk, &site] {
        fs::create_dir_all(top.join("inner/deeper")).unwrap();
        fs::write(top.join("inner/deeper/A long name.bin"), &large).unwrap();
    }
    fs::write(disk.join("index.html"), "of the disk").unwrap();
    fs::write(disk.join("plain.txt"), "of the disk alone").unwrap();
    fs::write(site.join("index.html"), "of the archive").unwrap();
    let archive = folder.join("site.tar").display().to_string();
    let mut tar = Command::new("tar");
    tar.args(["-cf", &archive, "."]).current_dir(&site);
    assert!(tar.status().unwrap().success());
    for (machine, bus) in MACHINES {
        let drive = format!(
            "-drive if=none,id=disk,format=raw,read-only=on,file=fat:{} -device virtio-blk-{bus},drive=disk",
            disk.display()
        );
        let initrd = format!("-initrd {archive}");
        let both = format!("{drive} {initrd}");
        for (arguments, index, plain) in [
            (&drive, "of the disk", "of the disk alone"),
            (&initrd, "of the archive", "Not Found"),
            (&both, "of the archive", "of the disk alone"),
        ] {
            let before = today();
            let Some((_guest, address)) = http(machine, bus, arguments) else {
                return;
            };
            let (head, body) = get(address, "/");
            assert_eq!(body, index.as_bytes(), "{arguments}");
            let has_day = |day| head.contains(&format!("\r\nDate: {day} "));
            assert!(has_day(before) || has_day(today()), "{head}");
            assert_eq!(
                get(address, "/plain.txt").1,
                plain.as_bytes(),
                "{arguments}"
            );
            let (_, body) = get(address, "/inner/deeper/A%20long%20name.bin");
            assert!(body == large, "{arguments}");
        }
    }
}

#[test]
fn what_is_no_archive_and_no_file_system_is_told() {
    let folder = folder("no-files");
    let path = folder.join("nothing");
    fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
    let path = path.display();
    for (machine, bus) in MACHINES {
        let network = format!("-netdev user,id=net -device virtio-net-{bus},netdev=net");
        for (arguments, told) in [
            (
                format!("-initrd {path}"),
                "http: the initrd is not a tar archive: ",
            ),
            (
                format!(
                    "-drive if=none,id=disk,format=raw,read-only=on,file={path} -device virtio-blk-{bus},drive=disk"
                ),
                "http: the disk has no FAT file system in its first partition",
            ),
        ] {
            let arguments = format!("{network} {arguments}");
            let guest = guest(env!("CARGO_BIN_EXE_http"), machine, "", &arguments);
            let Some(ended) = guest.boot() else {
                return;
            };
            assert!(ended.text.contains(told), "{arguments}: {}", ended.text);
            assert_eq!(ended.status, FAILED);
        }
    }
}

#[test]
fn a_name_is_resolved_and_told_on_a_virtio_console() {
    for (machine, bus) in MACHINES {
        let folder = folder(&format!("names-{bus}"));
        let end = |own: &str, other: &str, last: u8| {
            let path = |name| folder.join(name).display().to_string();
            format!(
                "-netdev dgram,id=wire,local.type=unix,local.path={},remote.type=unix,remote.path={} \
                 -device virtio-net-{bus},netdev=wire,mac=52:54:00:00:00:0{last}",
                path(own),
                path(other)
            )
        };
        let server = guest(
            env!("CARGO_BIN_EXE_dns"),
            machine,
            "ip=192.0.2.53/24",
            &end("server", "client", 1),
        );
        let console = folder.join("console");
        let client = guest(
            env!("CARGO_BIN_EXE_ping"),
            machine,
            "ip=192.0.2.2/24 dns=192.0.2.53 resolve=host258.example console=virtio",
            &format!(
                "{} -device virtio-serial-{bus} -chardev file,id=console,path={} -device virtconsole,chardev=console",
                end("client", "server", 2),
                console.display()
            ),
        );
        let (Some(_server), Some(_client)) = (server.start(), client.start()) else {
            return;
        };
        let start = Instant::now();
        loop {
            let told = fs::read_to_string(&console).unwrap_or_default();
            if told.contains("host258.example has [10.0.1.2]")
                && told.contains("host258.example has [2001:db8::102]")
            {
                break;
            }
            assert!(start.elapsed() < LIMIT, "{machine}: {told}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_zone_file_is_served_or_what_is_wrong_in_it_is_told() {
    let folder = folder("zone");
    let archive = folder.join("zone.tar").display().to_string();
    let zone =
        "example.org. 60 IN SOA ns hostmaster.example.org. 1 2 3 4 5\n$ORIGIN example.org.\n";
    fs::write(
        folder.join("good"),
        zone.replace("SOA ns ", "SOA ns.example.org. ") + "www A 192.0.2.80\n",
    )
    .unwrap();
    fs::write(folder.join("bad"), zone).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["-cf", &archive, "good", "bad"])
        .current_dir(&folder);
    assert!(tar.status().unwrap().success());
    let (_, bus) = MACHINES[0];
    let initrd = format!("-initrd {archive} -device virtio-net-{bus},netdev=net -netdev");
    let image = env!("CARGO_BIN_EXE_dns");
    for (word, told) in [
        (
            "zone=bad",
            "dns: bad: line 1: 'example.org. 60 IN SOA ns hostmaster",
        ),
        ("zone=none", "dns: zone=none: there is no such file"),
    ] {
        let Some(ended) =
            guest(image, MACHINES[0].0, word, &format!("{initrd} user,id=net")).boot()
        else {
            return;
        };
        assert!(ended.text.contains(told), "{}", ended.text);
        assert_eq!(ended.status, FAILED);
    }
    let network = UserNetwork::new(&[53]).unwrap();
    let good = guest(
        image,
        MACHINES[0].0,
        "zone=good",
        &format!("{initrd} {}", network.netdev("net")),
    );
    let mut good = good.start().unwrap();
    let mut lines = BufReader::new(good.console()).lines();
    assert!(lines.any(|line| line.unwrap().contains("answering on ")));
    let port = network.address(53).unwrap().port().to_string();
    let mut dig = Command::new("dig");
    dig.args(["@127.0.0.1", "-p", &port, "+short", "www.example.org"]);
    let ran = dig.output().expect("scripts/setup installs dig");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "192.0.2.80\n");
}

#[test]
fn random_numbers_come_from_a_device_where_the_cpu_has_none() {
    for (machine, bus) in MACHINES {
        let card = format!("-netdev user,id=net -device virtio-net-{bus},netdev=net");
        let without = Guest {
            cpu: "qemu64",
            ..guest(
                env!("CARGO_BIN_EXE_ping"),
                machine,
                "ip=10.0.2.15/24",
                &card,
            )
        };
        let Some(ended) = without.boot() else {
            return;
        };
        let told = "ping: there is no source of random numbers";
        assert!(ended.text.contains(told), "{}", ended.text);
        assert_eq!(ended.status, FAILED);
        let device = format!("{card} -device virtio-rng-{bus}");
        let mut with = Guest {
            arguments: guest("", machine, "", &device).arguments,
            ..without
        }
        .start()
        .unwrap();
        let mut lines = BufReader::new(with.console()).lines();
        assert!(lines.any(|line| line.unwrap() == "answering on 10.0.2.15/24"));
    }
}

#[test]
fn an_address_that_no_host_has_is_misuse() {
    for word in ["ip=255.255.255.255/24", "gateway6=ff02::2"] {
        let image = env!("CARGO_BIN_EXE_ping");
        let Some(ended) = Guest::new(image, word).boot() else {
            return;
        };
        let told = format!("ping: '{word}': want a host's ");
        assert!(ended.text.contains(&told), "{}", ended.text);
        assert_eq!(ended.status, MISUSED);
    }
}

#[test]
fn a_card_with_the_hardware_address_of_a_group_is_rejected() {
    for (machine, bus) in MACHINES {
        let card = format!(
            "-netdev user,id=net -device virtio-net-{bus},netdev=net,mac=01:00:5e:00:00:fb"
        );
        let guest = guest(env!("CARGO_BIN_EXE_dns"), machine, "ip=10.0.2.15/24", &card);
        let Some(ended) = guest.boot() else { return };
        let told = "dns: the network card can't be used: its hardware address, 01:00:5e:00:00:fb, is that of a group or of no host\n";
        assert_eq!(ended.text, told);
        assert_eq!(ended.status, FAILED);
    }
}

#[test]
fn a_console_that_is_not_there_is_told_on_the_serial_line() {
    let guest = guest(env!("CARGO_BIN_EXE_ping"), "q35", "console=virtio", "");
    if let Some(ended) = guest.boot() {
        let told = "ping: there is no virtio console";
        assert!(ended.text.contains(told), "{}", ended.text);
        assert_eq!(ended.status, FAILED);
    }
}
