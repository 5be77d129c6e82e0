//! Measures a primitive in its own process.
//!
//! The process is forked from the measuring program, so it runs the same code, and starts with the
//! same little memory for each primitive. Its results are in shared memory. It leads a process
//! group, which is killed after it; orphaned descendants become children of the measuring program.

use std::ptr;

use crate::primitives::bench::{Results, Why, why};
use crate::primitives::{self, Area, Context, Ending, Primitive};

use super::kernel::{self, Shared};

/// The report of the process, in shared memory.
#[derive(Debug)]
#[repr(C)]
struct Report {
    results: Results,
    ending: u32,
    length: u32,
    why: [u8; WHY],
}

/// The maximum length of a reason.
const WHY: usize = 240;

const NOTHING: u32 = 0;
const MEASURED: u32 = 1;
const ABSENT: u32 = 2;

/// A runner that forks a process for each primitive, one after the other.
#[derive(Debug)]
pub struct ForkRunner {
    report: Shared<Report>,
    budget: u64,
    region: u64,
}

impl ForkRunner {
    /// Allocates memory for results. A series lasts `budget` ticks; `region` is the duration of an
    /// empty region between fenced stamps.
    ///
    /// # Errors
    ///
    /// Returns why that failed.
    pub fn new(budget: u64, region: u64) -> Result<Self, Why> {
        // SAFETY: plain numbers.
        let report = unsafe { Shared::<Report>::new()? };
        // SAFETY: no pointers are passed. On failure, orphans become children of init.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        Ok(Self {
            report,
            budget,
            region,
        })
    }

    /// Returns the results of the last primitive.
    pub fn results(&mut self) -> &mut Results {
        // SAFETY: the process that wrote them has ended.
        unsafe { &mut (*self.report.get()).results }
    }

    /// Measures a primitive, and kills all processes that it leaves behind.
    pub fn measure(&mut self, primitive: &Primitive, around: &Context<'_>) -> Ending {
        let report = self.report.get();
        // SAFETY: no other process has it yet.
        unsafe {
            (*report).ending = NOTHING;
            (*report).results.clear();
        }
        let block = kernel::block_sigchld();
        // SAFETY: this program has one thread, so that its copy is complete.
        let pid = match unsafe { libc::fork() } {
            -1 => return Ending::Failed(kernel::error("no process can be started (fork)")),
            0 => {
                kernel::die_with_parent();
                // SAFETY: no pointers are passed.
                unsafe { libc::setpgid(0, 0) };
                drop(block);
                // SAFETY: the parent waits, and looks at it afterwards.
                run(
                    unsafe { &mut *report },
                    primitive,
                    around,
                    self.budget,
                    self.region,
                );
                kernel::exit(0)
            }
            pid => pid,
        };
        // SAFETY: as in the child: both do this, so that the group exists in either order.
        unsafe { libc::setpgid(pid, pid) };
        let status = kernel::wait_until(pid, around.plan.limit_ns);
        // Results of a primitive that took too long are valid if it stayed on its CPU.
        let is_kept = match status {
            None => kernel::is_pinned(pid, around.plan.cpu()),
            status => status == Some(0),
        };
        kernel::end_group(pid);
        drop(block);
        if status != Some(0) {
            kernel::sweep([around.plan.dir].into_iter().chain(around.plan.remote));
        }
        if !is_kept {
            self.results().clear();
        }
        // SAFETY: the process has ended.
        let report = unsafe { &*report };
        let text = report.why.get(..report.length as usize).unwrap_or_default();
        let text = why(core::str::from_utf8(text).unwrap_or_default());
        match (status, report.ending) {
            (Some(0), MEASURED) => Ending::Measured,
            (Some(0), ABSENT) => Ending::Absent(text),
            (None, _) => Ending::Failed(why(format_args!(
                "it had not ended after {} s (--primitive-limit), and was ended{}",
                around.plan.limit_ns / 1_000_000_000,
                match report.results.all() {
                    [] => "",
                    _ => "; what it had measured is kept",
                }
            ))),
            (Some(status), _) if libc::WIFSIGNALED(status) => Ending::Failed(why(format_args!(
                "it was killed by signal {}",
                libc::WTERMSIG(status)
            ))),
            (Some(status), _) => Ending::Failed(why(format_args!(
                "it ended with exit status {}",
                libc::WEXITSTATUS(status)
            ))),
        }
    }
}

fn run(report: &mut Report, primitive: &Primitive, around: &Context<'_>, budget: u64, region: u64) {
    // Locked memory makes forks and mappings slower than in an ordinary program.
    if !matches!(primitive.area, Area::Process | Area::Fault) {
        // SAFETY: no pointers are passed. Where locking is not permitted, pages are still touched.
        unsafe { libc::mlockall(libc::MCL_CURRENT) };
    }
    let measured = primitives::measure(primitive, around, &mut report.results, (budget, region));
    let stayed = kernel::stayed(around.plan.cpu());
    if stayed.is_err() {
        report.results.clear();
    }
    let measured = measured.and(stayed);
    report.ending = match measured {
        Ok(()) => MEASURED,
        Err(why) => {
            let length = why.len().min(WHY);
            report.why[..length].copy_from_slice(&why.as_bytes()[..length]);
            report.length = length as u32;
            ABSENT
        }
    };
}

impl Drop for ForkRunner {
    fn drop(&mut self) {
        // Orphans become children of init again. SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0) };
    }
}

/// Maps memory.
///
/// # Errors
///
/// Returns why that failed.
pub fn room<'a>(bytes: usize, pages: primitives::Pages) -> Result<&'a mut [usize], Why> {
    let start = kernel::map_pages(bytes, pages)?;
    // SAFETY: a new mapping of `bytes` bytes, readable, writable and zeroed, that lasts as long as
    // the process.
    Ok(unsafe { &mut *ptr::slice_from_raw_parts_mut(start, bytes / size_of::<usize>()) })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crate::primitives::bench::{Of, PLAIN};
    use crate::primitives::{Need, Plan};

    use super::*;

    /// Forking requires a program with one thread that waits for its children: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn measured(primitive: &Primitive) -> (Ending, Vec<f64>) {
        let _alone = ALONE.lock().unwrap_or_else(|held| held.into_inner());
        let words = ["workload=primitives", "area=syscall", "limit=1s"];
        let plan = Plan::parse(words).unwrap();
        let around = Context {
            plan: &plan,
            hz: 1e9,
            room: &room,
        };
        let mut runner = ForkRunner::new(1_000_000, 0).unwrap();
        let ending = runner.measure(primitive, &around);
        let found = runner.results().all();
        let costs = found.iter().filter(|found| found.of() == Of::Cost);
        (ending, costs.map(|found| found.value).collect())
    }

    const NOTHING_YET: Primitive = Primitive {
        needs: &[Need::Kernel],
        ..Primitive::NEW
    };

    #[test]
    fn results_come_from_a_process_of_their_own() {
        let (ending, costs) = measured(&Primitive {
            measure: |bench, _| {
                bench.value(Of::Cost, PLAIN, f64::from(std::process::id()));
                Ok(())
            },
            ..NOTHING_YET
        });
        assert_eq!(ending, Ending::Measured);
        assert!(costs.len() == 1 && costs[0] != f64::from(std::process::id()));
    }

    #[test]
    fn one_that_dies_or_hangs_is_told_and_the_next_one_is_measured() {
        let killed = Primitive {
            // SAFETY: ends this process alone.
            measure: |_, _| unsafe {
                libc::raise(libc::SIGKILL);
                Ok(())
            },
            ..NOTHING_YET
        };
        let Ending::Failed(why) = measured(&killed).0 else {
            panic!("it was killed");
        };
        assert_eq!(why, "it was killed by signal 9");
        let exits = Primitive {
            measure: |_, _| kernel::exit(7),
            ..NOTHING_YET
        };
        let Ending::Failed(why) = measured(&exits).0 else {
            panic!("it ended by itself");
        };
        assert_eq!(why, "it ended with exit status 7");
        let hangs = Primitive {
            measure: |_, _| loop {
                std::hint::spin_loop();
            },
            ..NOTHING_YET
        };
        let Ending::Failed(why) = measured(&hangs).0 else {
            panic!("it hung");
        };
        let report = "it had not ended after 1 s (--primitive-limit), and was ended";
        assert_eq!(why, report);
        let late = Primitive {
            measure: |bench, _| {
                bench.value(Of::Cost, PLAIN, 7.0);
                loop {
                    std::hint::spin_loop();
                }
            },
            ..NOTHING_YET
        };
        let (ending, costs) = measured(&late);
        let kept = why_of(&format!("{report}; what it had measured is kept"));
        assert_eq!((ending, costs), (Ending::Failed(kept), vec![7.0]));
        let cannot = Primitive {
            measure: |_, _| Err(why_of("no such device")),
            ..NOTHING_YET
        };
        assert_eq!(
            measured(&cannot).0,
            Ending::Absent(why_of("no such device"))
        );
    }

    fn why_of(text: &str) -> Why {
        crate::primitives::bench::why(text)
    }

    #[test]
    fn small_pages_are_not_taken_for_huge_ones() {
        let (ending, costs) = measured(&Primitive {
            measure: |bench, around| {
                // SAFETY: no pointers are passed. It affects this process alone.
                unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
                for bytes in [1 << 20, 2 << 20, 64 << 20] {
                    let huge = (around.room)(bytes, primitives::Pages::Huge);
                    let small = (around.room)(bytes, primitives::Pages::Small);
                    let both = f64::from(huge.is_ok()) * 10.0 + f64::from(small.is_ok());
                    bench.value(Of::Cost, PLAIN, both);
                }
                Ok(())
            },
            ..NOTHING_YET
        });
        assert_eq!((ending, costs), (Ending::Measured, vec![1.0; 3]));
    }

    #[test]
    fn cpus_that_this_program_was_not_given_are_left_alone() {
        let (ending, costs) = measured(&Primitive {
            measure: |bench, around| {
                // As taskset does. SAFETY: no pointers are passed.
                kernel::pin(unsafe { libc::sched_getcpu() }.cast_unsigned());
                kernel::record_initial_cpus();
                let cpus = kernel::allowed_cpus(around.plan).len();
                bench.value(Of::Cost, PLAIN, cpus as f64);
                Ok(())
            },
            ..NOTHING_YET
        });
        assert_eq!((ending, costs), (Ending::Measured, vec![1.0]));
    }

    #[test]
    fn what_one_leaves_behind_is_ended_with_it() {
        let (ending, pids) = measured(&Primitive {
            measure: |bench, _| {
                // SAFETY: this program has one thread.
                let left = unsafe { libc::fork() };
                if left == 0 {
                    loop {
                        // SAFETY: no pointers are passed.
                        unsafe { libc::pause() };
                    }
                }
                bench.value(Of::Cost, PLAIN, f64::from(left));
                Ok(())
            },
            ..NOTHING_YET
        });
        assert_eq!(ending, Ending::Measured);
        // SAFETY: signal 0 only checks that the process exists.
        let there = unsafe { libc::kill(pids[0] as libc::pid_t, 0) };
        assert_eq!(there, -1, "process {} is still there", pids[0]);
    }
}
