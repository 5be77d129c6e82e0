//! A TAP network, used by programs that run in its namespaces.

use std::net::{TcpListener, TcpStream};
use std::process::Command;

use tare_networks::{NetworkError, NetworkNamespace, TapNetwork};
use tare_testkit::skip;

/// Returns what a command prints that runs in a namespace.
fn output(within: &NetworkNamespace, words: &str) -> String {
    let (program, words) = words.split_once(' ').unwrap();
    let mut command = Command::new(program);
    within.contain(command.args(words.split(' '))).unwrap();
    let ran = command.output().unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr)
}

/// None, with a message, where it takes what this process may not do.
fn network() -> Option<TapNetwork> {
    match TapNetwork::new() {
        Ok(network) => Some(network),
        Err(error @ (NetworkError::Namespace(_) | NetworkError::NoIp(_))) => {
            skip("network namespaces", &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn clients_reach_the_hypervisors_side_and_nobody_else_does() {
    let Some(network) = network() else {
        return;
    };
    // In place of a guest.
    let (guest, _) = TapNetwork::GUEST;
    let address = format!("ip address add {guest}/24 dev bridge0");
    assert_eq!(output(&network.hypervisor, &address), "");
    let told = output(&network.clients, &format!("ping -q -c 2 -W 5 {guest}"));
    assert!(told.contains(" 0% packet loss"), "{told}");
    let tap = output(&network.hypervisor, "ip -details link show tap0");
    assert!(tap.contains("vnet_hdr on"), "{tap}");
    let connected = network.hypervisor.within(|| {
        let listener = TcpListener::bind((guest, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        network.clients.within(|| TcpStream::connect(to)).unwrap()
    });
    connected.unwrap().unwrap();
    let elsewhere = NetworkNamespace::new().unwrap();
    let outside = elsewhere.within(|| TcpStream::connect((guest, 9))).unwrap();
    assert!(outside.is_err(), "it is reached from elsewhere");
}

#[test]
fn a_program_in_the_guest_s_place_is_reached_at_its_address() {
    let Some(network) = network() else {
        return;
    };
    let member = network.member().unwrap();
    let (guest, _) = TapNetwork::GUEST;
    let told = output(&network.clients, &format!("ping -q -c 2 -W 5 {guest}"));
    assert!(told.contains(" 0% packet loss"), "{told}");
    assert!(output(member, "ip address show eth0").contains("192.0.2.2/24"));
    // There is one of them.
    assert_eq!(network.member().unwrap().path(), member.path());
}
