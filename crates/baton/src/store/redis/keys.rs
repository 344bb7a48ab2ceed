//! The few keys this process itself names; all others are built inside the scripts, from the root.
//!
//! Every key of a fleet begins with its root `{fleet/0}`. The braces are the hash tag of Redis Cluster: all keys lie
//! in one slot. The 0 is the lane, the only one for now. Names hold no brace and no glob character, so that the root
//! of one fleet is never the beginning of another's keys, and is its own pattern.

use crate::message::{Name, SessionId};

/// The beginning of all keys of a fleet, and the key of its meta record.
#[derive(Debug, Clone)]
pub(in crate::store) struct Root(String);

impl Root {
    pub(in crate::store) fn new(fleet: &Name) -> Self {
        Self(format!("{{{fleet}/0}}"))
    }

    /// The meta record, which is what scripts are given.
    pub(in crate::store) fn as_str(&self) -> &str {
        &self.0
    }

    /// The wake-up list of a session.
    pub(in crate::store) fn wakes(&self, session: SessionId) -> String {
        format!("{}:w:{session}", self.0)
    }

    /// Where a session stages the bytes of a parcel for the script that follows in the same transaction. What no script
    /// takes away expires by itself.
    pub(in crate::store) fn staged(&self, session: SessionId, place: usize) -> String {
        format!("{}:t:{session}:{place}", self.0)
    }

    /// The clock of tests.
    pub(in crate::store) fn test_clock(&self) -> String {
        format!("{}:test-clock", self.0)
    }

    /// What all keys of the fleet match.
    pub(in crate::store) fn pattern(&self) -> String {
        format!("{}*", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_carry_the_hash_tag() {
        let root = Root::new(&Name::new("a.b").unwrap());
        assert_eq!(root.as_str(), "{a.b/0}");
        assert!(root.wakes(SessionId::from_u128(1)).starts_with("{a.b/0}:w:"));
        assert_eq!(root.pattern(), "{a.b/0}*");
    }
}
