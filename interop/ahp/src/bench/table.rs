//! Measurements as Markdown.

use std::fs;
use std::time::Duration;

use super::Run;

/// A line of the table.
pub struct Row<'a> {
    /// The transport.
    pub transport: &'a str,
    /// The server.
    pub server: &'a str,
    /// Number of callers.
    pub callers: usize,
    /// Their measurements.
    pub run: &'a Run,
}

/// The table.
pub fn markdown(rows: &[Row<'_>]) -> String {
    let mut out = String::from(
        "| Transport | Server | Callers | Decisions/s | p50 µs | p99 µs | Server CPU µs/decision |\n|---|---|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        out.push_str(&format!(
            "| {} | {} | {} | {:.0} | {} | {} | {} |\n",
            row.transport,
            row.server,
            row.callers,
            row.run.rate(),
            micros(row.run.percentile(0.50)),
            micros(row.run.percentile(0.99)),
            micros(Some(row.run.cpu_each())),
        ));
    }
    out
}

fn micros(time: Option<Duration>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e6))
}

/// Environment of the measurement: a busy machine makes the numbers worthless.
pub fn environment() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu_info = read("/proc/cpuinfo");
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} processors ({}), load average {load}", model.trim_start_matches([' ', '\t', ':']))
}
