//! Which of several claims about the TSC's frequency to believe, and how far.
//!
//! Cycles become nanoseconds by this figure, so an error in it is an error in every duration. The
//! sources are not equals, and above all not independent of each other:
//!
//! - On Linux, CLOCK_MONOTONIC_RAW is mostly the TSC itself, multiplied by the frequency that the
//!   kernel assumes (clock source `tsc`), or that the hypervisor told it (`kvm-clock`, Hyper-V's
//!   and Xen's). Reading it against the TSC gives the assumed figure back, precisely, whether it is
//!   right or wrong. With any other clock source (`hpet`, `acpi_pm`) it is a real measurement.
//! - Where CPUID tells the frequency, the kernel takes it from there instead of measuring. Two
//!   figures that agree to the kHz are then one figure seen twice.
//! - The hypervisor's CPUID leaf and a hypervisor's clock come from the same place.
//! - NTP and PTP compare the kernel's clock with clocks elsewhere: always independent.
//!
//! So a figure counts as confirmed only if a source agrees that got it in another way. That it was
//! read twice in agreement is not enough.

use crate::bounds::HZ;
use crate::model::{Frequency, FrequencySource};

/// The difference up to which two sources agree, in parts per million.
///
/// The crystals from which the sources' clocks come are specified to ±100 ppm at worst, so two that
/// are both in order differ by 200 at most. The errors to be found are larger: a nominal frequency
/// taken for the real one (350 ppm in known tools), a calibration against a slow timer (500 ppm), a
/// crystal taken for another one (4 % between 24 and 25 MHz).
pub const AGREEMENT_PPM: f64 = 200.0;

/// The difference up to which two figures are taken for the same one, seen twice, in parts per
/// million.
///
/// The kernel keeps the frequency in whole kHz, which is up to 1 ppm of the slowest TSC, 1 GHz.
/// Two sources that are really independent come that close by chance now and then; then a
/// confirmation is lost, which is the safe side.
const SAME_FIGURE_PPM: f64 = 1.0;

/// The uncertainty of its reading up to which a figure is used, in parts per million. A CPU that was
/// taken away between two readings makes it as wrong as the time that it was away is long.
const COARSEST_PPM: f64 = 10_000.0;

/// The frequency of a TSC as far as it can be known.
#[derive(Clone, Debug, PartialEq)]
pub struct TscFrequency {
    /// The figure, in Hz.
    pub hz: f64,
    /// Where it comes from.
    pub source: FrequencySource,
    /// How far it may be off, in parts per million: the uncertainty of its reading, and its
    /// distance from the source that confirms it if that is more. None if it is unknown: the
    /// precision with which an unconfirmed figure was read says nothing about its error.
    pub uncertainty_ppm: Option<f64>,
    /// The independent source that agrees within [`AGREEMENT_PPM`], the closest of several.
    pub confirmed_by: Option<FrequencySource>,
    /// How it was found and confirmed.
    pub note: String,
    /// Which sources contradict it, and by how much.
    pub contradiction: Option<String>,
}

/// Chooses the frequency by which cycles become nanoseconds; `None` if there is no usable figure.
///
/// The order is: the kernel's clock, since what it says is what every other clock of that machine
/// is read by, and it is in use for as long as the machine is up; the hypervisor's word before the
/// processor's, since only the hypervisor knows whether it scales the guest's TSC; both before a
/// timer, since a short count against a timer is coarse, and coarser under an emulator. The
/// disciplined clock comes last although it is right on the long run: a daemon that is correcting
/// an offset steers it by tens of thousands of ppm for that time. It confirms or contradicts.
pub fn choose(claims: &[Frequency]) -> Option<TscFrequency> {
    const ORDER: [FrequencySource; 6] = [
        FrequencySource::KernelClock,
        FrequencySource::ParavirtualClock,
        FrequencySource::CpuidHypervisor,
        FrequencySource::CpuidCrystal,
        FrequencySource::HardwareTimer,
        FrequencySource::DisciplinedClock,
    ];
    let is_usable = |claim: &&Frequency| {
        let ppm = usable_ppm(claim);
        HZ.contains(&claim.hz) && ppm.is_none_or(|ppm| ppm <= COARSEST_PPM)
    };
    let usable = || claims.iter().filter(is_usable);
    let chosen = ORDER
        .iter()
        .find_map(|source| usable().find(|claim| claim.source == *source))?;

    let others: Vec<_> = usable()
        .filter(|other| other.source != chosen.source)
        .map(|other| (other, Verdict::of(chosen, other)))
        .collect();
    let confirming = others
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Confirms)
        .map(|(other, _)| (other.source, distance_ppm(chosen, other)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let reading = usable_ppm(chosen);
    let uncertainty_ppm = match confirming {
        Some((_, distance)) => Some(distance.max(reading.unwrap_or(0.0))),
        None if Basis::of(chosen) == Basis::Measured => reading,
        None => None,
    };
    Some(TscFrequency {
        hz: chosen.hz,
        source: chosen.source,
        uncertainty_ppm,
        confirmed_by: confirming.map(|(source, _)| source),
        note: note(chosen, &others, confirming),
        contradiction: contradiction(chosen, &others),
    })
}

/// Where a figure really comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// The kernel assumes it; it may have measured it at boot or taken it from CPUID.
    Kernel,
    /// The hypervisor reports it.
    Hypervisor,
    /// The processor reports it.
    Processor,
    /// A clock elsewhere, by NTP or PTP.
    Network,
    /// A clock on this machine other than the TSC.
    Measured,
}

impl Basis {
    fn of(claim: &Frequency) -> Self {
        match claim.source {
            FrequencySource::KernelClock => match clock_source(claim) {
                // Where nothing is known of the clock source, the usual one is assumed.
                None | Some("tsc" | "tsc-early" | "unknown" | "") => Self::Kernel,
                Some(name) if is_of_hypervisor(name) => Self::Hypervisor,
                Some(_) => Self::Measured,
            },
            FrequencySource::CpuidHypervisor | FrequencySource::ParavirtualClock => {
                Self::Hypervisor
            }
            FrequencySource::CpuidCrystal => Self::Processor,
            FrequencySource::DisciplinedClock => Self::Network,
            FrequencySource::HardwareTimer => Self::Measured,
        }
    }
}

/// Clock sources that are the TSC times a factor from the hypervisor.
fn is_of_hypervisor(clock_source: &str) -> bool {
    clock_source == "kvm-clock" || clock_source == "xen" || clock_source.starts_with("hyperv")
}

/// Returns the clock source that a claim was read by: `tsc` of `clocksource=tsc`.
fn clock_source(claim: &Frequency) -> Option<&str> {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')');
    let mut words = claim.detail.split(is_separator);
    words.find_map(|word| word.strip_prefix("clocksource="))
}

/// Says what another claim means for the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It agrees and was found in another way.
    Confirms,
    /// It agrees, but is the same figure, or too coarse to tell.
    SaysNothing,
    /// It is beyond what both may be off.
    Contradicts,
}

impl Verdict {
    fn of(chosen: &Frequency, other: &Frequency) -> Self {
        let distance = distance_ppm(chosen, other);
        let of_chosen = usable_ppm(chosen).unwrap_or(0.0);
        let of_other = usable_ppm(other).unwrap_or(0.0);
        if distance > AGREEMENT_PPM + of_chosen + of_other {
            return Self::Contradicts;
        }
        let is_close = distance <= AGREEMENT_PPM && of_chosen.max(of_other) <= AGREEMENT_PPM;
        let is_same = distance <= SAME_FIGURE_PPM + of_chosen + of_other;
        if is_close && is_independent(Basis::of(chosen), Basis::of(other), is_same) {
            Self::Confirms
        } else {
            Self::SaysNothing
        }
    }
}

/// Says whether two figures were found in different ways; `is_same` if they are equal as far as
/// they are known.
fn is_independent(a: Basis, b: Basis, is_same: bool) -> bool {
    use Basis::{Hypervisor, Kernel, Measured, Network, Processor};
    match (a, b) {
        // They were measured against the same machine's clocks by different means, or elsewhere.
        (Measured | Network, _) | (_, Measured | Network) => true,
        // Reported or assumed: one may have been taken from the other, and is then equal.
        (Kernel, Hypervisor | Processor) | (Hypervisor | Processor, Kernel) => !is_same,
        // A hypervisor may pass the processor's figure on.
        (Hypervisor, Processor) | (Processor, Hypervisor) => !is_same,
        (Kernel, Kernel) | (Hypervisor, Hypervisor) | (Processor, Processor) => false,
    }
}

fn distance_ppm(from: &Frequency, to: &Frequency) -> f64 {
    (to.hz / from.hz - 1.0).abs() * 1e6
}

/// Returns the uncertainty of the reading, if it is a figure that can be one.
fn usable_ppm(claim: &Frequency) -> Option<f64> {
    let is_usable = |ppm: &f64| ppm.is_finite() && *ppm >= 0.0;
    claim.uncertainty_ppm.filter(is_usable)
}

fn contradiction(chosen: &Frequency, others: &[(&Frequency, Verdict)]) -> Option<String> {
    let sentences: Vec<String> = others
        .iter()
        .filter(|(_, verdict)| *verdict == Verdict::Contradicts)
        .map(|(other, _)| {
            format!(
                "{} gives {:.3} MHz, {:.0} ppm from the {:.3} MHz of {}, more than the \
                 {AGREEMENT_PPM} ppm by which clocks in order may differ: durations in ns may be \
                 off by as much, durations in cycles are not",
                name(other),
                other.hz / 1e6,
                distance_ppm(chosen, other),
                chosen.hz / 1e6,
                name(chosen),
            )
        })
        .collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn note(
    chosen: &Frequency,
    others: &[(&Frequency, Verdict)],
    confirming: Option<(FrequencySource, f64)>,
) -> String {
    let mut source = format!("taken from {}", name(chosen));
    match Basis::of(chosen) {
        Basis::Kernel => source.push_str(", which gives back the figure that the kernel assumes"),
        Basis::Hypervisor if chosen.source == FrequencySource::KernelClock => {
            source.push_str(", which gives back the figure that the hypervisor told");
        }
        _ => {}
    }
    let confirmed = match confirming {
        Some((source, distance)) => {
            let claim = others.iter().find(|(other, _)| other.source == source);
            let by = claim.map_or_else(String::new, |(other, _)| name(other));
            format!("confirmed by {by} within {distance:.1} ppm")
        }
        None => {
            let same = others
                .iter()
                .find(|(_, verdict)| *verdict == Verdict::SaysNothing);
            match same {
                Some((other, _)) => format!(
                    "not confirmed independently: {} does not contradict, but is the same \
                     figure seen again, or too coarse to tell; with NTP or PTP running it can be \
                     confirmed",
                    name(other)
                ),
                None => "not confirmed independently; with NTP or PTP running it can be".to_owned(),
            }
        }
    };
    format!("{source}; {confirmed}")
}

fn name(claim: &Frequency) -> String {
    match claim.source {
        FrequencySource::CpuidCrystal => "CPUID leaf 0x15".to_owned(),
        FrequencySource::CpuidHypervisor => "the hypervisor (CPUID leaf 0x40000010)".to_owned(),
        FrequencySource::DisciplinedClock => "the clock steered by NTP or PTP".to_owned(),
        FrequencySource::HardwareTimer => "a hardware timer".to_owned(),
        FrequencySource::ParavirtualClock => "the hypervisor's paravirtual clock".to_owned(),
        FrequencySource::KernelClock => match clock_source(claim) {
            Some(source) => format!("the kernel's clock (clock source {source})"),
            None => "the kernel's clock".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use FrequencySource::{
        CpuidCrystal, CpuidHypervisor, DisciplinedClock, HardwareTimer, KernelClock,
    };

    use super::*;

    const HZ: f64 = 2.5e9;

    /// Makes a claim with this error.
    fn claim(source: FrequencySource, off_ppm: f64, uncertainty_ppm: Option<f64>) -> Frequency {
        Frequency {
            source,
            hz: HZ * (1.0 + off_ppm * 1e-6),
            uncertainty_ppm,
            detail: String::new(),
        }
    }

    fn kernel(clock_source: &str) -> Frequency {
        Frequency {
            detail: format!("read at both ends; clocksource={clock_source}"),
            ..claim(KernelClock, 0.0, Some(0.1))
        }
    }

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-3)
    }

    #[test]
    fn without_a_usable_figure_there_is_none() {
        assert_eq!(choose(&[]), None);
        let useless = [f64::NAN, f64::INFINITY, 0.0, -1.0, 5e-324].map(|hz| Frequency {
            hz,
            ..kernel("tsc")
        });
        assert_eq!(choose(&useless), None);
    }

    #[test]
    fn a_figure_that_was_read_too_coarsely_is_none() {
        let coarse = claim(HardwareTimer, -450_000.0, Some(722_000.0));
        assert_eq!(choose(std::slice::from_ref(&coarse)), None);
        let fine = claim(DisciplinedClock, 0.0, Some(50.0));
        assert_eq!(choose(&[coarse, fine]).unwrap().source, DisciplinedClock);
    }

    #[test]
    fn a_clock_that_is_the_tsc_does_not_confirm_itself() {
        for clock_source in [
            "tsc",
            "kvm-clock",
            "hyperv_clocksource_tsc_page",
            "xen",
            "unknown",
        ] {
            let found = choose(&[kernel(clock_source)]).unwrap();
            assert_eq!((found.hz, found.source), (HZ, KernelClock));
            assert_eq!((found.confirmed_by, found.uncertainty_ppm), (None, None));
            assert!(
                found.note.contains("gives back the figure"),
                "{}",
                found.note
            );
            assert!(
                found.note.contains("not confirmed independently"),
                "{}",
                found.note
            );
        }
    }

    #[test]
    fn a_clock_that_is_not_the_tsc_is_a_measurement() {
        let found = choose(&[kernel("hpet")]).unwrap();
        assert_eq!(
            (found.confirmed_by, found.uncertainty_ppm),
            (None, Some(0.1))
        );
        let found = choose(&[kernel("acpi_pm"), claim(CpuidCrystal, 0.0, None)]).unwrap();
        assert_eq!(
            (found.source, found.confirmed_by),
            (KernelClock, Some(CpuidCrystal))
        );
    }

    #[test]
    fn a_disciplined_clock_confirms_and_gives_the_uncertainty() {
        let found = choose(&[kernel("tsc"), claim(DisciplinedClock, -37.0, None)]).unwrap();
        assert_eq!((found.hz, found.source), (HZ, KernelClock));
        assert_eq!(found.confirmed_by, Some(DisciplinedClock));
        assert!(close(found.uncertainty_ppm, 37.0), "{found:?}");
        assert!(found.note.contains("within 37.0 ppm"), "{}", found.note);
        // The same figure from an independent source is the best that can be.
        let found = choose(&[kernel("tsc"), claim(DisciplinedClock, 0.0, None)]).unwrap();
        assert_eq!(
            (found.confirmed_by, found.uncertainty_ppm),
            (Some(DisciplinedClock), Some(0.1))
        );
    }

    #[test]
    fn a_figure_that_the_kernel_took_over_confirms_nothing() {
        for source in [CpuidCrystal, CpuidHypervisor] {
            let found = choose(&[kernel("tsc"), claim(source, 0.3, None)]).unwrap();
            assert_eq!(found.confirmed_by, None);
            assert!(
                found.note.contains("same figure seen again"),
                "{}",
                found.note
            );
            // The kernel has measured by itself, or it would be equal.
            let found = choose(&[kernel("tsc"), claim(source, 20.0, None)]).unwrap();
            assert_eq!(found.confirmed_by, Some(source));
        }
        // A hypervisor's clock and its word are never two sources.
        let claims = [kernel("kvm-clock"), claim(CpuidHypervisor, 20.0, None)];
        assert_eq!(choose(&claims).unwrap().confirmed_by, None);
    }

    #[test]
    fn the_closest_of_several_confirms() {
        let claims = [
            claim(DisciplinedClock, 150.0, None),
            claim(HardwareTimer, 80.0, Some(100.0)),
            claim(CpuidCrystal, -90.0, None),
            kernel("tsc"),
        ];
        let found = choose(&claims).unwrap();
        assert_eq!(
            (found.source, found.confirmed_by),
            (KernelClock, Some(HardwareTimer))
        );
        assert_eq!(found.contradiction, None);
    }

    #[test]
    fn a_contradiction_is_a_warning() {
        // A nominal figure taken for the real one.
        let found = choose(&[kernel("tsc"), claim(CpuidCrystal, 350.0, None)]).unwrap();
        assert_eq!((found.confirmed_by, found.uncertainty_ppm), (None, None));
        let contradicts = |found: &TscFrequency| {
            let text = found.contradiction.clone().unwrap();
            assert!(text.starts_with("CPUID leaf 0x15 gives 2500.875 MHz, 350 ppm from"));
        };
        contradicts(&found);
        // Also next to one that agrees.
        let claims = [
            kernel("tsc"),
            claim(CpuidCrystal, 350.0, None),
            claim(DisciplinedClock, 5.0, None),
        ];
        let found = choose(&claims).unwrap();
        assert_eq!(found.confirmed_by, Some(DisciplinedClock));
        contradicts(&found);
    }

    #[test]
    fn the_bound_is_where_it_is_said_to_be() {
        let at = |off| choose(&[kernel("tsc"), claim(DisciplinedClock, off, None)]).unwrap();
        assert_eq!(at(199.9).confirmed_by, Some(DisciplinedClock));
        assert_eq!(at(-199.9).confirmed_by, Some(DisciplinedClock));
        assert_eq!(at(200.3).confirmed_by, None);
        assert!(at(200.3).contradiction.is_some());
    }

    #[test]
    fn a_coarse_reading_neither_confirms_nor_contradicts() {
        for off in [0.0, 700.0] {
            let found = choose(&[kernel("tsc"), claim(HardwareTimer, off, Some(900.0))]).unwrap();
            assert_eq!(found.confirmed_by, None);
            assert!(found.note.contains("too coarse"), "{}", found.note);
            assert_eq!(found.contradiction, None);
        }
        let found = choose(&[kernel("tsc"), claim(HardwareTimer, 2_000.0, Some(900.0))]).unwrap();
        assert!(found.contradiction.is_some());
    }

    #[test]
    fn without_a_kernel_the_hypervisor_is_asked_first() {
        let mut claims = vec![
            claim(HardwareTimer, 60.0, Some(30.0)),
            claim(CpuidCrystal, 10.0, None),
            claim(CpuidHypervisor, 0.0, Some(0.5)),
        ];
        let found = choose(&claims).unwrap();
        assert_eq!(
            (found.source, found.confirmed_by),
            (CpuidHypervisor, Some(CpuidCrystal))
        );
        claims.pop();
        let found = choose(&claims).unwrap();
        assert_eq!(
            (found.source, found.confirmed_by),
            (CpuidCrystal, Some(HardwareTimer))
        );
        claims.pop();
        let found = choose(&claims).unwrap();
        assert_eq!((found.source, found.confirmed_by), (HardwareTimer, None));
        assert_eq!(found.uncertainty_ppm, Some(30.0));
    }
}
