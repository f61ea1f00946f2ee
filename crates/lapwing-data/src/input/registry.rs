//! The macro behind the list of inputs.

/// Declares inputs: for each `file: Name(Preprocessing)`.
macro_rules! inputs {
    ($($module:ident: $Name:ident($Preprocessing:ident),)+) => {
        $(mod $module;)+

        /// The inputs there are, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum InputKind {
            $(#[doc = concat!("See [`", stringify!($Preprocessing), "`].")] $Name,)+
        }

        impl InputKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$Name,)+];

            /// What it is called in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Name => <$Preprocessing as Preprocessing>::NAME,)+
                }
            }

            /// Fits its preprocessing on these rows, and on nothing else.
            pub fn fit(self, dataset: &Dataset, rows: &[u32]) -> Result<Input, DataError> {
                Ok(match self {
                    $(Self::$Name => Input::$Name(Preprocessing::fit(dataset, rows)?),)+
                })
            }
        }

        /// Fitted preprocessing. Its name stands beside it in files, so that it can be read without being copied.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Input {
            $(#[doc = concat!("See [`", stringify!($Preprocessing), "`].")] $Name($Preprocessing),)+
        }

        impl Input {
            /// Which input it is.
            pub fn kind(&self) -> InputKind {
                match self {
                    $(Self::$Name(_) => InputKind::$Name,)+
                }
            }

            /// The columns with which a table has to be read for it.
            pub fn schema(&self) -> &Schema {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::schema(fitted),)+
                }
            }

            /// What a sample looks like.
            pub fn spec(&self) -> InputSpec {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::spec(fitted),)+
                }
            }

            /// Which numbers of a sample are codes of levels that have no order.
            pub fn categorical(&self) -> Vec<bool> {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::categorical(fitted),)+
                }
            }

            /// How many numbers of a sample come from each feature, in their order.
            pub fn numbers(&self) -> Vec<usize> {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::numbers(fitted),)+
                }
            }

            /// Values in a table that training never saw, and that say nothing therefore.
            pub fn unseen(&self, table: &Table) -> Vec<Unseen> {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::unseen(fitted, table),)+
                }
            }

            /// Finds in a table what it needs; the rows of the table are samples then.
            pub fn bind<'a>(&'a self, table: &'a Table) -> Result<Box<dyn Samples + 'a>, DataError> {
                match self {
                    $(Self::$Name(fitted) => Preprocessing::bind(fitted, table),)+
                }
            }
        }

        impl Serialize for Input {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$Name(fitted) => fitted.serialize(serializer),)+
                }
            }
        }

        impl Input {
            /// Reads what was written of the input of that name.
            pub fn from_json(kind: &str, text: &str) -> Result<Self, DataError> {
                let invalid = |error: serde_json::Error| DataError::EncoderInvalid(error.to_string());
                $(if kind == <$Preprocessing as Preprocessing>::NAME {
                    return serde_json::from_str(text).map(Self::$Name).map_err(invalid);
                })+
                let names: Vec<&str> = InputKind::ALL.iter().map(|kind| kind.name()).collect();
                Err(DataError::EncoderInvalid(format!(
                    "no input is called {kind:?}; expected one of {}",
                    names.join(", ")
                )))
            }
        }
    };
}
pub(super) use inputs;
