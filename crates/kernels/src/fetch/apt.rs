//! apt: asking what there is, with the machine's lists of packages or with our own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::stanza::{Offer, offers};
use super::tool::Tool;
use crate::error::KernelError;
use crate::files::{make_dir, write};
use crate::name::{Series, Wanted};
use crate::version;

/// Asking what there is reads files only.
const LOOK_LIMIT: Duration = Duration::from_secs(60);
const LISTS_LIMIT: Duration = Duration::from_secs(10 * 60);

/// apt, with its own configuration.
#[derive(Debug)]
pub(super) struct Apt {
    configuration: PathBuf,
    folder: PathBuf,
    own_lists: bool,
}

impl Apt {
    /// Writes a configuration into a scratch folder.
    pub(super) fn new(scratch: &Path) -> Result<Self, KernelError> {
        let apt = Self {
            configuration: scratch.join("apt.conf"),
            folder: scratch.join("apt"),
            own_lists: false,
        };
        apt.configure()?;
        Ok(apt)
    }

    /// Returns whether lists were fetched for us.
    pub(super) fn has_own_lists(&self) -> bool {
        self.own_lists
    }

    /// Fetches our own lists of packages.
    pub(super) fn refresh(&mut self, tool: &Tool<'_>) -> Result<(), KernelError> {
        self.own_lists = true;
        self.configure()?;
        let what = "fetching the lists of packages with apt-get";
        tool.run(what, self.get().arg("update"), LISTS_LIMIT)?;
        Ok(())
    }

    /// Prepares `apt-get`.
    pub(super) fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.arg("-c").arg(&self.configuration).arg("-q");
        command
    }

    /// Finds the newest package of a kernel; None if there is none.
    pub(super) fn newest(
        &self,
        tool: &Tool<'_>,
        wanted: Wanted,
    ) -> Result<Option<Offer>, KernelError> {
        let names = match wanted.series {
            None => self.default_packages(tool, wanted)?,
            Some(series) => {
                let mut command = self.cache();
                command.arg("pkgnames").arg(format!("linux-image-{series}"));
                let what = "listing packages with apt-cache";
                tool.run(what, &mut command, LOOK_LIMIT)?
                    .lines()
                    .filter(|name| is_kernel(name, wanted, series))
                    .map(str::to_owned)
                    .collect()
            }
        };
        let offers = self.show(tool, &names)?;
        Ok(offers.into_iter().max_by(|a, b| {
            version::compare(&a.version, &b.version)
                .then_with(|| version::compare(&a.package, &b.package))
        }))
    }

    /// Returns the package on which the distribution's own choice of this flavour depends.
    fn default_packages(
        &self,
        tool: &Tool<'_>,
        wanted: Wanted,
    ) -> Result<Vec<String>, KernelError> {
        let suffix = wanted.flavour.package_suffix();
        let choice = self.show(tool, &[format!("linux-image-{suffix}")])?;
        let newest = choice
            .into_iter()
            .max_by(|a, b| version::compare(&a.version, &b.version));
        let depends = newest.map(|offer| offer.depends).unwrap_or_default();
        let names = depends
            .split(',')
            .filter_map(|dependency| dependency.split_whitespace().next())
            .filter(|name| {
                release_part(name, wanted)
                    .and_then(Series::of)
                    .is_some_and(|series| is_kernel(name, wanted, series))
            });
        Ok(names.map(str::to_owned).collect())
    }

    fn show(&self, tool: &Tool<'_>, names: &[String]) -> Result<Vec<Offer>, KernelError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = self.cache();
        command.args(["show", "--no-all-versions"]).args(names);
        match tool.run("asking apt-cache", &mut command, LOOK_LIMIT) {
            Ok(text) => Ok(offers(&text)),
            // It fails when it knows none of the names.
            Err(KernelError::Tool { said, .. }) if said.contains("No packages found") => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    fn cache(&self) -> Command {
        let mut command = Command::new("apt-cache");
        command.arg("-c").arg(&self.configuration);
        command
    }

    /// Writes the configuration: what the machine's says, but for what would change the machine or
    /// weaken the check of signatures.
    fn configure(&self) -> Result<(), KernelError> {
        let archives = self.folder.join("cache/archives/partial");
        let lists = self.folder.join("lists/partial");
        make_dir(&archives)?;
        make_dir(&lists)?;
        let mut text = format!(
            "\
Dir::Cache \"{cache}\";
Dir::Cache::archives \"archives/\";
// Without this it ends with success when lists could not be fetched.
APT::Update::Error-Mode \"any\";
APT::Get::AllowUnauthenticated \"false\";
Acquire::AllowInsecureRepositories \"false\";
Acquire::AllowWeakRepositories \"false\";
Acquire::Retries \"2\";
Acquire::http::Timeout \"30\";
Acquire::https::Timeout \"30\";
Acquire::Languages \"none\";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";
// The scratch folder is for one user only; apt's own user could not write there.
APT::Sandbox::User \"\";
// The machine's hooks after an update concern its own lists.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
",
            cache = self.folder.join("cache").display(),
        );
        if self.own_lists {
            let lists = self.folder.join("lists");
            text.push_str(&format!("Dir::State::lists \"{}\";\n", lists.display()));
        }
        write(&self.configuration, text)
    }
}

/// Returns whether a download failed because the servers no longer have what the lists name.
pub(super) fn is_outdated(said: &str) -> bool {
    said.contains("404") || said.to_ascii_lowercase().contains("not found")
}

/// Describes the packages of a kernel, for messages.
pub(super) fn pattern(wanted: Wanted) -> String {
    let suffix = wanted.flavour.package_suffix();
    match wanted.series {
        None => format!("linux-image-{suffix}"),
        Some(series) => format!("linux-image-{series}.*-{suffix}"),
    }
}

/// Returns `6.1.0-56` of `linux-image-6.1.0-56-cloud-amd64`.
fn release_part(package: &str, wanted: Wanted) -> Option<&str> {
    package
        .strip_prefix("linux-image-")?
        .strip_suffix(wanted.flavour.package_suffix())?
        .strip_suffix('-')
}

/// Returns whether a package holds a kernel of this flavour and series, and does not just name one.
fn is_kernel(package: &str, wanted: Wanted, series: Series) -> bool {
    let Some(release) = release_part(package, wanted) else {
        return false;
    };
    let mut parts = release.split('-');
    let version = parts.next().unwrap_or_default();
    // Another flavour's name would stand in a later part.
    Series::of(release) == Some(series)
        && version.split('.').count() >= 3
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_one_flavour_and_series_are_told_from_all_others() {
        let fits = |name: &str, package: &str| {
            let wanted = Wanted::parse(name).unwrap();
            is_kernel(package, wanted, wanted.series.unwrap())
        };
        assert!(fits("debian-6.1", "linux-image-6.1.0-56-amd64"));
        assert!(fits("debian-6.12", "linux-image-6.12.117+deb12-amd64"));
        assert!(fits("debian-6.12", "linux-image-6.12.9+bpo-amd64"));
        assert!(fits("debian-rt-6.1", "linux-image-6.1.0-56-rt-amd64"));
        assert!(fits(
            "debian-cloud-6.12",
            "linux-image-6.12.117+deb12-cloud-amd64"
        ));
        for package in [
            "linux-image-6.12-amd64",
            "linux-image-6.1.0-56-amd64-unsigned",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-56-rt-amd64",
            "linux-image-6.12.117+deb12-amd64",
            "linux-image-amd64",
            "linux-headers-6.1.0-56-amd64",
        ] {
            assert!(!fits("debian-6.1", package), "{package}");
        }
    }
}
