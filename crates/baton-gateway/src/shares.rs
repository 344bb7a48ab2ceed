//! A fair part of what is scarce.
//!
//! A peer may hold as much as is free. One peer alone gets half of all, two that are greedy get a third each, and so
//! on: some is always left for the next one.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The holder of a share: the bearer of a valid token, else all callers at an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    Token(Arc<str>),
    Address(IpAddr),
}

impl Peer {
    /// At this address. In IPv6 one machine has a whole network of 64 bits to choose from.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from(network))
            }
            address => address,
        })
    }
}

/// A bounded amount, and how much of it each peer holds.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_peer: HashMap<Peer, usize>,
}

impl Shares {
    /// Shares of this much in all.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// The share of a peer: nothing yet.
    pub(crate) fn share(self: &Arc<Self>, peer: Peer) -> Share {
        Share { of: Arc::clone(self), peer, amount: 0 }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Shares>,
    peer: Peer,
    amount: usize,
}

impl Share {
    /// Changes the amount that it holds, if that is allowed; a smaller one always is.
    #[must_use]
    pub(crate) fn hold(&mut self, amount: usize) -> bool {
        if amount == self.amount {
            return true;
        }
        let mut taken = self.of.taken();
        let before = taken.by_peer.get(&self.peer).copied().unwrap_or_default();
        let after = before.saturating_sub(self.amount).saturating_add(amount);
        if amount > self.amount && after > self.of.most.saturating_sub(taken.all) {
            return false;
        }
        taken.all = taken.all.saturating_sub(self.amount).saturating_add(amount);
        match taken.by_peer.get_mut(&self.peer) {
            Some(_) if after == 0 => drop(taken.by_peer.remove(&self.peer)),
            Some(held) => *held = after,
            None => drop(taken.by_peer.insert(self.peer.clone(), after)),
        }
        self.amount = amount;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // To hold less is always allowed.
        let _given_back = self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::at(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn a_peer_holds_at_most_what_is_free_and_the_next_one_always_gets_some() {
        let shares = Shares::new(60);
        let all = |last| {
            let mut held = Vec::new();
            loop {
                let mut one = shares.share(peer(last));
                if !one.hold(1) {
                    return held;
                }
                held.push(one);
            }
        };
        let (first, second, third) = (all(1), all(2), all(3));
        assert_eq!([first.len(), second.len(), third.len()], [30, 15, 8]);
        drop(first);
        assert_eq!(all(2).len(), 11, "26 of its own, and 26 are free");
        drop((second, third));
        let taken = shares.taken();
        assert_eq!((taken.all, taken.by_peer.len()), (0, 0));
    }

    #[test]
    fn what_is_held_grows_and_shrinks() {
        let shares = Shares::new(100);
        let (mut one, mut other) = (shares.share(peer(1)), shares.share(peer(1)));
        assert!(one.hold(40) && other.hold(10));
        assert!(!one.hold(45) && !other.hold(51), "both are of one peer");
        assert_eq!(shares.taken().all, 50);
        assert!(one.hold(0) && other.hold(50) && other.hold(20));
        assert_eq!(shares.taken().by_peer[&peer(1)], 20);
    }

    #[test]
    fn addresses_of_one_machine_are_one_peer() {
        let at = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    }
}
