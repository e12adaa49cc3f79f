//! Trees of parts of a source: the items of one list, one at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use saphyr_parser::{Event, Parser, StrInput};

use crate::build::Builder;
use crate::error::{ErrorKind, Errors};
use crate::node::Node;
use crate::{Limits, Position, source};

/// Progress of a construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There may be further events.
    More,
    /// The document has ended.
    Over,
    /// An error after which parsing cannot continue; it is recorded.
    Failed,
}

/// Construction of a tree, event by event.
pub(crate) struct Construction<'s> {
    parser: Parser<'s, StrInput<'s>>,
    builder: Builder<'s>,
    documents: usize,
}

impl<'s> Construction<'s> {
    /// Starts at the beginning of a source. Items of the list under the key `streamed` of the root stay out of the tree.
    pub(crate) fn new(source: &'s str, limits: &Limits, streamed: Option<&'s str>) -> Construction<'s> {
        Construction {
            parser: Parser::new_from_str(source),
            builder: Builder::new(*limits, streamed),
            documents: 0,
        }
    }

    /// Reads to the end: the root, the number of items that are not in it, and the errors.
    pub(crate) fn run(mut self) -> (Option<Rc<Node>>, usize, Errors) {
        // The parser is not ours. Should it have a panic that we do not know of, a bad source must still be a refused source.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            loop {
                match self.step() {
                    Step::More => drop(self.builder.take_item()),
                    end => break end,
                }
            }
        }));
        let (root, items, mut errors) = self.builder.finish();
        let root = match ended {
            Ok(Step::Over) => {
                if root.is_none() {
                    errors.add(Position::START, ErrorKind::Empty);
                }
                root
            }
            Ok(_) => None,
            Err(_) => {
                errors.add(Position::START, ErrorKind::ParserPanicked);
                None
            }
        };
        (root, items, errors)
    }

    fn step(&mut self) -> Step {
        let (event, span) = match self.parser.next_event() {
            Some(Ok(event)) => event,
            Some(Err(error)) => {
                let kind = ErrorKind::Syntax(error.info().to_owned());
                self.builder.refuse(source::position(*error.marker()), kind);
                return Step::Failed;
            }
            None => return Step::Over,
        };
        let at = source::position(span.start);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.builder.refuse(at, ErrorKind::SecondDocument);
                    return Step::Over;
                }
                Step::More
            }
            Event::StreamEnd => Step::Over,
            event => match self.builder.take(event, at) {
                Ok(()) => Step::More,
                Err(_) => Step::Failed,
            },
        }
    }

    fn next_item(&mut self) -> Option<Rc<Node>> {
        loop {
            match self.step() {
                Step::More => {
                    if let Some(item) = self.builder.take_item() {
                        return Some(item);
                    }
                }
                Step::Over | Step::Failed => return None,
            }
        }
    }
}

/// Items of a list that [`parse_without_items`](crate::parse_without_items) left out, in their order. Each is parsed when it is asked for, so
/// that memory is needed for one of them.
pub struct Items<'s> {
    construction: Option<Construction<'s>>,
}

impl<'s> Items<'s> {
    pub(crate) fn new(source: Option<&'s str>, limits: &Limits, key: &'s str) -> Items<'s> {
        Items { construction: source.map(|source| Construction::new(source, limits, Some(key))) }
    }
}

impl Iterator for Items<'_> {
    type Item = Rc<Node>;

    fn next(&mut self) -> Option<Rc<Node>> {
        let construction = self.construction.as_mut()?;
        // A panic of the parser was reported by the first reading of the same source.
        let item = catch_unwind(AssertUnwindSafe(|| construction.next_item())).unwrap_or_default();
        if item.is_none() {
            self.construction = None;
        }
        item
    }
}
