//! Complexity limits of schemas, so that none exhausts the stack or the time.
//!
//! Validation calls itself once for each part of the schema that it asks and each level of the value that it enters. References let
//! a short schema ask very many parts, or one part very many times; both are bounded here, before anything is validated.

use serde_json::Value;

use super::graph::{Graph, Inside, MAX_NODES};

/// Maximum of nested calls; measured at under 800 bytes of stack each.
const MAX_CALL_DEPTH: usize = 1500;

/// Weight of a call if parts depend on what others left unevaluated: compiling these takes that much more stack.
const UNEVALUATED_WEIGHT: usize = 4;

/// Limit of evaluations of parts on one value, counted with repetition.
const MAX_VISITS: u64 = 20_000;

/// Limit of paths through a schema, from its top to a part.
const MAX_PATHS: u64 = 4_000_000;

/// Limit of paths that are walked to collect the violations of a value.
const MAX_DETAILS: u64 = 200_000;

/// The complexity of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// The longest chain of parts that ask each other about the same value.
    chain: usize,
    /// Weight of each call.
    weight: usize,
    /// The longest chain of all, if the schema is not recursive.
    longest: Option<usize>,
    /// The ways through the schema, walking no circle.
    ways: u64,
    /// Branching of the recursion: the number of paths into a value that lead back to their start.
    branching: u64,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { chain: 1, weight: 1, longest: Some(1), ways: 1, branching: 1 }
    }
}

/// Size of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Levels, the top included.
    levels: usize,
    /// Values in it, itself included.
    values: usize,
}

impl Size {
    /// Measures a value, which its parser kept from being deep.
    pub(super) fn of(value: &Value) -> Size {
        let join = |size: Size, below: &Value| {
            let below = Size::of(below);
            Size {
                levels: size.levels.max(below.levels + 1),
                values: size.values.saturating_add(below.values),
            }
        };
        let alone = Size { levels: 1, values: 1 };
        match value {
            Value::Array(items) => items.iter().fold(alone, join),
            Value::Object(members) => members.values().fold(alone, join),
            _ => alone,
        }
    }

    /// Whether everything that is wrong with it can be collected.
    pub(super) fn is_small(self) -> bool {
        self.values <= 10_000
    }
}

/// Error of a schema that is too complex, in itself or for a value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooComplex {
    #[error("it has more than {MAX_NODES} parts")]
    Nodes,
    #[error("its references go in a circle without ever entering the value")]
    ReferenceCycle,
    #[error("its references form a chain of more than {most}")]
    ReferenceChain { most: usize },
    #[error("its references lead to the same parts again and again, more than {MAX_VISITS} times")]
    RepeatedVisits,
    #[error("more than {MAX_PATHS} ways lead through its references")]
    Paths,
    #[error("it has {levels} levels, and the schema's references are {chain} deep on each")]
    Levels { levels: usize, chain: usize },
}

impl Shape {
    /// Measures a schema, or says why it cannot be used at all.
    pub(super) fn of(graph: &Graph) -> Result<Shape, TooComplex> {
        if graph.nodes.len() > MAX_NODES {
            return Err(TooComplex::Nodes);
        }
        let same = Cycles::find(graph, |node| node.same.clone());
        if same.any() {
            return Err(TooComplex::ReferenceCycle);
        }
        let mut chain = vec![0_usize; graph.nodes.len()];
        let mut asked = vec![0_u64; graph.nodes.len()];
        for &at in &same.order {
            let Some(node) = graph.nodes.get(at) else { continue };
            let below = node.same.iter().filter_map(|next| chain.get(*next)).max().copied().unwrap_or(0);
            let total = node
                .same
                .iter()
                .filter_map(|next| asked.get(*next))
                .fold(1, |sum: u64, one| sum.saturating_add(*one));
            set(&mut chain, at, below + 1);
            set(&mut asked, at, total);
        }
        let chain = chain.into_iter().max().unwrap_or(1);
        let weight = if graph.tracks_unevaluated { UNEVALUATED_WEIGHT } else { 1 };
        if chain.saturating_mul(weight) > MAX_CALL_DEPTH {
            return Err(TooComplex::ReferenceChain { most: MAX_CALL_DEPTH / weight });
        }
        if asked.into_iter().max().unwrap_or(1) > MAX_VISITS {
            return Err(TooComplex::RepeatedVisits);
        }
        let all = Cycles::find(graph, |node| {
            node.same.iter().copied().chain(node.inside.iter().map(|(next, _)| *next)).collect()
        });
        let ways = ways(graph, &all);
        if ways > MAX_PATHS {
            return Err(TooComplex::Paths);
        }
        Ok(Shape {
            chain,
            weight,
            longest: longest(graph, &all),
            ways,
            branching: branching(graph, &same, &all),
        })
    }

    /// Whether a value of this size can be validated.
    pub(super) fn allows(&self, size: Size) -> Result<(), TooComplex> {
        let calls = self.chain.saturating_mul(size.levels);
        let calls = self.longest.map_or(calls, |longest| longest.min(calls));
        if calls.saturating_mul(self.weight) > MAX_CALL_DEPTH {
            return Err(TooComplex::Levels { levels: size.levels, chain: self.chain });
        }
        Ok(())
    }

    /// Whether the violations of a value of this size can be collected; unlike validation alone, that walks every branch again.
    pub(super) fn allows_details(&self, size: Size) -> bool {
        let levels = u32::try_from(size.levels).unwrap_or(u32::MAX);
        self.ways.saturating_mul(self.branching.saturating_pow(levels)) <= MAX_DETAILS
    }
}

/// Number of paths from the top to parts, counting each cycle as one node.
fn ways(graph: &Graph, all: &Cycles) -> u64 {
    let mut ways = vec![0_u64; all.count];
    for &at in &all.order {
        let (Some(node), Some(&circle)) = (graph.nodes.get(at), all.of.get(at)) else { continue };
        let mut sum: u64 = 1;
        for next in node.same.iter().chain(node.inside.iter().map(|(next, _)| next)) {
            match all.of.get(*next) {
                Some(&other) if other != circle => {
                    sum = sum.saturating_add(ways.get(other).copied().unwrap_or(0));
                }
                _ => {}
            }
        }
        let so_far = ways.get(circle).copied().unwrap_or(0);
        set(&mut ways, circle, so_far.saturating_add(sum));
    }
    all.of.first().and_then(|top| ways.get(*top)).copied().unwrap_or(1)
}

/// The longest chain from the top, if there is no circle.
fn longest(graph: &Graph, all: &Cycles) -> Option<usize> {
    if all.any() {
        return None;
    }
    let mut longest = vec![0_usize; graph.nodes.len()];
    for &at in &all.order {
        let Some(node) = graph.nodes.get(at) else { continue };
        let next = node.same.iter().chain(node.inside.iter().map(|(next, _)| next));
        let below = next.filter_map(|next| longest.get(*next)).max().copied().unwrap_or(0);
        set(&mut longest, at, below + 1);
    }
    longest.first().copied()
}

/// Number of edges by which a part of a cycle leads back into it through one and the same value inside. One is harmless; two
/// double the work on each level.
fn branching(graph: &Graph, same: &Cycles, all: &Cycles) -> u64 {
    let mut back = vec![0_u64; graph.nodes.len()];
    for &at in &same.order {
        let (Some(node), Some(circle)) = (graph.nodes.get(at), all.of.get(at)) else { continue };
        let own: Vec<&Inside> = node
            .inside
            .iter()
            .filter(|(next, _)| all.of.get(*next) == Some(circle))
            .map(|(_, inside)| inside)
            .collect();
        let any = own.iter().filter(|inside| ***inside == Inside::Any).count();
        let named = usize::from(own.iter().any(|inside| **inside != Inside::Any));
        let sum = node
            .same
            .iter()
            .filter_map(|next| back.get(*next))
            .fold((any + named) as u64, |sum, one| sum.saturating_add(*one));
        set(&mut back, at, sum);
    }
    back.into_iter().max().unwrap_or(1).max(1)
}

fn set<T>(list: &mut [T], at: usize, value: T) {
    if let Some(place) = list.get_mut(at) {
        *place = value;
    }
}

/// The strongly connected components of a graph, found without recursion: a chain of references can be long.
struct Cycles {
    /// The circle of each node; most are circles of one.
    of: Vec<usize>,
    count: usize,
    /// All nodes, subschemas before their parents (within a cycle in any order).
    order: Vec<usize>,
    real: bool,
}

impl Cycles {
    /// Whether there is any circle that deserves the name.
    fn any(&self) -> bool {
        self.real
    }

    fn find(graph: &Graph, next: impl Fn(&super::graph::Node) -> Vec<usize>) -> Cycles {
        let edges: Vec<Vec<usize>> = graph.nodes.iter().map(next).collect();
        let count = edges.len();
        let mut search = Search {
            edges: &edges,
            number: vec![None; count],
            low: vec![0; count],
            open: Vec::new(),
            is_open: vec![false; count],
            circles: Cycles { of: vec![0; count], count: 0, order: Vec::with_capacity(count), real: false },
            next_number: 0,
        };
        for start in 0..count {
            search.from(start);
        }
        search.circles
    }
}

/// Tarjan's algorithm with its own stack.
struct Search<'e> {
    edges: &'e [Vec<usize>],
    number: Vec<Option<usize>>,
    low: Vec<usize>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    circles: Cycles,
    next_number: usize,
}

impl Search<'_> {
    fn from(&mut self, start: usize) {
        if self.number.get(start).copied().flatten().is_some() {
            return;
        }
        let mut path = vec![(start, 0_usize)];
        self.enter(start);
        while let Some((at, edge)) = path.last_mut() {
            let here = *at;
            let next = self.edges.get(here).and_then(|edges| edges.get(*edge)).copied();
            *edge += 1;
            match next {
                Some(next) => match self.number.get(next).copied().flatten() {
                    None => {
                        self.enter(next);
                        path.push((next, 0));
                    }
                    Some(number) => {
                        if self.is_open.get(next) == Some(&true) {
                            self.lower(here, number);
                        }
                        self.circles.real |= next == here;
                    }
                },
                None => {
                    path.pop();
                    let low = self.low.get(here).copied().unwrap_or(0);
                    if let Some((above, _)) = path.last() {
                        self.lower(*above, low);
                    }
                    if self.number.get(here).copied().flatten() == Some(low) {
                        self.close(here);
                    }
                }
            }
        }
    }

    fn enter(&mut self, at: usize) {
        set(&mut self.number, at, Some(self.next_number));
        set(&mut self.low, at, self.next_number);
        set(&mut self.is_open, at, true);
        self.open.push(at);
        self.next_number += 1;
    }

    fn lower(&mut self, at: usize, to: usize) {
        if let Some(low) = self.low.get_mut(at) {
            *low = (*low).min(to);
        }
    }

    fn close(&mut self, head: usize) {
        while let Some(at) = self.open.pop() {
            set(&mut self.is_open, at, false);
            set(&mut self.circles.of, at, self.circles.count);
            self.circles.order.push(at);
            if at == head {
                break;
            }
            self.circles.real = true;
        }
        self.circles.count += 1;
    }
}
