//! The options of the target `ssh`.
//!
//! What becomes a word for `ssh` or for a shell on the other machine is checked here to be harmless,
//! so that nobody behind needs to quote it.

use std::path::{Path, PathBuf};

use tare_results::target::{Group, TargetSpec};

use crate::error::TargetError;
use crate::options::{Canonical, Options, file, missing};

pub(super) const NAME: &str = "ssh";

/// How the target is written.
pub(crate) const FORM: &str =
    "ssh,host=[user@]HOST[,port=N][,identity=FILE][,cpu=N][,dir=DIR][,option=KEY=VALUE]…";

/// The folder on the other machine in which ours is made.
const DEFAULT_DIR: &str = "/tmp";

/// The keywords of ssh_config(5) that [`super::client`] sets, in lower case: another value would
/// break what the target promises.
const TAKEN: &str = "batchmode clearallforwardings controlmaster controlpath controlpersist escapechar \
     forkafterauthentication forwardagent forwardx11 identityfile loglevel permitlocalcommand port \
     remotecommand requesttty sessiontype stdinnull";

/// Which machine, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
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
    /// Read the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an option that does not exist, is given twice, has no possible
    /// value, or for a missing host.
    pub(crate) fn read(mut options: Options) -> Result<Self, TargetError> {
        const HOST: &str = "a host as ssh takes it, [user@]name, without white space or \
                            characters that a shell would interpret";
        const DIR: &str = "an absolute path on the other machine, of letters, digits and ._-+@/";
        const OPTION: &str = "Keyword=value of ssh_config(5), other than those that tare sets \
                              itself (see docs/targets.md)";
        let given = options.text("host", "[USER@]HOST", HOST, host)?;
        let settings = Self {
            host: given.clone().unwrap_or_default(),
            port: options.number("port", 1..=65_535)?,
            identity: options.text("identity", "FILE", "the path of a private key", file)?,
            cpu: options.number("cpu", 0..=65_535)?,
            dir: options
                .text("dir", "DIR", DIR, dir)?
                .unwrap_or_else(|| DEFAULT_DIR.to_owned()),
            options: options.texts("option", "KEY=VALUE", OPTION, option)?,
        };
        options.finish()?;
        match given {
            Some(_) => Ok(settings),
            None => Err(missing(NAME, "host", FORM)),
        }
    }

    /// Return the target's canonical form.
    pub(super) fn canonical(&self) -> TargetSpec {
        let identity = self.identity.as_deref().map(Path::display);
        let dir = (self.dir != DEFAULT_DIR).then_some(&self.dir);
        let canonical = Canonical::new(NAME)
            .option("host", Some(&self.host))
            .option("port", self.port)
            .option("identity", identity)
            .option("cpu", self.cpu)
            .option("dir", dir);
        let options = self.options.iter().map(Some);
        options
            .fold(canonical, |canonical, option| {
                canonical.option("option", option)
            })
            .of_group(Group::Remote)
    }

    /// Make the error of a machine that can't be used.
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

    /// Return the words that name the machine to any of OpenSSH's programs, for a remedy:
    /// `-p 2222 user@host`. `port` is the program's own option for it.
    pub(super) fn words(&self, port: &str) -> String {
        let port = self.port.map(|number| format!("{port} {number} "));
        port.unwrap_or_default() + &self.host
    }

    /// Return the value of one of the further options.
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
            identity in prop::option::of("/[^\0/.]{1,20}"),
            cpu in prop::option::of(0..=65_535_u32),
            dir in "/[a-z._+@-]{1,9}",
            values in prop::collection::vec("[^\\p{C}]{1,20}", 0..3),
        ) {
            let settings = Settings {
                host,
                port,
                identity: identity.map(PathBuf::from),
                cpu,
                dir,
                options: values.iter().map(|value| format!("Ciphers={value}")).collect(),
            };
            let spec = settings.canonical();
            prop_assert_eq!(spec::parse(&spec.text).unwrap().spec(), spec);
        }
    }
}
