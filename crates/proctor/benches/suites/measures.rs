//! The measures, in the order of the table. Measured programs and their floors take turns, so that a change of the machine's speed meets both.

use std::time::Duration;

use crate::counts::Counts;
use crate::failure::Failure;
use crate::floor;
use crate::ground::{Ground, Size};
use crate::server::Server;
use crate::table::{Goal, Table, median, megabytes, micros, millis};

/// Takes all measures.
pub fn all(counts: &Counts) -> Result<Table, Failure> {
    let ground = Ground::new()?;
    let mut table = Table::default();
    stdio(&ground, counts, &mut table)?;
    http(&ground, counts, &mut table)?;
    events(&ground, counts, &mut table)?;
    one_test(&ground, counts, &mut table)?;
    scale(&ground, counts, &mut table)?;
    memory(&ground, counts, &mut table)?;
    history(counts, &mut table)?;
    Ok(table)
}

/// Time of one more test: the slope between two suites.
fn slope(ground: &Ground, counts: &Counts, agent: &str, arguments: &[&str]) -> Result<Duration, Failure> {
    let few = ground.time(Size::Small(counts.few), agent, arguments)?;
    let many = ground.time(Size::Small(counts.many), agent, arguments)?;
    Ok(many.saturating_sub(few) / u32::try_from(counts.many - counts.few).unwrap_or(u32::MAX))
}

fn ratio(measured: Duration, floor: Duration) -> f64 {
    measured.as_secs_f64() / floor.as_secs_f64().max(1e-9)
}

fn stdio(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let agent = floor::agent(0)?;
    let (mut floors, mut off, mut on) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..counts.rounds {
        for _ in 0..counts.few {
            floors.push(floor::spawn(0)?);
        }
        off.push(slope(ground, counts, &agent, &["--sandbox", "off"])?);
        on.push(slope(ground, counts, &agent, &[])?);
    }
    let (floor, off, on) = (median(&mut floors), median(&mut off), median(&mut on));
    let bound = floor.mul_f64(1.3) + Duration::from_micros(500);
    table.row(
        "one more test, stdio agent, sandbox off",
        &micros(off),
        &format!("{} (spawn, request, response)", micros(floor)),
        &Goal::Of("at most 1.3 × spawn + 0.5 ms", off <= bound),
    );
    table.row(
        "the same, sandbox on",
        &micros(on),
        &format!("{} (off)", micros(off)),
        &Goal::Of("at most 2 ms more than off", on <= off + Duration::from_millis(2)),
    );
    Ok(())
}

fn http(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let server = Server::start()?;
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.rounds {
        floors.push(server.bare(counts.many)?);
        measured.push(slope(ground, counts, &server.url(), &[])?);
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    table.row(
        "one more test, HTTP agent",
        &format!("{} ({:.1} × floor)", micros(measured), ratio(measured, floor)),
        &format!("{} (a bare client)", micros(floor)),
        &Goal::Of("at most 1.5 × a bare client", ratio(measured, floor) <= 1.5),
    );
    Ok(())
}

fn events(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let (silent, loud) = (floor::agent(0)?, floor::agent(counts.events)?);
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.rounds {
        floors.push(floor::spawn(counts.events)?.saturating_sub(floor::spawn(0)?));
        let arguments = ["--sandbox", "off"];
        let with = ground.time(Size::Small(1), &loud, &arguments)?;
        measured.push(with.saturating_sub(ground.time(Size::Small(1), &silent, &arguments)?));
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    table.row(
        &format!("{} events of an agent", counts.events),
        &format!("{} ({:.1} × floor)", millis(measured), ratio(measured, floor)),
        &format!("{} (written, read and parsed)", millis(floor)),
        &Goal::Of("at most 6 × reading and parsing them", ratio(measured, floor) <= 6.0),
    );
    Ok(())
}

fn one_test(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    // The first gate makes the state directory.
    ground.gate()?;
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.starts {
        floors.push(ground.gate()?);
        measured.push(ground.time(Size::Small(1), "nop", &[])?);
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    table.row(
        "a suite of one test, agent `nop`, whole process",
        &format!("{} ({:.2} × floor)", millis(measured), ratio(measured, floor)),
        &format!("{} (`proctor gate`, one line)", millis(floor)),
        &Goal::Of("at most 1.5 × `proctor gate` on one line", ratio(measured, floor) <= 1.5),
    );
    Ok(())
}

fn scale(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let agent = floor::agent(0)?;
    let [few, many] = counts.scale;
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.rounds.min(5) {
        floors.push(ground.time(Size::Small(few), &agent, &["--parallel", "8"])?);
        measured.push(ground.time(Size::Small(many), &agent, &["--parallel", "8"])?);
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    table.row(
        &format!("{many} tests, 8 at a time, sandbox on"),
        &format!("{} ({:.1} × floor)", millis(measured), ratio(measured, floor)),
        &format!("{} ({few} tests)", millis(floor)),
        &Goal::Of("at most 15 × the time of a tenth", ratio(measured, floor) <= 15.0),
    );
    Ok(())
}

fn memory(ground: &Ground, counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let [few, many] = counts.memory;
    let (mut floor, mut measured) = (0, 0);
    for _ in 0..counts.rounds.min(3) {
        floor = floor.max(ground.peak(Size::Large(few), "nop")?);
        measured = measured.max(ground.peak(Size::Large(many), "nop")?);
    }
    let times = measured as f64 / floor.max(1) as f64;
    table.row(
        &format!("peak memory, {many} tests"),
        &format!("{} ({times:.2} × floor)", megabytes(measured)),
        &format!("{} ({few} tests)", megabytes(floor)),
        &Goal::Of("at most 1.3 × that of 100 tests", times <= 1.3),
    );
    Ok(())
}

fn history(counts: &Counts, table: &mut Table) -> Result<(), Failure> {
    let (fresh, old) = (Ground::new()?, Ground::new()?);
    // The first gate makes the state directory.
    fresh.gate()?;
    old.gate()?;
    old.time(Size::Small(counts.recorded), "nop", &["--parallel", "8"])?;
    let (mut floors, mut measured) = (Vec::new(), Vec::new());
    for _ in 0..counts.starts {
        floors.push(fresh.gate()?);
        measured.push(old.gate()?);
    }
    let (floor, measured) = (median(&mut floors), median(&mut measured));
    table.row(
        &format!("`proctor gate` on one line, after {} runs", counts.recorded),
        &format!("{} ({:.2} × floor)", millis(measured), ratio(measured, floor)),
        &format!("{} (a fresh ledger)", millis(floor)),
        &Goal::Of("at most 1.2 × with a fresh ledger", ratio(measured, floor) <= 1.2),
    );
    Ok(())
}
