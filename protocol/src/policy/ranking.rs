//! Weighted rendezvous hashing: the order in which members may take a lock (rule S9).
//!
//! Every member computes the order from the identities of the live sessions. The order only saves requests, and no promise depends on it.
//!
//! All processes of a fleet have to compute the same numbers, so these functions never change. `H` is SipHash-2-4 with
//! a key of zeros. The ticket `i` of a member has the score SipHash-2-4 with the key (`H(identity)`, `i`) over the
//! eight bytes, most significant first, of `H(name of the lock)`. A member of weight `w` has the tickets 0 to `w` − 1,
//! and the largest of their scores counts. So a member of twice the weight is first for twice as many locks.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Returns the hash of a lock's name or of a member's identity.
pub fn hash(text: &str) -> u64 {
    digest(0, 0, text.as_bytes())
}

/// Returns the score of a member for a lock. The member with the largest score takes the lock first.
pub fn score(member: u64, weight: u32, lock: u64) -> u64 {
    (0..weight.max(1)).map(|ticket| digest(member, u64::from(ticket), &lock.to_be_bytes())).max().unwrap_or_default()
}

fn digest(key0: u64, key1: u64, bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(key0, key1);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns for how many of `locks` locks each member is the first.
    fn shares(members: &[(&str, u32)], locks: u32) -> Vec<u32> {
        let mut shares = vec![0; members.len()];
        for lock in 0..locks {
            let lock = hash(&format!("shard-{lock}"));
            let first = (0..members.len()).max_by_key(|index| score(hash(members[*index].0), members[*index].1, lock));
            shares[first.unwrap_or_default()] += 1;
        }
        shares
    }

    #[test]
    fn the_numbers_are_the_same_in_every_version() {
        // The test vector of SipHash-2-4 for no input, with a key of zeros.
        assert_eq!(hash(""), 0x1e92_4b9d_7377_00d7);
        // The values of another implementation.
        assert_eq!(hash("shard-17"), 0xd766_4b4c_8517_4c7e);
        assert_eq!(score(hash("node-1"), 3, hash("shard-17")), 0xdef7_ad76_1f1f_65ac);
    }

    #[test]
    fn shares_follow_the_weights() {
        let shares = shares(&[("a", 1), ("b", 1), ("c", 2)], 4_000);
        assert!((850..1150).contains(&shares[0]) && (850..1150).contains(&shares[1]), "{shares:?}");
        assert!((1_850..2_150).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn a_member_that_leaves_moves_only_its_own_locks() {
        let first = |members: &[&str], lock: u64| {
            members.iter().max_by_key(|member| score(hash(member), 1, lock)).map(|member| (*member).to_owned())
        };
        for lock in (0..1_000).map(|lock| hash(&format!("shard-{lock}"))) {
            let before = first(&["a", "b", "c"], lock);
            if before.as_deref() != Some("c") {
                assert_eq!(before, first(&["a", "b"], lock));
            }
        }
    }
}
