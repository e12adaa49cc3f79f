//! Protobuf decoding with a memory limit: a small message must not expand to a large value.
//!
//! An empty element of a list takes two bytes on the wire and hundreds in memory, so a limit on bytes alone is none. What a message
//! would take is therefore counted before it is built.

use prost::Name;

use super::varint;

/// Approximate memory limit of the elements of a message's lists and maps, in bytes. Texts are not counted: they are as long as their
/// bytes.
pub const MAX_UNPACKED: usize = 64 * 1024 * 1024;

/// Depth limit of nested messages: what the message library allows.
const MAX_DEPTH: usize = 100;

/// Error of decoding a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UnpackError {
    /// The bytes are not a message of any kind.
    #[error("bytes are not a protobuf message")]
    Malformed,
    /// Messages in messages, too many of them.
    #[error("messages are nested over {MAX_DEPTH} deep")]
    TooDeep,
    /// Too many elements.
    #[error(
        "lists and maps would take over {MAX_UNPACKED} bytes of memory: send fewer elements in a message"
    )]
    TooLarge,
    /// The bytes are not this message.
    #[error(transparent)]
    Invalid(#[from] prost::DecodeError),
}

/// Decodes a message, if it stays within [`MAX_UNPACKED`].
pub fn unpack<M: Name + Default>(bytes: &[u8]) -> Result<M, UnpackError> {
    if let Some(shape) = shape(M::PACKAGE, M::NAME) {
        measure(shape, bytes, MAX_DEPTH, &mut MAX_UNPACKED.clone())?;
    }
    Ok(M::decode(bytes)?)
}

/// The memory cost model of a message type.
struct Shape {
    /// Name with the package.
    name: &'static str,
    parts: &'static [Part],
}

/// A field that holds messages or can be many.
struct Part {
    number: u64,
    /// The bytes of one more element; 0 if the field is not repeated.
    cost: usize,
    /// Index of the nested message's shape, if the field holds a message.
    message: Option<usize>,
}

include!(concat!(env!("OUT_DIR"), "/shapes.rs"));

fn shape(package: &str, name: &str) -> Option<&'static Shape> {
    let wanted = || package.bytes().chain([b'.']).chain(name.bytes());
    let at = SHAPES.binary_search_by(|shape| shape.name.bytes().cmp(wanted())).ok()?;
    SHAPES.get(at)
}

/// Subtracts the cost of the elements in `bytes` from `left`.
fn measure(shape: &Shape, mut bytes: &[u8], depth: usize, left: &mut usize) -> Result<(), UnpackError> {
    let depth = depth.checked_sub(1).ok_or(UnpackError::TooDeep)?;
    while !bytes.is_empty() {
        let key = number(&mut bytes)?;
        let part = shape.parts.iter().find(|part| part.number == key >> 3);
        *left = left.checked_sub(part.map_or(0, |part| part.cost)).ok_or(UnpackError::TooLarge)?;
        match key & 7 {
            0 => {
                number(&mut bytes)?;
            }
            1 => {
                skip(&mut bytes, 8)?;
            }
            2 => {
                let length = number(&mut bytes)?;
                let inside = skip(&mut bytes, length)?;
                if let Some(message) = part.and_then(|part| SHAPES.get(part.message?)) {
                    measure(message, inside, depth, left)?;
                }
            }
            5 => {
                skip(&mut bytes, 4)?;
            }
            // Groups: proto3 has none.
            _ => return Err(UnpackError::Malformed),
        }
    }
    Ok(())
}

fn number(bytes: &mut &[u8]) -> Result<u64, UnpackError> {
    let Ok(Some((number, taken))) = varint::read(bytes) else { return Err(UnpackError::Malformed) };
    *bytes = bytes.get(taken..).unwrap_or_default();
    Ok(number)
}

fn skip<'bytes>(bytes: &mut &'bytes [u8], length: u64) -> Result<&'bytes [u8], UnpackError> {
    let skipped = usize::try_from(length).ok().and_then(|length| bytes.split_off(..length));
    skipped.ok_or(UnpackError::Malformed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::super::proto::agent::v1::{RegisterRequest, RegisterResponse};
    use super::super::proto::audit::v1::{AuditEvent, CallStackNode, ReportEventsRequest};
    use super::super::proto::common::v1::AgentId;
    use super::super::proto::policy::v1::{BatchCheckRequest, CheckActionRequest};
    use super::*;

    /// The bytes of `count` empty elements of a list.
    fn empty_elements(key: &[u8], count: usize) -> Vec<u8> {
        [key, &[0]].concat().repeat(count)
    }

    fn cost(package: &str, name: &str, number: u64) -> usize {
        let shape = shape(package, name).unwrap();
        shape.parts.iter().find(|part| part.number == number).unwrap().cost
    }

    #[test]
    fn the_table_knows_every_message_and_about_its_size() {
        assert!(SHAPES.is_sorted_by_key(|shape| shape.name) && SHAPES.len() > 60, "{}", SHAPES.len());
        assert!(shape("assembly.agent.v1", "RegisterResponse").is_some_and(|shape| shape.parts.is_empty()));
        assert!(shape("assembly.agent.v1", "Nothing").is_none());
        let near = |cost: usize, size: usize| cost >= 2 * size && cost <= 4 * size;
        assert!(near(cost("assembly.audit.v1", "ReportEventsRequest", 1), size_of::<AuditEvent>()));
        assert!(near(cost("assembly.policy.v1", "BatchCheckRequest", 1), size_of::<CheckActionRequest>()));
        assert!(near(cost("assembly.audit.v1", "CallStackNode", 5), size_of::<CallStackNode>()));
        assert!(near(cost("assembly.agent.v1", "RegisterRequest", 6), size_of::<String>()));
    }

    #[test]
    fn small_bytes_that_would_become_much_memory_are_refused() {
        let count = 2 * 1024 * 1024;
        assert_eq!(
            unpack::<ReportEventsRequest>(&empty_elements(&[0x0a], count)),
            Err(UnpackError::TooLarge)
        );
        assert_eq!(unpack::<BatchCheckRequest>(&empty_elements(&[0x0a], count)), Err(UnpackError::TooLarge));
        assert_eq!(unpack::<AuditEvent>(&empty_elements(&[0xe2, 0x01], count)), Err(UnpackError::TooLarge));
        assert_eq!(unpack::<AuditEvent>(&empty_elements(&[0xa2, 0x01], count)), Err(UnpackError::TooLarge));
        assert_eq!(unpack::<RegisterRequest>(&empty_elements(&[0x32], count)), Err(UnpackError::TooLarge));
        // Inside another message it counts as well, and a list spread over repetitions of the field counts together.
        let nodes = empty_elements(&[0x2a], 50_000);
        let mut node = vec![0xe2, 0x01];
        prost::encode_length_delimiter(nodes.len(), &mut node).unwrap();
        node.extend(nodes);
        assert!(unpack::<AuditEvent>(&node).is_ok());
        assert_eq!(unpack::<AuditEvent>(&node.repeat(20)), Err(UnpackError::TooLarge));
    }

    #[test]
    fn what_people_send_passes() {
        let event = AuditEvent {
            event_id: "0192f0c1-0000-7000-8000-000000000000".into(),
            agent_id: Some(AgentId { agent_id: "did:key:z6Mk".into(), ..Default::default() }),
            labels: (0..8).map(|number| (format!("label-{number}"), "value".to_owned())).collect(),
            ..Default::default()
        };
        let full = 4 * 1024 * 1024 / event.encoded_len();
        let batch = ReportEventsRequest { events: vec![event; full] };
        assert_eq!(unpack::<ReportEventsRequest>(&batch.encode_to_vec()).as_ref(), Ok(&batch));
    }

    #[test]
    fn groups_and_cut_messages_are_malformed_and_deep_ones_too_deep() {
        for bytes in [&[0x0b, 0x0c][..], &[0x0a], &[0x0a, 2, 1], &[0x09, 1], &[0x0d, 1], &[0x80], &[0x0e]] {
            assert_eq!(unpack::<RegisterResponse>(bytes), Err(UnpackError::Malformed), "{bytes:?}");
        }
        let mut node = CallStackNode::default();
        for _ in 0..98 {
            node = CallStackNode { children: vec![node], ..Default::default() };
        }
        let event = |node| AuditEvent { call_stack: vec![node], ..Default::default() }.encode_to_vec();
        assert!(unpack::<AuditEvent>(&event(node.clone())).is_ok());
        let node = CallStackNode { children: vec![node], ..Default::default() };
        assert_eq!(unpack::<AuditEvent>(&event(node)), Err(UnpackError::TooDeep));
    }

    proptest! {
        /// Counting refuses nothing that the message library takes, groups and size apart.
        #[test]
        fn small_messages_are_taken_exactly_when_the_library_takes_them(
            bytes in prop::collection::vec(prop_oneof![0..48_u8, any::<u8>()], 0..60),
        ) {
            let ours = unpack::<CheckActionRequest>(&bytes);
            let theirs = CheckActionRequest::decode(bytes.as_slice());
            match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(UnpackError::Malformed), Ok(_)) => prop_assert!(bytes.iter().any(|byte| matches!(byte & 7, 3 | 4))),
                (Err(_), Err(_)) => {}
                (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
            }
        }
    }
}
