//! The promises of a model, each with its name.

/// Declares the promises of a model that one step breaks.
macro_rules! promises {
    ($($(#[$about:meta])* $promise:ident = $name:literal,)*) => {
        /// A promise that a step has broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Violation {
            $($(#[$about])* $promise,)*
        }

        impl Violation {
            /// The name of the promise.
            pub(crate) fn promise(self) -> &'static str {
                match self {
                    $(Self::$promise => $name,)*
                }
            }
        }
    };
}

pub(crate) use promises;
