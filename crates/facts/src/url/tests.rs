//! Tests of hosts and URLs.

use proptest::prelude::*;

use super::{find_hosts, hosts_of, parse};
use crate::shell;

#[test]
fn hosts_have_one_spelling() {
    let cases = [
        ("http://Example.COM/x", "example.com"),
        ("https://user:pw@example.com:8443/x?y#z", "example.com"),
        ("http://example.com.", "example.com"),
        ("http://good.com@evil.com", "evil.com"),
        ("http://good.com:80@evil.com:81/", "evil.com"),
        ("http://a@b@evil.com", "evil.com"),
        ("http://evil.com#@good.com", "evil.com"),
        ("http://evil.com?@good.com", "evil.com"),
        ("http://evil.com\\@good.com", "evil.com"),
        ("http:\\\\evil.com\\x", "evil.com"),
        ("http:/evil.com", "evil.com"),
        ("http:evil.com", "evil.com"),
        ("http:////evil.com", "evil.com"),
        (" \thttp://ev\til.com\n", "evil.com"),
        ("http://%65vil.com", "evil.com"),
        ("http://evil%2ecom", "evil.com"),
        ("http://ｅｖｉｌ。com", "evil.com"),
        ("http://ev\u{ad}il.com", "evil.com"),
        ("http://[::1]:80/", "::1"),
        ("http://[0:0:0:0:0:0:0:1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("http://[fe80::1%25eth0]/", "fe80::1"),
        ("http://2130706433", "127.0.0.1"),
        ("http://0x7f.1", "127.0.0.1"),
        ("http://0177.0.0.1", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://0x7F000001:80", "127.0.0.1"),
        ("http://127.0.0.1.", "127.0.0.1"),
        ("http://256.1.1.1", "256.1.1.1"),
        ("http://1.2.3.4.5", "1.2.3.4.5"),
        ("ssh://git@host:22/x", "host"),
        ("git+ssh://h/x", "h"),
        ("HTTPS://X", "x"),
    ];
    for (url, host) in cases {
        assert_eq!(parse(url).unwrap_or_else(|| panic!("{url}")).host, host, "{url}");
    }
    for url in ["", "x", "/a/b", "mailto:a@b", "http://", "://x", "1http://x", "file:///x"] {
        assert_eq!(parse(url), None, "{url}");
    }
}

#[test]
fn other_parts() {
    let parts = parse("HTTP://u@h:8080/a\\b?q#f").unwrap();
    assert_eq!((parts.scheme.as_str(), parts.port, parts.path.as_str()), ("http", Some(8080), "/a/b"));
    assert_eq!(parse("http://h:99999/").unwrap().port, None);
    assert_eq!(parse("http://h").unwrap().path, "");
}

#[test]
fn hosts_in_text() {
    let cases: [(&str, &[&str]); 8] = [
        ("see http://a.com/x, or https://b.com.", &["a.com", "b.com"]),
        ("curl 'http://a.com';rm x", &["a.com"]),
        ("git clone git@github.com:a/b.git", &["github.com"]),
        ("http://a.com@evil.com;x", &["evil.com"]),
        ("x=http://a.com&y=ftp://b.com", &["a.com", "b.com"]),
        ("http://redirect.com/?to=http://evil.com/", &["redirect.com", "evil.com"]),
        ("mail me@example.com today", &[]),
        ("http://good.com;@evil.com/", &["good.com", "evil.com"]),
    ];
    for (text, hosts) in cases {
        assert_eq!(find_hosts(text), hosts, "{text}");
    }
}

#[test]
fn hosts_of_programs() {
    let cases: [(&str, &[&str]); 26] = [
        ("curl example.com/x", &["example.com"]),
        ("curl -sL -H 'A: b' -o out Example.com:80", &["example.com"]),
        ("curl -x proxy.com:3128 a.com", &["proxy.com", "a.com"]),
        ("curl --url a.com", &["a.com"]),
        ("curl -d @file a.com b.com", &["a.com", "b.com"]),
        ("curl $HOST/x", &["$host"]),
        ("sudo wget -q a.com", &["a.com"]),
        ("sh -c 'curl a.com | sh'", &["a.com"]),
        ("ssh -p 22 user@a.com ls", &["a.com"]),
        ("ssh -J jump.com a.com", &["jump.com", "a.com"]),
        ("ssh ssh://u@a.com:22", &["a.com"]),
        ("nc -v a.com 80", &["a.com"]),
        ("nc 0x7f.1 80", &["127.0.0.1"]),
        ("scp x user@a.com:/y", &["a.com"]),
        ("scp a.com:x ./b:c", &["a.com"]),
        ("rsync -av x a.com::mod", &["a.com"]),
        ("rsync x [::1]:y", &["::1"]),
        ("git clone git@a.com:x/y.git", &["a.com"]),
        ("git clone a.com:x/y.git", &["a.com"]),
        ("git push https://tok@a.com/x", &["a.com"]),
        ("echo x > /dev/tcp/a.com/80", &["a.com"]),
        ("dig @ns.com a.com", &["ns.com", "a.com"]),
        ("socat - TCP:a.com:80", &["a.com"]),
        ("openssl s_client -connect a.com:443", &["a.com"]),
        ("ls -l a.com", &[]),
        ("echo $(curl \"$(echo a)\" b.com)", &["$(echo a)", "b.com"]),
    ];
    for (command, hosts) in cases {
        assert_eq!(hosts_of(&shell::parse(command)), hosts, "{command}");
    }
}

#[test]
fn many_urls_take_little_time() {
    assert_eq!(find_hosts(&"http://a".repeat(20_000)).len(), 2);
    find_hosts(&"a:".repeat(50_000));
    find_hosts(&"@".repeat(100_000));
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC*|([a-z0-9:/@.\\[\\]%\\\\#?;]|http://){0,40}") {
        parse(&text);
        find_hosts(&text);
        hosts_of(&shell::parse(&format!("curl {text}")));
    }

    #[test]
    fn user_information_does_not_change_the_host(user in "[a-z.:;@]{0,12}", host in "[a-z]{1,8}\\.com") {
        let url = format!("http://{user}@{host}/x");
        prop_assert_eq!(parse(&url).map(|parts| parts.host), Some(host.clone()));
        prop_assert!(find_hosts(&url).contains(&host));
    }

    #[test]
    fn every_number_form_is_the_same_address(bits in any::<u32>()) {
        let dotted = std::net::Ipv4Addr::from(bits).to_string();
        for form in [format!("{bits}"), format!("0x{bits:x}"), format!("0{bits:o}"), dotted.clone()] {
            let host = parse(&format!("http://{form}/")).map(|parts| parts.host);
            prop_assert_eq!(host, Some(dotted.clone()));
        }
    }
}
