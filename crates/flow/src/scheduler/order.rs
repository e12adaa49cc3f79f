//! Order of jobs: parents before children, otherwise as compiled.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::error::ApplyError;

/// Positions of the jobs, parents first. Jobs that trigger each other in a circle have no such order.
pub(super) fn parents_first(jobs: &[Json]) -> Result<Vec<usize>, ApplyError> {
    let positions: HashMap<&str, usize> = jobs
        .iter()
        .enumerate()
        .filter_map(|(position, job)| Some((job.get("id")?.as_str()?, position)))
        .collect();
    let parent = |position: usize| {
        let id = jobs.get(position)?.get("parent_id")?.as_str()?;
        positions.get(id).copied()
    };
    let mut order = Vec::with_capacity(jobs.len());
    let mut done = vec![false; jobs.len()];
    let mut on_path = vec![false; jobs.len()];
    for start in 0..jobs.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(position) = next {
            if done.get(position).copied().unwrap_or(true) {
                break;
            }
            if on_path.get(position).copied().unwrap_or(true) {
                let circle = path.iter().skip_while(|earlier| **earlier != position);
                return Err(ApplyError::Cycle(
                    circle.take(10).map(|position| name(jobs, *position)).collect(),
                ));
            }
            if let Some(mark) = on_path.get_mut(position) {
                *mark = true;
            }
            path.push(position);
            next = parent(position);
        }
        for position in path.into_iter().rev() {
            if let Some(mark) = done.get_mut(position) {
                *mark = true;
            }
            order.push(position);
        }
    }
    Ok(order)
}

fn name(jobs: &[Json], position: usize) -> String {
    let name = jobs.get(position).and_then(|job| job.get("name")).and_then(Json::as_str);
    crate::text::readable(name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, parent: Option<&str>) -> Json {
        Json::object().with("id", id).with("name", id).with("parent_id", parent)
    }

    #[test]
    fn parents_come_first_and_the_rest_keeps_its_order() {
        let jobs = [
            job("c", Some("b")),
            job("x", None),
            job("b", Some("a")),
            job("a", None),
            job("y", Some("gone")),
        ];
        assert_eq!(parents_first(&jobs).unwrap(), [3, 2, 0, 1, 4]);
    }

    #[test]
    fn a_circle_is_named() {
        let jobs = [job("in", Some("a")), job("a", Some("b")), job("b", Some("a"))];
        let error = parents_first(&jobs).unwrap_err();
        assert_eq!(error.to_string(), "jobs `a`, `b` trigger each other in a circle");
    }

    #[test]
    fn a_long_chain_declared_backwards_is_ordered_in_linear_time() {
        let jobs: Vec<Json> =
            (0..20_000).map(|number| job(&format!("j{number}"), Some(&format!("j{}", number + 1)))).collect();
        let order = parents_first(&jobs).unwrap();
        assert_eq!(order.first(), Some(&19_999));
        assert_eq!(order.len(), 20_000);
    }
}
