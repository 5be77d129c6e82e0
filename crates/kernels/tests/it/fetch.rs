//! Fetching a real kernel with the real apt.

use std::fs;
use std::path::Path;

use tare_guard::{Guard, Interrupt};
use tare_kernels::name::Wanted;
use tare_kernels::{FetchPlan, FetchProgress, Fetcher, Kernel, KernelError, Store};
use tare_testkit::skip;

/// Holds what a test of fetching needs; nothing of it touches the user's own store.
struct Bench {
    // Closed before its journal goes with the folder.
    guard: Guard,
    interrupt: Interrupt,
    store: Store,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let options = store.guard_options().unwrap();
        let guard = Guard::open_with(&folder.path().join("state"), options).unwrap();
        Self {
            folder,
            store,
            guard,
            interrupt: Interrupt::detached().unwrap(),
        }
    }

    /// Plans and fetches; None, and a word why, if the distribution can't be reached.
    fn fetch(&self, name: &str) -> Option<(FetchPlan, Result<Kernel, KernelError>)> {
        let mut fetcher = match Fetcher::new(&self.store, &self.guard, &self.interrupt) {
            Err(KernelError::NoTool { program, .. }) => {
                skip("apt", &format!("there is no {program}"));
                return None;
            }
            other => other.unwrap(),
        };
        let mut seen = Vec::new();
        let plan = match fetcher.plan(Wanted::parse(name).unwrap(), &mut |_| {}) {
            Err(error) if self.interrupt.finish_requested() => panic!("{error}"),
            Err(error) => {
                skip("the distribution's packages", &error.to_string());
                return None;
            }
            Ok(plan) => plan,
        };
        let kernel = fetcher.fetch(&plan, &mut |step| seen.push(step));
        if let Err(error @ KernelError::Tool { .. }) = &kernel {
            skip("the distribution's packages", &error.to_string());
            return None;
        }
        assert!(kernel.is_err() || seen.contains(&FetchProgress::Unpacking));
        Some((plan, kernel))
    }

    fn left(&self) -> Vec<String> {
        let names = |folder: &Path| -> Vec<String> {
            fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect()
        };
        let mut left = names(self.store.dir());
        left.extend(names(&self.store.dir().join("kernels")));
        left.sort();
        left
    }
}

#[test]
fn a_kernel_is_fetched_recorded_and_then_found_offline() {
    let bench = Bench::new();
    let missing = bench.store.find("debian-cloud").unwrap_err();
    assert_eq!(missing.remedy(), Some("tare kernel fetch debian-cloud"));
    let Some((plan, kernel)) = bench.fetch("debian-cloud") else {
        return;
    };
    let kernel = kernel.unwrap();
    assert_eq!(kernel.name, plan.name());
    assert_eq!(kernel.package.as_deref(), Some(&*plan.package));
    assert_eq!(kernel.version.as_deref(), Some(&*plan.version));
    assert_eq!(format!("linux-image-{}", kernel.release), plan.package);
    let record = fs::read_to_string(kernel.vmlinuz.with_file_name("kernel.json")).unwrap();
    assert!(record.contains(&plan.sha256), "{record}");
    assert_eq!(bench.left(), [plan.name(), "kernels".to_owned()]);

    // Whichever way it is asked for, it is this one.
    let series = kernel.series().unwrap();
    for name in [
        "debian-cloud".to_owned(),
        format!("debian-cloud-{series}"),
        kernel.name.clone(),
    ] {
        assert_eq!(bench.store.find(&name).unwrap(), kernel, "{name}");
    }
    assert!(bench.store.list().contains(&kernel));
    assert!(
        kernel
            .option("VIRTIO_BLK")
            .is_some_and(|state| state.to_string() != "n")
    );
    assert!(!kernel.option("PREEMPT_RT").unwrap().is_yes());

    // Its path serves as well, with the modules next to it.
    let path = bench.folder.path().join("boot");
    fs::create_dir(&path).unwrap();
    let by_path = bench.store.find(kernel.vmlinuz.to_str().unwrap()).unwrap();
    assert_eq!(
        (&by_path.release, &by_path.sha256),
        (&kernel.release, &kernel.sha256)
    );
    assert_eq!(by_path.modules, kernel.modules);

    // Put into the store by hand, it is the same kernel without a package.
    let added = bench
        .store
        .add("mine", &kernel.vmlinuz, None, &bench.guard)
        .unwrap();
    assert_eq!(
        (&added.release, &added.sha256),
        (&kernel.release, &kernel.sha256)
    );
    let modules = |kernel: &Kernel| kernel.modules_for(&["virtio_blk"]).unwrap();
    assert_eq!(modules(&added), modules(&kernel));
    let again = bench
        .store
        .add("mine", &kernel.vmlinuz, None, &bench.guard)
        .unwrap_err();
    assert!(matches!(again, KernelError::Exists { .. }), "{again}");
    bench.store.remove("mine").unwrap();

    // A changed file is not booted.
    let mut bytes = fs::read(&kernel.vmlinuz).unwrap();
    bytes[100_000] ^= 1;
    fs::write(&kernel.vmlinuz, &bytes).unwrap();
    let changed = bench.store.find("debian-cloud").unwrap_err();
    assert!(matches!(changed, KernelError::Changed { .. }), "{changed}");
    // Nor is one that was cut off, wherever it lies.
    let short = path.join("vmlinuz");
    fs::write(&short, &bytes[..bytes.len() / 2]).unwrap();
    let cut = bench.store.find(short.to_str().unwrap()).unwrap_err();
    assert!(cut.to_string().contains("cut off"), "{cut}");
    bench.store.remove(&kernel.name).unwrap();
    assert_eq!(bench.left(), ["kernels"]);
}

#[test]
fn an_interrupted_fetch_leaves_nothing() {
    let bench = Bench::new();
    let Ok(mut fetcher) = Fetcher::new(&bench.store, &bench.guard, &bench.interrupt) else {
        return skip("apt", "it is not installed");
    };
    let wanted = Wanted::parse("debian-cloud-6.1").unwrap();
    let plan = match fetcher.plan(wanted, &mut |_| {}) {
        Ok(plan) => plan,
        Err(error) => return skip("the distribution's packages", &error.to_string()),
    };
    bench.interrupt.request_finish();
    let stopped = fetcher.fetch(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(stopped, KernelError::Interrupted), "{stopped}");
    drop(fetcher);
    assert_eq!(bench.left(), ["kernels"]);
}
