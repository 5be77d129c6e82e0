//! Addresses and routes as words of a command line, such as
//! `ip=192.0.2.2/24 gateway=192.0.2.1 ip6=2001:db8::2/64 mtu=1400`.
//!
//! Without `ip=`, the IPv4 address comes from DHCP; without `ip6=`, the IPv6 address comes from
//! SLAAC; each where it is linked.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use embassy_net::{Config, Ipv4Cidr, StaticConfigV4};
#[cfg(feature = "ipv6")]
use embassy_net::{ConfigV6, Ipv6Cidr, StaticConfigV6};

/// The default maximum size of an IP packet, in bytes, as on Ethernet.
const MTU: u32 = 1500;
/// The minimum MTU of IPv6, in bytes (RFC 8200, section 5).
const LEAST_MTU: u32 = 1280;

/// The addresses of one version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses<A> {
    /// The address, with the length of its prefix.
    pub address: Option<(A, u8)>,
    /// The router to other networks.
    pub gateway: Option<A>,
    /// The name server.
    pub dns: Option<A>,
}

impl<A> Addresses<A> {
    const NONE: Self = Self {
        address: None,
        gateway: None,
        dns: None,
    };
}

/// The configuration of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The addresses of IPv4.
    pub v4: Addresses<Ipv4Addr>,
    /// The addresses of IPv6.
    pub v6: Addresses<Ipv6Addr>,
    /// Maximum size of an IP packet, in bytes.
    pub mtu: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            v4: Addresses::NONE,
            v6: Addresses::NONE,
            mtu: MTU as u16,
        }
    }
}

/// The error for a word with an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadWord<'a> {
    /// The word.
    pub word: &'a str,
    /// Description of valid values.
    pub wanted: &'static str,
}

impl fmt::Display for BadWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': want {}", self.word, self.wanted)
    }
}

impl core::error::Error for BadWord<'_> {}

impl Settings {
    /// Reads a word. Returns false if its key is not one of the network.
    ///
    /// # Errors
    ///
    /// Returns [`BadWord`] if the value is invalid.
    pub fn read<'a>(&mut self, word: &'a str) -> Result<bool, BadWord<'a>> {
        let Some((key, value)) = halves(word, '=') else {
            return Ok(false);
        };
        let bad = |wanted| Err(BadWord { word, wanted });
        match key {
            "ip" => {
                let Some((IpAddr::V4(own), prefix @ 0..=32)) = network(value) else {
                    return bad("a host's address with its prefix, such as 192.0.2.2/24");
                };
                self.v4.address = Some((own, prefix as u8));
            }
            "gateway" => {
                let Some(IpAddr::V4(router)) = host(value) else {
                    return bad("a host's IPv4 address");
                };
                self.v4.gateway = Some(router);
            }
            "ip6" => {
                let Some((IpAddr::V6(own), prefix @ 0..=128)) = network(value) else {
                    return bad("a host's address with its prefix, such as 2001:db8::2/64");
                };
                self.v6.address = Some((own, prefix as u8));
            }
            "gateway6" => {
                let Some(IpAddr::V6(router)) = host(value) else {
                    return bad("a host's IPv6 address");
                };
                self.v6.gateway = Some(router);
            }
            "dns" => match host(value) {
                Some(IpAddr::V4(server)) => self.v4.dns = Some(server),
                Some(IpAddr::V6(server)) => self.v6.dns = Some(server),
                None => return bad("a host's address"),
            },
            "mtu" => {
                let Some(mtu @ LEAST_MTU..=MTU) = number(value) else {
                    return bad("1280 to 1500 bytes");
                };
                self.mtu = mtu as u16;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the configuration of the stack.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        if let Some((address, prefix)) = self.v4.address {
            config.ipv4 = embassy_net::ConfigV4::Static(StaticConfigV4 {
                address: Ipv4Cidr::new(address, prefix),
                gateway: self.v4.gateway,
                dns_servers: self.v4.dns.into_iter().collect(),
            });
        } else {
            #[cfg(feature = "dhcp")]
            {
                config.ipv4 = embassy_net::ConfigV4::Dhcp(embassy_net::DhcpConfig::default());
            }
        }
        #[cfg(feature = "ipv6")]
        {
            config.ipv6 = match self.v6.address {
                Some((address, prefix)) => ConfigV6::Static(StaticConfigV6 {
                    address: Ipv6Cidr::new(address, prefix),
                    gateway: self.v6.gateway,
                    dns_servers: self.v6.dns.into_iter().collect(),
                }),
                #[cfg(feature = "slaac")]
                None => ConfigV6::Slaac,
                #[cfg(not(feature = "slaac"))]
                None => ConfigV6::None,
            };
        }
        config
    }
}

/// Splits a text at the first separator.
#[inline(never)]
fn halves(text: &str, separator: char) -> Option<(&str, &str)> {
    text.split_once(separator)
}

/// Reads a number.
#[inline(never)]
pub fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// Reads the address of a host.
#[inline(never)]
fn host(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address| match address {
        IpAddr::V4(address) => is_host_v4(address),
        IpAddr::V6(address) => is_host_v6(address),
    })
}

/// Reads the address of a host with the length of its prefix.
#[inline(never)]
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = halves(text, '/')?;
    Some((host(address)?, number(prefix)?))
}

/// Returns whether an address can be that of one host on a network: not of this network, loopback,
/// groups, reserved or all (RFC 1122, section 3.2.1.3). The stack panics on some of them.
pub(crate) fn is_host_v4(address: &Ipv4Addr) -> bool {
    !matches!(address.octets()[0], 0 | 127 | 224..)
}

fn is_host_v6(address: &Ipv6Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn words_are_read_and_others_are_left_alone() {
        let mut settings = Settings::default();
        for word in "ip=192.0.2.2/24 gateway=192.0.2.1 ip6=2001:db8::2/64 gateway6=fe80::1 dns=2001:db8::3 mtu=1400"
            .split(' ')
        {
            assert_eq!(settings.read(word), Ok(true));
        }
        assert_eq!(settings.v4.address, Some((Ipv4Addr::new(192, 0, 2, 2), 24)));
        assert_eq!(settings.v6.gateway, Some("fe80::1".parse().unwrap()));
        assert_eq!(settings.v6.dns, Some("2001:db8::3".parse().unwrap()));
        assert_eq!((settings.v4.dns, settings.mtu), (None, 1400));
        for word in ["quiet", "virtio_mmio.device=512@0xfeb00e00:12"] {
            assert_eq!(settings.read(word), Ok(false));
        }
    }

    #[test]
    fn a_bad_value_says_what_is_wanted() {
        let mut settings = Settings::default();
        for word in [
            "ip=192.0.2.2",
            "ip=192.0.2.2/33",
            "ip6=::1/129",
            "gateway=x",
            "dns=example",
            "mtu=100",
            "mtu=9000",
            "ip=0.0.0.0/0",
            "ip=224.0.0.1/24",
            "ip=255.255.255.255/24",
            "gateway=0.0.0.0",
            "gateway=239.1.2.3",
            "gateway=255.255.255.255",
            "ip6=::/64",
            "ip6=ff02::1/64",
            "gateway6=::",
            "gateway6=ff02::2",
            "dns=255.255.255.255",
            "dns=ff02::fb",
        ] {
            let bad = settings.read(word).unwrap_err().to_string();
            assert!(bad.starts_with(&std::format!("'{word}': want ")), "{bad}");
        }
        assert_eq!(settings, Settings::default());
    }
}
