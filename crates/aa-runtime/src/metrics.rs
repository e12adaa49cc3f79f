//! Counters of the runtime, and the HTTP endpoint that serves them in the text format of Prometheus.
//!
//! Labels have a fixed set of values, so that no agent can add series.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proctor_net::listen::{self, ListenOptions};
use proctor_wire::assembly::proto::common::v1::Decision;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Upper limits of the latency histogram, in microseconds.
const LIMITS: [u64; 12] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000];

/// Connections to the endpoint at a time: scrapers need one each.
const MAX_CONNECTIONS: usize = 16;

/// Values of the label `decision`.
const DECISIONS: [&str; 4] = ["allow", "deny", "pending", "redact"];

/// Counters since the start of the program.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    decisions: [AtomicU64; DECISIONS.len()],
    /// Queries by upper limit of their latency; the last is for those over all limits.
    latencies: [AtomicU64; LIMITS.len() + 1],
    latency_micros: AtomicU64,
    gateway_failures: AtomicU64,
    events: [AtomicU64; 3],
}

/// Outcome of a reported event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventCount {
    Received,
    Delivered,
    Dropped,
}

impl Metrics {
    /// Counts an answered query. An answer without a decision is one that the socket turns into a denial.
    pub(crate) fn answered(&self, decision: Decision, took: Duration) {
        let at = match decision {
            Decision::Allow => 0,
            Decision::Deny | Decision::Unspecified => 1,
            Decision::Pending => 2,
            Decision::Redact => 3,
        };
        add(self.decisions.get(at), 1);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(self.latencies.get(LIMITS.partition_point(|limit| *limit < micros)), 1);
        add(Some(&self.latency_micros), micros);
    }

    /// Counts a query that the gateway did not answer.
    pub(crate) fn gateway_failed(&self) {
        add(Some(&self.gateway_failures), 1);
    }

    /// Counts events.
    pub(crate) fn events(&self, what: EventCount, count: u64) {
        add(self.events.get(what as usize), count);
    }

    /// The counters in Prometheus' text format; `waiting` is the number of events that are not delivered yet.
    fn text(&self, waiting: usize) -> String {
        let mut out = String::new();
        head(&mut out, "queries_total", "counter", "Answered queries, by decision.");
        for (decision, count) in DECISIONS.iter().zip(&self.decisions) {
            line(&mut out, "queries_total", &format!("{{decision=\"{decision}\"}}"), count.load(Relaxed));
        }
        head(&mut out, "query_seconds", "histogram", "Time from a query to its answer.");
        let mut count = 0;
        for (limit, latency) in LIMITS.iter().zip(&self.latencies) {
            count += latency.load(Relaxed);
            line(&mut out, "query_seconds_bucket", &format!("{{le=\"{}\"}}", seconds(*limit)), count);
        }
        count += self.latencies.last().map_or(0, |latency| latency.load(Relaxed));
        line(&mut out, "query_seconds_bucket", "{le=\"+Inf\"}", count);
        line(&mut out, "query_seconds_sum", "", seconds(self.latency_micros.load(Relaxed)));
        line(&mut out, "query_seconds_count", "", count);
        let failures = self.gateway_failures.load(Relaxed);
        head(&mut out, "gateway_failures_total", "counter", "Queries that the gateway did not answer.");
        line(&mut out, "gateway_failures_total", "", failures);
        for (name, help, events) in [
            ("events_received_total", "Events that libraries reported.", EventCount::Received),
            ("events_delivered_total", "Events that the gateway has.", EventCount::Delivered),
            ("events_dropped_total", "Events that were lost or refused.", EventCount::Dropped),
        ] {
            head(&mut out, name, "counter", help);
            line(&mut out, name, "", self.events.get(events as usize).map_or(0, |it| it.load(Relaxed)));
        }
        head(&mut out, "events_waiting", "gauge", "Events that wait for the gateway.");
        line(&mut out, "events_waiting", "", waiting);
        out
    }

    /// Serves `/metrics` until `stop` is cancelled.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        waiting: impl Fn() -> usize + Clone + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let answer = move |headers: HeaderMap| {
            let (metrics, waiting) = (Arc::clone(&self), waiting.clone());
            async move { respond(&headers, || metrics.text(waiting())) }
        };
        let app = Router::new().route("/metrics", get(answer));
        let options = ListenOptions {
            max_connections: MAX_CONNECTIONS,
            grace: Duration::from_millis(500),
            ..ListenOptions::default()
        };
        listen::serve(listener, app, options, stop).await
    }
}

/// Pages of other origins are refused; scrapers send no origin.
fn respond(headers: &HeaderMap, text: impl FnOnce() -> String) -> Response {
    if headers.contains_key(header::ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text()).into_response()
}

/// Binds the endpoint's address.
pub(crate) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

fn add(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(count, Relaxed);
    }
}

fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP aa_runtime_{name} {help}\n# TYPE aa_runtime_{name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "aa_runtime_{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_printed_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        for (decision, micros) in
            [(Decision::Allow, 100), (Decision::Allow, 101), (Decision::Unspecified, 6_000_000)]
        {
            metrics.answered(decision, Duration::from_micros(micros));
        }
        metrics.events(EventCount::Received, 3);
        let text = metrics.text(2);
        for line in [
            "# TYPE aa_runtime_queries_total counter",
            "aa_runtime_queries_total{decision=\"allow\"} 2",
            "aa_runtime_queries_total{decision=\"deny\"} 1",
            "aa_runtime_query_seconds_bucket{le=\"0.0001\"} 1",
            "aa_runtime_query_seconds_bucket{le=\"0.00025\"} 2",
            "aa_runtime_query_seconds_bucket{le=\"5\"} 2",
            "aa_runtime_query_seconds_bucket{le=\"+Inf\"} 3",
            "aa_runtime_query_seconds_sum 6.000201",
            "aa_runtime_query_seconds_count 3",
            "aa_runtime_events_received_total 3",
            "aa_runtime_events_waiting 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn pages_of_browsers_are_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!(respond(&headers, String::new).status(), StatusCode::OK);
        headers.insert(header::ORIGIN, HeaderValue::from_static("http://localhost:3000"));
        assert_eq!(respond(&headers, String::new).status(), StatusCode::FORBIDDEN);
    }
}
