//! How OpenSSH's client is called.
//!
//! One client, the *master*, makes the connection and keeps it; those that start instances go
//! *through* it, by its control socket, without connecting and authenticating again. The
//! socket lies in a scratch folder for this user only. It is named relative to that folder, where
//! all clients run: the path of a socket can't be longer than about 100 bytes.
//!
//! The user's own configuration is respected, above all known_hosts, but for what would break the
//! target's promises: [`MASTER`].

use std::path::Path;
use std::process::Command;

use super::settings::Settings;

pub(super) const PROGRAM: &str = "ssh";

/// The package that has it.
pub(super) const PACKAGE: &str = "openssh-client";

/// The name of the control socket.
const SOCKET: &str = "ControlPath=./control";

/// What holds for all clients: they never ask, nothing is forwarded, input and output are bytes.
const ALL: &[&str] = &[
    "BatchMode=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "EscapeChar=none",
    // Errors, but no banners.
    "LogLevel=ERROR",
    SOCKET,
];

/// What holds for the master.
const MASTER: &[&str] = &["ControlMaster=yes", "ControlPersist=no"];

/// What holds unless the user says otherwise: whoever does not answer is given up after 10 s,
/// whoever falls silent after 45 s.
const DEFAULT: &[&str] = &[
    "ConnectTimeout=10",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
];

/// The options of clients that go through the master. Without them they would connect by themselves
/// after it has ended: with them they fail at once.
const THROUGH: &[&str] = &["ControlMaster=no", "ProxyCommand=false"];

/// Prepares to connect and to run a command on the other machine.
pub(super) fn master(settings: &Settings, folder: &Path, remote: &str) -> Command {
    call(settings, folder, MASTER, remote)
}

/// Prepares to run a command on the other machine, by the connection that there is.
pub(super) fn through(settings: &Settings, folder: &Path, remote: &str) -> Command {
    call(settings, folder, THROUGH, remote)
}

fn call(settings: &Settings, folder: &Path, kind: &[&str], remote: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder);
    // ssh takes the first of several values.
    let own: Vec<&str> = settings.options.iter().map(String::as_str).collect();
    for option in [ALL, kind, &own, DEFAULT].concat() {
        command.args(["-o", option]);
    }
    if let Some(port) = settings.port {
        command.args(["-p", &port.to_string()]);
    }
    if let Some(identity) = &settings.identity {
        // Keys of an agent would be tried first, and count against the server's limit.
        command.args(["-o", "IdentitiesOnly=yes", "-i"]);
        // Of the signs that ssh would expand, this is the one that can be escaped.
        command.arg(identity.display().to_string().replace('%', "%%"));
    }
    command.args(["--", &settings.host, remote]);
    command
}
