//! Names in certificates.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;
use x509_parser::x509::X509Name;

/// Names of the subject: components of its distinguished name, the whole name, and alternative names.
pub(super) fn subject(certificate: &X509Certificate<'_>) -> Vec<String> {
    let mut found = components(certificate.subject());
    found.extend(alternatives(certificate));
    found
}

/// Names of the issuer: components of its distinguished name, the whole name, and the authority's alternative names.
pub(super) fn issuer(certificate: &X509Certificate<'_>, authority: &X509Certificate<'_>) -> Vec<String> {
    let mut found = components(certificate.issuer());
    found.extend(alternatives(authority));
    found
}

fn components(name: &X509Name<'_>) -> Vec<String> {
    let mut found = vec![name.to_string()];
    found.extend(name.iter_attributes().filter_map(|attribute| attribute.as_str().ok()).map(str::to_owned));
    // An empty name is nobody's: a claim must not match it.
    found.retain(|name| !name.is_empty());
    found
}

fn alternatives(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::RFC822Name(text) | GeneralName::DNSName(text) | GeneralName::URI(text) => {
            (!text.is_empty()).then(|| (*text).to_owned())
        }
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}
