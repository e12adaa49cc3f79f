//! Measures our released binary and the official crate with one driver, taking turns: `ahp-bench [--seconds N]`. Prints Markdown.
//!
//! Needs PROCTOR_RELEASE_BINARY, and the other binaries of this crate beside it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot run says so and ends"
)]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use interop_ahp::bench::{CALLERS, Contender, Link, Row, environment, markdown};
use interop_ahp::ours::Place;
use interop_ahp::policies::READING;
use interop_ahp::process::Server;
use interop_ahp::wire::Wire;

const ROUNDS: u32 = 2;
const TRANSPORTS: [&str; 5] = ["stdio", "unix", "http", "websocket", "grpc"];

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let seconds = seconds();
    let slots = ROUNDS * 2 * 2 * 5 + 5;
    let slot = Duration::from_secs_f64(seconds) / slots;
    println!("{}; {:.1} s a measurement\n", environment(), slot.as_secs_f64());
    Box::pin(compare(slot)).await;
    wait_side_by_side(slot).await;
    println!("\nafterwards: {}", environment());
}

fn seconds() -> f64 {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => 100.0,
        ["--seconds", number] => number.parse().expect("--seconds takes a number"),
        other => panic!("usage: ahp-bench [--seconds N], not {other:?}"),
    }
}

/// A binary of this crate.
fn sibling(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name(name);
    assert!(path.is_file(), "`{}` is not built: build all binaries of this crate", path.display());
    path
}

/// Compares both servers on every transport, taking turns.
async fn compare(slot: Duration) {
    let (place, stdio_place) = (Place::new(READING), Place::new(READING));
    let ours = place.serve();
    let start = |arguments: &[&str]| {
        Server::start(Command::new(sibling("official-harness")).arg("--allow-all").args(arguments))
    };
    let socket = place.path().join("official.sock");
    let (unix, http, websocket) =
        (start(&["unix", socket.to_str().unwrap()]), start(&["http"]), start(&["websocket"]));
    let empty = Server::start(&mut Command::new(sibling("empty-grpc")));

    let (program, arguments) = stdio_place.harness();
    let our_stdio = started("proctor", Wire::stdio(&program, &arguments));
    let harness = sibling("official-harness");
    let arguments = ["--allow-all", "stdio"].map(str::to_owned);
    let their_stdio = started("official crate", Wire::stdio(harness.to_str().unwrap(), &arguments));
    let mut pairs = [
        [our_stdio, their_stdio],
        [
            Contender::new("proctor", Wire::unix(ours.text("ahp_socket")).await.into(), ours.pid()),
            Contender::new(
                "official dispatch, our socket loop",
                Wire::unix(socket.to_str().unwrap()).await.into(),
                unix.pid(),
            ),
        ],
        [
            Contender::new("proctor", Link::http(ours.text("http")).await, ours.pid()),
            Contender::new("official crate", Link::http(http.text("address")).await, http.pid()),
        ],
        [
            Contender::new("proctor", websocket_to(ours.text("http")).await, ours.pid()),
            Contender::new("official crate", websocket_to(websocket.text("address")).await, websocket.pid()),
        ],
        [
            Contender::new("proctor", Link::grpc(ours.text("grpc")).await, ours.pid()),
            Contender::new("empty tonic service", Link::grpc(empty.text("address")).await, empty.pid()),
        ],
    ];
    for _ in 0..ROUNDS {
        for pair in &mut pairs {
            for contender in &mut *pair {
                contender.run_alone(slot).await;
            }
            for contender in &mut *pair {
                contender.run_crowded(slot).await;
            }
        }
    }
    let mut rows = Vec::new();
    for (transport, pair) in TRANSPORTS.iter().zip(&pairs) {
        for contender in pair {
            rows.push(Row { transport, server: &contender.name, callers: 1, run: &contender.alone });
        }
        for contender in pair {
            rows.push(Row { transport, server: &contender.name, callers: CALLERS, run: &contender.crowded });
        }
    }
    println!("Proctor decides by a policy and records every decision; the others allow everything.\n");
    print!("{}", markdown(&rows));
    split(slot, &pairs).await;
}

/// Splits the server's processor time: the transport alone is measured with a harness on our server trait that allows at once, the ledger's
/// writer is a thread of its own, and the rest is reading, deciding and making the record.
async fn split(slot: Duration, pairs: &[[Contender; 2]; 5]) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").to_str().unwrap().to_owned();
    let harness = sibling("waiting-harness");
    let start =
        |mode: &[&str]| Server::start(Command::new(&harness).args(["--milliseconds", "0"]).args(mode));
    let (unix, http, grpc) = (start(&["unix", &socket]), start(&["http"]), start(&["grpc"]));
    let arguments = ["--milliseconds", "0", "stdio"].map(str::to_owned);
    let name = "transport alone";
    let mut bare = [
        started(name, Wire::stdio(harness.to_str().unwrap(), &arguments)),
        Contender::new(name, Wire::unix(&socket).await.into(), unix.pid()),
        Contender::new(name, Link::http(http.text("address")).await, http.pid()),
        Contender::new(name, websocket_to(http.text("address")).await, http.pid()),
        Contender::new(name, Link::grpc(grpc.text("address")).await, grpc.pid()),
    ];
    println!("\nServer CPU of a decision, in µs, {CALLERS} callers:\n");
    println!("| Transport | All | Transport | Policy | Ledger's writer |\n|---|--:|--:|--:|--:|");
    for ((transport, contender), [ours, _]) in TRANSPORTS.iter().zip(&mut bare).zip(pairs) {
        contender.run_crowded(slot).await;
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        let (all, writer) = (micros(ours.crowded.cpu_each()), micros(ours.crowded.writer_each()));
        let bare = micros(contender.crowded.cpu_each());
        println!("| {transport} | {all:.1} | {bare:.1} | {:.1} | {writer:.1} |", all - bare - writer);
    }
}

fn started(name: &str, wire: Wire) -> Contender {
    let Wire::Lines(lines) = wire else { unreachable!("standard input and output are lines") };
    let pid = lines.child.as_ref().and_then(tokio::process::Child::id).expect("it runs");
    Contender::new(name, Link::Lines(lines), pid)
}

async fn websocket_to(address: &str) -> Link {
    Wire::websocket(&format!("ws://{address}/ahp")).await.into()
}

/// A harness on our server trait that waits 20 ms for every answer.
async fn wait_side_by_side(slot: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").to_str().unwrap().to_owned();
    let harness = sibling("waiting-harness");
    let waits = ["--milliseconds", "20"];
    let start = |mode: &[&str]| Server::start(Command::new(&harness).args(waits).args(mode));
    let (unix, http, grpc) = (start(&["unix", &socket]), start(&["http"]), start(&["grpc"]));
    let arguments = ["--milliseconds", "20", "stdio"].map(str::to_owned);
    let name = "our server trait, 20 ms";
    let mut contenders = [
        started(name, Wire::stdio(harness.to_str().unwrap(), &arguments)),
        Contender::new(name, Wire::unix(&socket).await.into(), unix.pid()),
        Contender::new(name, Link::http(http.text("address")).await, http.pid()),
        Contender::new(name, websocket_to(http.text("address")).await, http.pid()),
        Contender::new(name, Link::grpc(grpc.text("address")).await, grpc.pid()),
    ];
    for contender in &mut contenders {
        contender.run_crowded(slot).await;
    }
    println!(
        "\nA handler that waits 20 ms ({CALLERS} callers can get 3,200 answers a second at most; the goal is 2,500):\n"
    );
    let rows: Vec<Row<'_>> = TRANSPORTS
        .iter()
        .zip(&contenders)
        .map(|(transport, contender)| Row {
            transport,
            server: name,
            callers: CALLERS,
            run: &contender.crowded,
        })
        .collect();
    print!("{}", markdown(&rows));
}
