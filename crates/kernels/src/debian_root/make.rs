//! Making a Debian: `debootstrap` into a scratch folder, `mke2fs` of that.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tare_guard::{Guard, Interrupt};

use super::{DebianRoot, FOLDER, GUEST_FOLDER, IMAGE, RECORD, RootRecord, find};
use crate::error::{Doing, KernelError};
use crate::fetch::{Tool, path_for_root, require};
use crate::files::{entries, if_there, is_deb, make_dir, make_empty, sync, write, write_json};
use crate::store::{Store, sha256};

/// More than a slow line and a slow disk need.
const LIMIT: Duration = Duration::from_secs(30 * 60);
const LOOK_LIMIT: Duration = Duration::from_secs(60);
/// Free space on the disk, for journals and the files of loads.
const ROOM: u64 = 512 << 20;

/// Checks that a Debian can be made here, before anything is downloaded.
///
/// # Errors
///
/// [`KernelError::NotRoot`] or [`KernelError::NoTool`].
pub fn check_tools() -> Result<(), KernelError> {
    if !rustix::process::geteuid().is_root() {
        return Err(KernelError::NotRoot {
            what: "making a whole Debian with debootstrap",
        });
    }
    for (program, package) in [
        ("debootstrap", "debootstrap"),
        ("mke2fs", "e2fsprogs"),
        ("unshare", "util-linux"),
        ("dpkg-query", "dpkg"),
    ] {
        let remedy = format!(
            "install it: apt-get update && apt-get install -y --no-install-recommends {package}"
        );
        require(program, "a whole Debian is made with it", &remedy)?;
    }
    Ok(())
}

/// What making a Debian will download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPlan {
    /// The release's name: `bookworm`.
    pub suite: String,
    /// How many packages.
    pub packages: usize,
    /// Size of the packages, as far as apt knows them: updates may have another size.
    pub bytes: u64,
}

/// Finds out what making a Debian will download; that asks the servers for their list of packages.
///
/// # Errors
///
/// As [`make`].
pub fn plan(guard: &Guard, interrupt: &Interrupt) -> Result<RootPlan, KernelError> {
    check_tools()?;
    let scratch = guard.scratch("debian-plan")?;
    let tool = Tool::new(guard, Some(interrupt), scratch.path());
    let origin = Origin::of_this_machine(&tool)?;
    let mut command = debootstrap(&origin, &scratch.path().join("tree"), &["--print-debs"]);
    let what = "asking debootstrap for its packages";
    let text = tool.run(what, &mut command, LIMIT)?;
    let packages: Vec<&str> = text.split_whitespace().collect();
    let mut command = Command::new("apt-cache");
    command.args(["show", "--no-all-versions"]).args(&packages);
    // Where apt does not know these packages, the size is not known.
    let known = tool.run("asking apt-cache", &mut command, LOOK_LIMIT);
    let sizes = known.as_deref().unwrap_or_default().lines();
    let sizes = sizes.filter_map(|line| line.strip_prefix("Size:")?.trim().parse::<u64>().ok());
    Ok(RootPlan {
        suite: origin.suite,
        packages: packages.len(),
        bytes: sizes.sum(),
    })
}

/// Makes a Debian and puts it into the store, in place of one that is there. Takes root, the
/// network and a minute or two. Open the guard with [`Store::guard_options`].
///
/// # Errors
///
/// As [`check_tools`]; [`KernelError::Tool`], [`KernelError::Failed`] if it takes too long,
/// [`KernelError::Interrupted`] or [`KernelError::Io`]. The store is as before then, and nothing is
/// mounted.
pub fn make(
    store: &Store,
    guard: &Guard,
    interrupt: &Interrupt,
) -> Result<DebianRoot, KernelError> {
    check_tools()?;
    let scratch = guard.scratch("debian")?;
    let tool = Tool::new(guard, Some(interrupt), scratch.path());
    let (tree, prepared) = (scratch.path().join("tree"), scratch.path().join("root"));
    make_empty(&prepared)?;
    let origin = Origin::of_this_machine(&tool)?;
    let mut command = debootstrap(&origin, &tree, &[]);
    tool.run("making a Debian with debootstrap", &mut command, LIMIT)?;
    let packages = packages(&tool, &tree)?;
    furnish(&tree)?;

    let image = prepared.join(IMAGE);
    let bytes = make_image(&tool, &tree, &image)?;
    let record = RootRecord {
        suite: origin.suite,
        variant: "standard".to_owned(),
        packages,
        sha256: sha256(&image)?,
        bytes,
    };
    write_json(&prepared.join(RECORD), &record)?;
    sync(&prepared)?;

    let folder = store.dir().join(FOLDER);
    store.make(folder.parent().unwrap_or(store.dir()))?;
    // The old one goes with the scratch folder.
    if_there(fs::rename(&folder, scratch.path().join("old"))).doing("replace", &folder)?;
    fs::rename(&prepared, &folder).doing("make", &folder)?;
    find(store)
}

/// Which Debian, and from where.
struct Origin {
    suite: String,
    /// None for debootstrap's own choice.
    mirror: Option<String>,
}

impl Origin {
    /// Takes this machine's release, from where its packages come.
    fn of_this_machine(tool: &Tool<'_>) -> Result<Self, KernelError> {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let value = |key: &str| {
            release.lines().find_map(|line| {
                let value = line.strip_prefix(key)?.strip_prefix('=')?;
                Some(value.trim_matches('"').to_owned())
            })
        };
        let codename = value("VERSION_CODENAME").filter(|name| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        let (Some("debian"), Some(suite)) = (value("ID").as_deref(), codename) else {
            return Ok(Self {
                suite: "stable".to_owned(),
                mirror: None,
            });
        };
        let mut command = Command::new("apt-get");
        command.args([
            "indextargets",
            "--format",
            "$(CODENAME) $(REPO_URI)",
            "Created-By: Packages",
        ]);
        let targets = tool.run("asking apt-get", &mut command, LOOK_LIMIT)?;
        let mirror = targets.lines().find_map(|line| {
            let (codename, uri) = line.split_once(' ')?;
            (codename == suite && uri.starts_with("http")).then(|| uri.to_owned())
        });
        Ok(Self { suite, mirror })
    }
}

/// Prepares `debootstrap` into a folder, in namespaces that end with it.
fn debootstrap(origin: &Origin, tree: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private"])
        .args(["--pid", "--fork", "--kill-child"])
        .args(["debootstrap", "--arch=amd64", "--force-check-gpg"])
        .args(options)
        .arg(&origin.suite)
        .arg(tree)
        .args(&origin.mirror)
        .env("PATH", path_for_root());
    command
}

fn packages(tool: &Tool<'_>, tree: &Path) -> Result<Vec<String>, KernelError> {
    let mut admin = std::ffi::OsString::from("--admindir=");
    admin.push(tree.join("var/lib/dpkg"));
    let mut command = Command::new("dpkg-query");
    command
        .arg(admin)
        .args(["-W", "-f", "${Package}=${Version}\n"]);
    let what = "listing packages with dpkg-query";
    let text = tool.run(what, &mut command, LOOK_LIMIT)?;
    let mut packages: Vec<String> = text.lines().map(str::to_owned).collect();
    packages.sort();
    Ok(packages)
}

/// Sets up what a guest needs and debootstrap leaves open.
fn furnish(tree: &Path) -> Result<(), KernelError> {
    for (path, text) in [
        ("etc/hostname", "guest\n"),
        ("etc/hosts", "127.0.0.1 localhost guest\n::1 localhost\n"),
        (
            "etc/fstab",
            "# The root is named on the kernel's command line.\n",
        ),
    ] {
        write(&tree.join(path), text)?;
    }
    make_dir(&tree.join(GUEST_FOLDER.trim_start_matches('/')))?;
    // The packages are installed; their files are not needed any more.
    for entry in entries(&tree.join("var/cache/apt/archives")) {
        let path = entry.path();
        if is_deb(&path) {
            fs::remove_file(&path).doing("remove", &path)?;
        }
    }
    Ok(())
}

/// Makes a file system of a tree, with room; returns its size.
fn make_image(tool: &Tool<'_>, tree: &Path, image: &Path) -> Result<u64, KernelError> {
    // Blocks and inodes of the file system itself are part of the room.
    let bytes = (bytes_below(tree)? + ROOM).next_multiple_of(1 << 20);
    let mut command = Command::new("mke2fs");
    command
        .args(["-q", "-t", "ext4", "-L", "debian", "-d"])
        .arg(tree)
        .arg(image)
        .arg(format!("{}k", bytes >> 10))
        .env("PATH", path_for_root());
    tool.run("making a disk with mke2fs", &mut command, LIMIT)?;
    Ok(bytes)
}

/// Adds up what the files below a folder take, in whole blocks of 4 KiB.
fn bytes_below(tree: &Path) -> Result<u64, KernelError> {
    let mut sum = 0;
    let mut open = vec![tree.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).doing("list", &folder)? {
            let entry = entry.doing("list", &folder)?;
            let status = entry.metadata().doing("list", &folder)?;
            sum += status.len().next_multiple_of(4_096);
            if status.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(sum)
}
