//! Bound Unix sockets, as the kernel's socket diagnosis tells them: beside its name, each has the number of its file.

use crate::sys::{Call, Errno, sockets};

/// Socket that is bound to a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bound {
    /// Name that it was bound to; the file may be elsewhere.
    pub(super) name: Vec<u8>,
    /// Lower half of the file's number.
    pub(super) inode: u32,
}

/// Bound on sockets, of which each connection is one.
const MOST: usize = 1 << 20;

const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;

const ALL_STATES: u32 = u32::MAX;
const SHOW_NAME_AND_FILE: u32 = 3;
const NAME: u16 = 0;
const FILE: u16 = 1;

/// Lengths of the header of a message, of that and the fixed part of an answer, and of the header of an attribute.
const HEADER: usize = 16;
const ANSWER: usize = 32;
const ATTRIBUTE: usize = 4;

/// Sockets of the caller's network namespace that are bound to files.
pub(super) fn bound() -> Call<Vec<Bound>> {
    let mut found = Vec::new();
    sockets::diagnose(&request(), |packet| read(packet, &mut found))?;
    Ok(found)
}

fn request() -> Vec<u8> {
    // The family is the first byte, on the little-endian machines that this is built for.
    let words = [libc::AF_UNIX.cast_unsigned(), ALL_STATES, 0, SHOW_NAME_AND_FILE, u32::MAX, u32::MAX];
    let length = u32::try_from(HEADER + size_of_val(&words)).unwrap_or(u32::MAX);
    let mut request = length.to_ne_bytes().to_vec();
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    for word in [1, 0].into_iter().chain(words) {
        request.extend(u32::to_ne_bytes(word));
    }
    request
}

/// Reads the messages of a packet: whether the last one was among them.
fn read(packet: &[u8], found: &mut Vec<Bound>) -> Call<bool> {
    const MALFORMED: Errno = Errno(libc::EBADMSG);
    let mut rest = packet;
    while !rest.is_empty() {
        let length = number(rest, 0).and_then(|length| usize::try_from(length).ok()).ok_or(MALFORMED)?;
        let message = rest.get(..length).filter(|message| message.len() >= HEADER).ok_or(MALFORMED)?;
        match short(message, 4).ok_or(MALFORMED)? {
            DONE => return Ok(true),
            ERROR => {
                let errno = number(message, HEADER).ok_or(MALFORMED)?.cast_signed();
                return Err(Errno(errno.wrapping_neg()));
            }
            _ => found.extend(answer(message.get(ANSWER..).unwrap_or_default())),
        }
        if found.len() > MOST {
            return Err(Errno(libc::E2BIG));
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Socket of an answer's attributes, if it is bound to a file.
fn answer(mut rest: &[u8]) -> Option<Bound> {
    let (mut name, mut inode) = (Vec::new(), None);
    while let (Some(length), Some(kind)) = (short(rest, 0), short(rest, 2)) {
        let Some(value) = rest.get(ATTRIBUTE..usize::from(length)) else { break };
        match kind {
            NAME => name = value.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
            FILE => inode = number(value, 0),
            _ => {}
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    inode.map(|inode| Bound { name, inode })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
