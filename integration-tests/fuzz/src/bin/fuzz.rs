//! A fuzzer's program, whose target is the word in `FUZZ_TARGET`. Without the feature `libfuzzer`, it reads its input once.
#![cfg_attr(feature = "libfuzzer", no_main)]
#![allow(clippy::expect_used, reason = "a broken promise is a panic")]

use leaderelection_fuzz::{TARGETS, Target};

fn target() -> Target {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    *TARGETS.iter().find(|target| target.name == name).expect("FUZZ_TARGET is the name of a target")
}

#[cfg(feature = "libfuzzer")]
mod fuzzer {
    use std::sync::LazyLock;

    use leaderelection_fuzz::{Target, at_the_border};

    /// One mutation of so many is of a number or a duration, which libFuzzer hardly ever brings to its end.
    const BORDERS: u32 = 3;

    static TARGET: LazyLock<Target> = LazyLock::new(super::target);

    libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET.check(input));

    libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
        if seed.is_multiple_of(BORDERS) {
            let mut changed = data[..size].to_vec();
            at_the_border(&mut changed, seed.into());
            let size = changed.len().min(max_size);
            data[..size].copy_from_slice(&changed[..size]);
            size
        } else {
            libfuzzer_sys::fuzzer_mutate(data, size, max_size)
        }
    });
}

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::Read::read_to_end(&mut std::io::stdin(), &mut input)?;
    target().check(&input);
    Ok(())
}
