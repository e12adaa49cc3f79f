//! Addresses that credentials may be sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proctor_proof::sources::FetchError;
use reqwest::Url;

/// Network that a host belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// This machine, or the link-local network that clouds have their metadata services in. Never reached through a proxy.
    Local,
    /// Any other network.
    Public,
}

/// Names of metadata services, which have no certificates.
const METADATA_HOSTS: &[&str] = &["metadata.google.internal", "metadata"];

/// URL that was checked: `https`, or `http` to a host that the kind of address allows.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    network: Network,
}

impl Address {
    /// An endpoint: `https`, or `http` on loopback.
    pub fn endpoint(text: &str) -> Result<Address, FetchError> {
        let address = Address::parse(text)?;
        if address.url.scheme() == "http" && !is_loopback(&address.url) {
            return Err(FetchError::Address("must begin with https:// (http:// only on loopback)"));
        }
        Ok(address)
    }

    /// A metadata service: an endpoint, or `http` to a link-local address or a metadata host.
    pub fn metadata(text: &str) -> Result<Address, FetchError> {
        let address = Address::parse(text)?;
        if address.url.scheme() == "http" && address.network == Network::Public {
            return Err(FetchError::Address(
                "must begin with https:// (http:// only on loopback or to a metadata service)",
            ));
        }
        Ok(address)
    }

    /// An address that no credentials are sent to: `https`, or `http` to any host.
    pub fn without_credentials(text: &str) -> Result<Address, FetchError> {
        Address::parse(text)
    }

    fn parse(text: &str) -> Result<Address, FetchError> {
        let url = Url::parse(text.trim()).map_err(|_| FetchError::Address("cannot be read"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(FetchError::Address("must begin with https:// and name a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Address(
                "holds a user name or password: give credentials by their own keys",
            ));
        }
        let is_local = is_loopback(&url) || is_link_local(&url) || METADATA_HOSTS.contains(&host(&url));
        let network = if is_local { Network::Local } else { Network::Public };
        Ok(Address { url, network })
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The network of the host.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The same address with these query parameters added.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Address {
        let mut address = self.clone();
        address.url.query_pairs_mut().extend_pairs(pairs);
        address
    }

    /// The address for people: without query and fragment, which may hold secrets.
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        url.to_string()
    }

    /// Scheme, host and port, which hold no secrets.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

/// Path and query may hold secrets.
impl std::fmt::Debug for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Address").field(&self.origin()).finish()
    }
}

fn host(url: &Url) -> &str {
    // The textual form of an IPv6 address in a URL has brackets.
    url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn is_loopback(url: &Url) -> bool {
    let host = host(url);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback(),
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || mapped(address).is_some_and(|it| it.is_loopback())
        }
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

fn is_link_local(url: &Url) -> bool {
    match host(url).parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => {
            address.is_unicast_link_local()
                || mapped(address).is_some_and(|it| it.is_link_local())
                // Metadata service of EC2 on IPv6.
                || address == Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)
        }
        Err(_) => false,
    }
}

fn mapped(address: Ipv6Addr) -> Option<Ipv4Addr> {
    address.to_ipv4_mapped()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_only_to_encrypted_or_local_addresses() {
        for good in
            ["https://id.example/token", "http://127.0.0.1:1/t", "http://localhost/t", "http://[::1]:5/t"]
        {
            assert!(Address::endpoint(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example/token",
            "http://169.254.169.254/x",
            "http://localhost.example/x",
            "http://127.0.0.1.example/x",
            "ftp://127.0.0.1/x",
            "https://user:hunter2@id.example/",
            "file:///etc/passwd",
            "token",
            "",
        ] {
            let error = Address::endpoint(bad).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn metadata_services_are_local_and_may_use_http() {
        for good in [
            "http://169.254.169.254/metadata",
            "http://metadata.google.internal/computeMetadata",
            "http://169.254.169.252:988/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://[::ffff:169.254.169.254]/",
            "http://localhost:42356/msi/token",
        ] {
            assert_eq!(Address::metadata(good).unwrap().network(), Network::Local, "{good}");
        }
        for bad in ["http://10.0.0.1/", "http://example.com/", "http://metadata.google.internal.example/"] {
            assert!(Address::metadata(bad).is_err(), "{bad}");
        }
        assert_eq!(Address::metadata("https://example.com/").unwrap().network(), Network::Public);
    }

    #[test]
    fn queries_are_escaped_and_not_printed() {
        let address =
            Address::endpoint("https://id.example/t?a=1").unwrap().with_query(&[("b", "x&c=hunter2")]);
        assert_eq!(address.url().as_str(), "https://id.example/t?a=1&b=x%26c%3Dhunter2");
        assert_eq!(format!("{address:?}"), r#"Address("https://id.example")"#);
    }
}
