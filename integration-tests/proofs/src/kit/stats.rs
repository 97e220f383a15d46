//! The numbers of simulated runs, which show whether the runs explored enough.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::time::Duration;

/// Declares the numbers of a simulation, each with its words.
macro_rules! stats {
    ($($name:ident: $number:ty = $words:literal,)*) => {
        /// The numbers of a run, or of many runs together.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Stats {
            $(#[doc = concat!("The number of ", $words, ".")] pub $name: $number,)*
        }

        impl std::ops::AddAssign for Stats {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl std::fmt::Display for Stats {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let numbers = [$(format!("{} {}", self.$name, $words)),*];
                f.write_str(&numbers.join(", "))
            }
        }
    };
}

pub(crate) use stats;

/// The longest of some durations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Longest(pub Duration);

impl AddAssign for Longest {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.max(other.0);
    }
}

impl Display for Longest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.0.as_secs_f64())
    }
}
