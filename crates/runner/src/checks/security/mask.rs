//! Masking of findings: reports must not repeat what they warn about.

/// The evidence of a finding, masked by its subtype.
pub(super) fn masked(subtype: &str, found: &str) -> String {
    match subtype {
        "email" => {
            let (name, host) = found.split_once('@').unwrap_or((found, ""));
            match (name.chars().next(), name.chars().next_back()) {
                (Some(first), Some(last)) => format!("{first}***{last}@{host}"),
                _ => format!("***@{host}"),
            }
        }
        "credit_card" | "ssn" | "phone" => {
            let digits: Vec<char> = found.chars().filter(char::is_ascii_digit).collect();
            let last: String = digits.iter().skip(digits.len().saturating_sub(4)).collect();
            format!("***{last}")
        }
        "injection" | "jailbreak" | "role_manipulation" | "dangerous_import" | "dangerous_function"
        | "file_operation" | "network_operation" => proctor_core::printable::shown(found, 80),
        "private_key" | "certificate" => proctor_core::printable::shown(found, 40),
        _ => ends(found),
    }
}

/// The first four and last four characters; nothing of a short secret.
fn ends(found: &str) -> String {
    let characters: Vec<char> = found.chars().filter(|character| !character.is_control()).collect();
    if characters.len() < 16 {
        return "***".to_owned();
    }
    let first: String = characters.iter().take(4).collect();
    let last: String = characters.iter().skip(characters.len() - 4).collect();
    format!("{first}***{last}")
}
