//! Primitive types of SSH's binary formats (RFC 4251, section 5).

/// Bytes that end before a field does, or a field of a form that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes do not have the form that SSH prescribes")]
pub(super) struct Malformed;

/// Reader of a sequence of fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// Bytes with their length before them.
    pub(super) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()?;
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }

    /// Text with its length before it.
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string()?).map_err(|_| Malformed)
    }

    /// Magnitude of a number that is not negative, in its shortest form.
    pub(super) fn number(&mut self) -> Result<&'a [u8], Malformed> {
        match self.string()? {
            [first, ..] if first & 0x80 != 0 => Err(Malformed),
            [0, second, ..] if second & 0x80 == 0 => Err(Malformed),
            [0] => Err(Malformed),
            [0, rest @ ..] | rest => Ok(rest),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Fails if bytes are left.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// Appends bytes with their length before them.
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    // Fields of this crate are bounded far below 4 GiB; a longer one becomes unreadable instead of ambiguous.
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(bytes);
}

/// Appends a number that is not negative, in its shortest form.
pub(super) fn put_number(out: &mut Vec<u8>, magnitude: &[u8]) {
    let zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
    let magnitude = magnitude.get(zeros..).unwrap_or_default();
    if magnitude.first().is_some_and(|byte| byte & 0x80 != 0) {
        put_string(out, &[&[0], magnitude].concat());
    } else {
        put_string(out, magnitude);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for (magnitude, encoded) in
            [(&[][..], &[0, 0, 0, 0][..]), (&[1], &[0, 0, 0, 1, 1]), (&[0x80], &[0, 0, 0, 2, 0, 0x80])]
        {
            let mut out = Vec::new();
            put_number(&mut out, &[&[0, 0], magnitude].concat());
            assert_eq!(out, encoded);
            assert_eq!(Reader::new(&out).number(), Ok(magnitude));
        }
        for wrong in [&[0, 0, 0, 1, 0x80][..], &[0, 0, 0, 2, 0, 1], &[0, 0, 0, 1, 0], &[0, 0, 0, 2, 1]] {
            assert_eq!(Reader::new(wrong).number(), Err(Malformed), "{wrong:?}");
        }
    }
}
