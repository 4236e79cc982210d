//! Enumerations whose values the network writes as labels.

/// Declares an enumeration with the label of each value, as rows show it.
macro_rules! labelled {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $value:ident = $label:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub(crate) enum $name {
            $($(#[$note])* $value),+
        }

        impl $name {
            /// The label in rows.
            pub(crate) fn label(self) -> &'static str {
                match self {
                    $($name::$value => $label),+
                }
            }
        }
    };
}

pub(crate) use labelled;
