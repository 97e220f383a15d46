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

    use leaderelection_fuzz::Target;

    static TARGET: LazyLock<Target> = LazyLock::new(super::target);

    libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET.check(input));
}

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::io::Result<()> {
    let mut input = Vec::new();
    std::io::Read::read_to_end(&mut std::io::stdin(), &mut input)?;
    target().check(&input);
    Ok(())
}
