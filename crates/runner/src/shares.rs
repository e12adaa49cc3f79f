//! Parts that many tests of a suite have alike, kept once.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write as _};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

/// Values by the hash of their debugging text.
pub(crate) struct Shares<T: ?Sized> {
    known: HashMap<u64, Arc<T>>,
}

impl<T: ?Sized> Default for Shares<T> {
    fn default() -> Shares<T> {
        Shares { known: HashMap::new() }
    }
}

impl<T: ?Sized + Debug + PartialEq> Shares<T> {
    /// The value, shared with an equal one that came before.
    pub(crate) fn share(&mut self, value: impl Into<Arc<T>>) -> Arc<T> {
        let value = value.into();
        let mut hash = Hash(DefaultHasher::new());
        // Debugging texts leave out secrets, so only equality decides.
        let key = write!(hash, "{value:?}").map(|()| hash.0.finish()).unwrap_or_default();
        let known = self.known.entry(key).or_insert_with(|| Arc::clone(&value));
        if *known == value { Arc::clone(known) } else { value }
    }
}

/// Hash of a text that is written in parts.
struct Hash(DefaultHasher);

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value whose debugging text says nothing.
    #[derive(PartialEq)]
    struct Hidden(u8);

    impl Debug for Hidden {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("Hidden")
        }
    }

    #[test]
    fn equal_lists_are_one_and_others_stay_apart() {
        let mut shares: Shares<[String]> = Shares::default();
        let first = shares.share(vec!["a".to_owned(), "b".to_owned()]);
        let again = shares.share(vec!["a".to_owned(), "b".to_owned()]);
        let other = shares.share(vec!["a".to_owned()]);
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(*other, ["a"]);
    }

    #[test]
    fn lists_that_only_look_alike_are_not_shared() {
        let mut shares: Shares<[Hidden]> = Shares::default();
        let first = shares.share(vec![Hidden(1)]);
        let second = shares.share(vec![Hidden(2)]);
        assert!(first[0] == Hidden(1) && second[0] == Hidden(2));
    }
}
