//! The description of a machine.

use super::fixtures::{Tree, container, guest, laptop, rt_group, telecom};
use crate::fact::Fact;
use crate::machine::{Machine, PreemptionModel};
use crate::source::Source;

fn collect(tree: &Tree) -> Machine {
    Machine::collect(&tree.source())
}

#[test]
fn a_description_in_full() {
    insta::assert_json_snapshot!(collect(&laptop()));
}

#[test]
fn nothing_that_identifies_anybody_is_recorded() {
    for tree in [laptop(), telecom(), guest(), container(), rt_group()] {
        let text = serde_json::to_string(&collect(&tree))
            .unwrap()
            .to_lowercase();
        for secret in ["secret", "uuid", "user-1000", "ssh.service"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn descriptions_survive_json() {
    for tree in [
        laptop(),
        telecom(),
        guest(),
        container(),
        rt_group(),
        Tree::new(),
    ] {
        let machine = collect(&tree);
        let text = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
    }
}

#[test]
fn every_field_is_documented_in_the_schema() {
    fn check(value: &serde_json::Value, path: &str, bare: &mut Vec<String>) {
        let Some(object) = value.as_object() else {
            return;
        };
        if let Some(properties) = object.get("properties").and_then(|p| p.as_object()) {
            for (name, property) in properties {
                if property.get("description").is_none() && name != "unknown" {
                    bare.push(format!("{path}.{name}"));
                }
            }
        }
        for (name, inner) in object {
            check(inner, &format!("{path}.{name}"), bare);
        }
    }
    let schema = serde_json::to_value(schemars::schema_for!(Machine)).unwrap();
    let mut bare = Vec::new();
    check(&schema, "", &mut bare);
    assert!(bare.is_empty(), "{bare:?}");
    assert!(schema.to_string().len() > 5_000);
}

#[test]
fn a_tuned_host_is_described_as_tuned() {
    let machine = collect(&telecom());
    assert_eq!(machine.isolation.isolated.to_string(), "2-7");
    assert_eq!(machine.isolation.rcu_nocbs.to_string(), "2-7");
    assert_eq!(machine.power.turbo, Fact::Known(false));
    assert_eq!(
        machine.kernel.preemption.model,
        Fact::Known(PreemptionModel::Rt)
    );
    assert_eq!(machine.kernel.release_numbers(), Some((5, 14)));
    assert_eq!(machine.process.affinity.to_string(), "0-1");
    assert_eq!(machine.process.cpuset.to_string(), "0-7");
    let parameters = machine.kernel.parameters.into_known().unwrap();
    assert!(
        parameters.contains(&"skew_tick=1".to_owned()),
        "{parameters:?}"
    );
}

#[test]
fn a_guest_booted_from_a_containers_image_is_not_a_container() {
    let guest = collect(&guest()).virtualisation;
    assert_eq!(guest.guest_of(), Some("KVM"));
    assert!(!guest.container.inside && !guest.container.marks.is_empty());
    let container = collect(&container()).virtualisation;
    assert!(container.container.inside);
    assert_eq!(container.hypervisor, Fact::Known(None));
}

#[test]
fn idle_states_and_frequencies_of_equal_cpus_are_put_together() {
    let power = collect(&laptop()).power;
    assert_eq!(power.frequency.known().unwrap().len(), 1);
    assert_eq!(power.idle_states.known().unwrap().len(), 3);
    let one_differs = laptop().file(
        "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
        "performance\n",
    );
    let power = collect(&one_differs).power;
    let cpus: Vec<String> = power
        .frequency
        .known()
        .unwrap()
        .iter()
        .map(|group| group.cpus.to_string())
        .collect();
    assert_eq!(cpus, ["0-2,4-7", "3"]);
    assert_eq!(power.deepest_idle_state(0).unwrap().name, "C10_ACPI");
}

#[test]
fn this_machine_can_be_described() {
    let machine = Machine::collect(&Source::system());
    assert!(
        machine.topology.online.known().is_some(),
        "{:?}",
        machine.topology.online
    );
    assert!(machine.kernel.release.known().is_some());
    let text = serde_json::to_string(&machine).unwrap();
    assert!(serde_json::from_str::<Machine>(&text).is_ok());
}

#[test]
fn cpus_are_of_one_package_unless_the_kernel_says_otherwise() {
    let topology = |tree: &Tree| collect(tree).topology;
    let two = topology(&Tree::new().cpus(4, 1).packages(&[0, 0, 3, 3]));
    assert!(two.in_one_package(0, 1));
    assert!(!two.in_one_package(1, 2));
    let unknown = topology(&Tree::new().cpus(2, 1));
    assert!(unknown.in_one_package(0, 1));
}
