//! Why a machine can't be reached, and what to type.
//!
//! OpenSSH's client tells by words on standard error and the status 255. The words have been the
//! same for many years; what is not recognised is passed on as it is.

use super::settings::Settings;
use crate::error::TargetError;

/// Returns the error for the messages of a client that could not connect.
pub(super) fn refused(settings: &Settings, said: &str) -> TargetError {
    let says = |words: &str| said.contains(words);
    let ssh = settings.words("-p");
    let port = settings.port.unwrap_or(22);
    let mut lines = said.lines().map(str::trim);
    let last = one_line(lines.rfind(|line| !line.is_empty()).unwrap_or_default());
    let (why, remedy) = if says("IDENTIFICATION HAS CHANGED") {
        let why = "its host key is not the one that is known: either it was installed anew, or this \
                   is another machine";
        let (known_as, accept) = (known_as(settings), accept(settings));
        let remedy = format!(
            "find out which; if the new key is right, `ssh-keygen -R {known_as}`, then {accept}"
        );
        (why.to_owned(), remedy)
    } else if says("Host key verification failed") || says("host key is known for") {
        ("its host key is not known".to_owned(), accept(settings))
    } else if says("UNPROTECTED PRIVATE KEY") || says("bad permissions") {
        let key = settings.identity.as_ref();
        let key = key.map_or("KEY".to_owned(), |key| key.display().to_string());
        let why = "ssh does not use a private key that others can read";
        (why.to_owned(), format!("chmod 600 {key}"))
    } else if says("Permission denied") || says("Too many authentication failures") {
        (
            format!("it refuses the authentication ({last})"),
            copy_key(settings),
        )
    } else if says("Could not resolve hostname") {
        let remedy = format!(
            "check the name with `getent hosts {}`",
            name_of(&settings.host)
        );
        (format!("its name is not known ({last})"), remedy)
    } else if says("Connection refused") {
        let remedy =
            "start its sshd (on Debian `systemctl start ssh`), or name its port with port=N";
        (
            format!("nothing listens on its port {port}"),
            remedy.to_owned(),
        )
    } else if says("timed out") || says("No route to host") || says("unreachable") {
        let remedy =
            format!("see that it is switched on and lets port {port} through: `ssh -v {ssh} true`");
        (format!("it does not answer ({last})"), remedy)
    } else {
        let why = match said.is_empty() {
            true => "ssh ended without saying why".to_owned(),
            false => format!("ssh said: {}", one_line(said)),
        };
        (why, format!("see what `ssh -v {ssh} true` says"))
    };
    settings.unusable(why, remedy)
}

/// Joins lines of output into one that can be read.
pub(super) fn one_line(said: &str) -> String {
    /// Its greatest length in characters.
    const LONGEST: usize = 500;
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" / ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The command that makes a host key known.
fn accept(settings: &Settings) -> String {
    let file = settings
        .value_of("UserKnownHostsFile")
        .unwrap_or("~/.ssh/known_hosts");
    let port = settings.port.map(|port| format!("-p {port} "));
    let port = port.unwrap_or_default();
    format!(
        "`ssh-keyscan {port}{} >>{file}`, and compare the fingerprint that `ssh-keygen -lf {file}` \
         shows with the one on the machine itself",
        name_of(&settings.host)
    )
}

/// The command that makes our key known.
fn copy_key(settings: &Settings) -> String {
    let key = settings.identity.as_ref();
    let key = key.map_or(String::new(), |key| format!("-i {} ", key.display()));
    format!(
        "`ssh-copy-id {key}{}`; for a key with a passphrase also `ssh-add`, since nobody is there to \
         type it",
        settings.words("-p")
    )
}

/// Returns the name under which known_hosts has the machine.
fn known_as(settings: &Settings) -> String {
    let name = name_of(&settings.host);
    match settings.port {
        None | Some(22) => name.to_owned(),
        Some(port) => format!("'[{name}]:{port}'"),
    }
}

fn name_of(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn settings(options: &str) -> Settings {
        Settings::read(&spec::options("ssh", options))
    }

    /// What OpenSSH 9.2 says.
    const SAID: &[(&str, &str)] = &[
        (
            "unknown host key",
            "No ED25519 host key is known for [127.0.0.1]:2222 and you have requested strict \
             checking.\r\nHost key verification failed.\r\n",
        ),
        (
            "changed host key",
            "@@@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n@@@@@\r\n\
             IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\nHost key verification \
             failed.\r\n",
        ),
        (
            "wrong key",
            "root@127.0.0.1: Permission denied (publickey).\r\n",
        ),
        (
            "open key",
            "@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @\r\nPermissions 0644 for \
             'key' are too open.\r\nroot@127.0.0.1: Permission denied (publickey).\r\n",
        ),
        (
            "no such name",
            "ssh: Could not resolve hostname lab: Name or service not known\r\n",
        ),
        (
            "nobody listens",
            "ssh: connect to host 127.0.0.1 port 2222: Connection refused\r\n",
        ),
        (
            "switched off",
            "ssh: connect to host 10.0.0.9 port 22: Connection timed out\r\n",
        ),
        (
            "another reason",
            "Bad owner or permissions on config\r\nno more\r\n",
        ),
        ("no reason", ""),
    ];

    #[test]
    fn a_flood_is_told_in_part() {
        let told = one_line(&"µ\n".repeat(100_000));
        assert_eq!(told.chars().count(), 501);
        assert!(told.starts_with("µ / µ") && told.ends_with('…'));
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        let settings = settings("host=root@127.0.0.1,port=2222,identity=/k/id");
        let texts: Vec<String> = SAID
            .iter()
            .map(|(what, said)| format!("{what}: {}", refused(&settings, said)))
            .collect();
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    #[test]
    fn remedies_leave_out_what_was_not_said() {
        let settings = settings("host=lab");
        for (index, words) in [
            (0, "`ssh-keyscan lab >>~/.ssh/known_hosts`"),
            (1, "`ssh-keygen -R lab`"),
            (2, "`ssh-copy-id lab`"),
            (6, "`ssh -v lab true`"),
        ] {
            let text = refused(&settings, SAID[index].1).to_string();
            assert!(text.contains(words), "{text}");
        }
    }
}
