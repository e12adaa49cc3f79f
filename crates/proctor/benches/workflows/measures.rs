//! The measures, in the order of the table. Programs and their floors take turns, so that a change of the machine's speed meets both.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::extent::Extent;
use crate::failure::Failure;
use crate::floor;
use crate::manifest::manifest;
use crate::server::Server;
use crate::table::{Goal, Table, median, micros, millis};

/// Numbers of repetitions.
pub struct Counts {
    /// Starts of a program.
    starts: usize,
    /// Requests with a small manifest.
    small: usize,
    /// Requests with a large manifest.
    large: usize,
    /// Tasks of the large manifest.
    tasks: usize,
}

impl Counts {
    /// As often as asked.
    pub fn of(extent: Extent) -> Counts {
        match extent {
            Extent::Full => Counts { starts: 100, small: 3_000, large: 60, tasks: 2_000 },
            Extent::Quick => Counts { starts: 30, small: 500, large: 15, tasks: 2_000 },
            Extent::Check => Counts { starts: 1, small: 3, large: 1, tasks: 50 },
        }
    }
}

/// Takes all measures.
pub fn all(counts: &Counts) -> Result<Table, Failure> {
    let folder = tempfile::tempdir().map_err(|error| format!("scratch folder: {error}"))?;
    let link = folder.path().join("agentcli");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &link)
        .map_err(|error| format!("link to the program: {error}"))?;
    let serve = || {
        let mut command = Command::new(&link);
        command.arg("serve").current_dir(folder.path()).env("HOME", folder.path());
        command
    };
    let mut table = Table::default();
    ready(&serve, counts, &mut table)?;
    let small = manifest(2);
    let large = manifest(counts.tasks);
    let bounds: [Bound; 3] = [
        ("at most a pipe echo + 20 µs", |time, floor| time <= floor + Duration::from_micros(20)),
        ("at most 5 ms", |time, _| time <= Duration::from_millis(5)),
        ("at most 10 ms", |time, _| time <= Duration::from_millis(10)),
    ];
    let what = format!("validate a manifest of {} tasks", counts.tasks);
    let compile = format!("compile a manifest of {} tasks", counts.tasks);
    exchange(
        &serve,
        "validate",
        "validate a manifest of 2 tasks",
        &small,
        counts.small,
        &bounds[0],
        &mut table,
    )?;
    exchange(&serve, "validate", &what, &large, counts.large, &bounds[1], &mut table)?;
    exchange(&serve, "compile", &compile, &large, counts.large, &bounds[2], &mut table)?;
    Ok(table)
}

/// A goal, and whether a time keeps it beside its floor.
type Bound = (&'static str, fn(Duration, Duration) -> bool);

/// Start of the program until its first line, beside an empty program until its end.
fn ready(serve: &impl Fn() -> Command, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.starts {
        let begin = Instant::now();
        let status = floor::empty()?.stdin(Stdio::null()).status();
        status.map_err(|error| format!("the empty program: {error}"))?;
        floors.push(begin.elapsed());
        let begin = Instant::now();
        let mut server = Server::start(&mut serve())?;
        server.line()?;
        measured.push(begin.elapsed());
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    let ratio = measured.as_secs_f64() / floor.as_secs_f64().max(1e-9);
    table.row(
        "`agentcli serve`, start until its ready line, p50",
        &format!("{} ({ratio:.1} × floor)", micros(measured)),
        &format!("{} (an empty program)", micros(floor)),
        &Goal::Of("at most 4 × an empty program", ratio <= 4.0),
    );
    Ok(())
}

/// One request after the other, beside a program that answers the same lines with as many bytes and reads nothing of them.
fn exchange(
    serve: &impl Fn() -> Command,
    method: &str,
    what: &str,
    manifest: &str,
    count: usize,
    (goal, keeps): &Bound,
    table: &mut Table,
) -> Result<(), Failure> {
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agentcli.{method}\",\"params\":{{\"manifest\":{manifest}}}}}\n"
    );
    let mut server = Server::start(&mut serve())?;
    server.line()?;
    server.ask(line.as_bytes())?;
    if !server.answer().starts_with(br#"{"jsonrpc":"2.0","id":1,"result":{"ok":true"#) {
        let answer: String = String::from_utf8_lossy(server.answer()).chars().take(300).collect();
        return Err(format!("{method}: {answer}").into());
    }
    let mut echo = Server::start(&mut floor::echo(server.answer().len())?)?;
    let before = server.processor_time()?;
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..count {
        floors.push(echo.ask(line.as_bytes())?);
        measured.push(server.ask(line.as_bytes())?);
    }
    let busy =
        server.processor_time()?.saturating_sub(before) / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    let shown = |time: Duration| if time < Duration::from_millis(1) { micros(time) } else { millis(time) };
    table.row(
        &format!("{what}, p50"),
        &format!("{} (CPU {})", shown(measured), shown(busy)),
        &format!("{} (a pipe echo of the same size)", shown(floor)),
        &Goal::Of(goal, keeps(measured, floor)),
    );
    Ok(())
}
