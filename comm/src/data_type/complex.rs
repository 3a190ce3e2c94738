//! Complex numbers.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! complex {
    ($($(#[$doc:meta])* $complex:ident of $float:ty;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout,
        )]
        #[repr(C)]
        pub struct $complex {
            /// The real part.
            pub re: $float,
            /// The imaginary part.
            pub im: $float,
        }

        impl $complex {
            /// `re + im i`.
            pub const fn new(re: $float, im: $float) -> Self {
                $complex { re, im }
            }
        }

        impl fmt::Display for $complex {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{:+}i", self.re, self.im)
            }
        }
    )*};
}
complex! {
    /// A complex number of two binary32, in 64 bits.
    Complex64 of f32;
    /// A complex number of two binary64, in 128 bits.
    Complex128 of f64;
}
