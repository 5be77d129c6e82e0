//! The options of the target `ssh`.
//!
//! What becomes a word for `ssh` or for a shell on the other machine is checked here to be
//! harmless, so that later code need not quote it.

use std::path::PathBuf;

use tare_results::target::{Group, TargetSpec};
use tare_wire::cpus::MOST;

use crate::error::TargetError;
use crate::options::{Opt, Options};

pub(super) const NAME: &str = "ssh";

const HOST: Opt = Opt::text(
    "host",
    "[USER@]HOST",
    "a host as ssh takes it, [user@]name, without white space or characters that a shell would \
     interpret",
    host,
)
.required()
.means("as for `ssh`: a name of your ssh_config, a host name, an address");
const PORT: Opt = Opt::number("port", 1, 65_535)
    .unset("yours, else 22")
    .means("port of its sshd");
const IDENTITY: Opt = Opt::file("identity", "the path of a private key")
    .unset("yours")
    .means("private key; no other is then tried");
const CPU: Opt = Opt::number("cpu", 0, MOST - 1)
    .unset("the plan's")
    .means("CPU of the other machine to measure on");
const DIR: Opt = Opt::text(
    "dir",
    "DIR",
    "an absolute path on the other machine, of letters, digits and ._-+@/",
    dir,
)
.default("/tmp")
.means("where our folder is created there; must allow executing files");
const OPTION: Opt = Opt::text(
    "option",
    "KEY=VALUE",
    "Keyword=value of ssh_config(5), other than those that tare sets itself (see docs/targets.md)",
    option,
)
.repeated()
.means("an option of ssh_config(5), as for `ssh -o`; repeatable");

/// The options.
pub(crate) const OPTIONS: &[Opt] = &[HOST, PORT, IDENTITY, CPU, DIR, OPTION];

/// The keywords of ssh_config(5) that [`super::client`] sets, in lower case: with other values the
/// target would not keep its promises.
const TAKEN: &str = "batchmode clearallforwardings controlmaster controlpath controlpersist escapechar \
     forkafterauthentication forwardagent forwardx11 identityfile loglevel permitlocalcommand port \
     remotecommand requesttty sessiontype stdinnull";

/// A machine, and how it is reached.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) spec: TargetSpec,
    /// `host` or `user@host`, as `ssh` takes it.
    pub(super) host: String,
    /// By the user's own configuration if None, as is the identity.
    pub(super) port: Option<u32>,
    pub(super) identity: Option<PathBuf>,
    /// The plan's CPU if None.
    pub(super) cpu: Option<u32>,
    pub(super) dir: String,
    /// Further options, as `ssh -o` takes them, in the order given: of two, ssh takes the first.
    pub(super) options: Vec<String>,
}

impl Settings {
    /// Reads the options.
    pub(crate) fn read(options: &Options) -> Self {
        Self {
            spec: options.spec(Group::Remote),
            host: options.get(&HOST),
            port: options.find(&PORT),
            identity: options.find(&IDENTITY),
            cpu: options.find(&CPU),
            dir: options.get(&DIR),
            options: options.all(&OPTION),
        }
    }

    /// Creates the error of a machine that cannot be used.
    pub(super) fn unusable(
        &self,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> TargetError {
        TargetError::Ssh {
            host: self.host.clone(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    /// Returns the words that name the machine to one of OpenSSH's programs, for a remedy:
    /// `-p 2222 user@host`. `port` is the program's option for the port.
    pub(super) fn words(&self, port: &str) -> String {
        let port = self.port.map(|number| format!("{port} {number} "));
        port.unwrap_or_default() + &self.host
    }

    /// Returns the value of one of the further options.
    pub(super) fn value_of(&self, keyword: &str) -> Option<&str> {
        let mut pairs = self.options.iter().filter_map(|text| text.split_once('='));
        let found = pairs.find(|(key, _)| key.eq_ignore_ascii_case(keyword));
        found.map(|(_, value)| value)
    }
}

fn host(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_alphanumeric() || "._-@:%+".contains(c);
    let fits = !text.is_empty() && !text.starts_with('-') && text.chars().all(allowed);
    fits.then(|| text.to_owned())
}

fn dir(text: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-+@/".contains(c);
    let fits = text.starts_with('/') && text.chars().all(allowed);
    let text = match text.trim_end_matches('/') {
        "" => "/",
        text => text,
    };
    fits.then(|| text.to_owned())
}

fn option(text: &str) -> Option<String> {
    let (key, value) = text.split_once('=')?;
    let fits = !key.is_empty()
        && key.chars().all(|c| c.is_ascii_alphanumeric())
        && !TAKEN
            .split(' ')
            .any(|taken| key.eq_ignore_ascii_case(taken))
        && !value.is_empty()
        && !value.contains(char::is_control);
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tare_results::target::TargetOption;

    use super::*;
    use crate::spec;

    #[test]
    fn the_canonical_form_has_a_fixed_order_and_no_defaults() {
        for (text, canonical) in [
            ("ssh,host=lab", "ssh,host=lab"),
            (
                "ssh,cpu=3,dir=/tmp/,port=022,host=root@10.0.0.7",
                "ssh,host=root@10.0.0.7,port=22,cpu=3",
            ),
            (
                "ssh,option=Ciphers=a,,b,host=::1,dir=/var/tmp,option=User=x=y,identity=/k,,1",
                "ssh,host=::1,identity=/k,,1,dir=/var/tmp,option=Ciphers=a,,b,option=User=x=y",
            ),
        ] {
            assert_eq!(spec::parse(text).unwrap().spec(), canonical);
            assert_eq!(spec::parse(canonical).unwrap().spec(), canonical);
        }
    }

    #[test]
    fn what_is_not_safe_to_pass_on_is_refused() {
        for (text, said) in [
            ("ssh", "needs 'host': it is written ssh,host="),
            ("ssh,port=22", "needs 'host'"),
            ("ssh,host=", "'host='"),
            ("ssh,host=-oProxyCommand=x", "'host=-oProxyCommand=x'"),
            ("ssh,host=a b", "'host=a b'"),
            ("ssh,host=a;b", "'host=a;b'"),
            ("ssh,host=$(a)", "'host=$(a)'"),
            ("ssh,host=a,port=0", "'port=0'"),
            ("ssh,host=a,identity=", "'identity='"),
            ("ssh,host=a,dir=tmp", "'dir=tmp'"),
            ("ssh,host=a,dir=/t m", "'dir=/t m'"),
            ("ssh,host=a,dir=/$HOME", "'dir=/$HOME'"),
            ("ssh,host=a,option=Compression", "'option=Compression'"),
            (
                "ssh,host=a,option=ForwardAgent=yes",
                "'option=ForwardAgent=yes'",
            ),
            (
                "ssh,host=a,option=controlpath=x",
                "other than those that tare sets itself",
            ),
            ("ssh,host=a,host=b", "is given twice"),
            (
                "ssh,host=a,user=b",
                "it takes: host=[USER@]HOST, port=N, identity=FILE",
            ),
        ] {
            let message = spec::parse(text).unwrap_err().to_string();
            assert!(message.contains(said), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            host in "[a-z0-9][a-zA-Z0-9._@:-]{0,20}",
            port in prop::option::of(1..=65_535_u32),
            identity in prop::option::of("/[^\\p{C}\\p{Zl}\\p{Zp}/.]{1,20}"),
            cpu in prop::option::of(0..MOST),
            dir in "/[a-z._+@-]{1,9}",
            values in prop::collection::vec("[^\\p{C}\\p{Zl}\\p{Zp}]{1,20}", 0..3),
        ) {
            let own = values.iter().map(|value| Some(("option", format!("Ciphers={value}"))));
            let all = [
                Some(("host", host)),
                port.map(|port| ("port", port.to_string())),
                identity.map(|path| ("identity", path)),
                cpu.map(|cpu| ("cpu", cpu.to_string())),
                Some(("dir", dir)),
            ];
            let options = all.into_iter().chain(own).flatten().map(|(key, value)| {
                TargetOption { key: key.to_owned(), value }
            });
            let spec = TargetSpec::new(NAME, options.collect(), Group::Remote);
            prop_assert_eq!(spec::parse(&spec.text).unwrap().spec(), spec);
        }
    }
}
