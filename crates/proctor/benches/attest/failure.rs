//! The error of a measurement: the program, the file or the answer that stopped it.

/// A measurement that could not be completed, in words for the person who runs the benchmark.
#[derive(Debug)]
pub struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Failure {
        Failure(text.to_owned())
    }
}
