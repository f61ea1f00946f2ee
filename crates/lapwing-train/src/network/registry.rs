//! The macro behind the list of networks. Burn's modules are not object-safe, so the list is an enumeration.

/// Most numbers that a network may have: a model file that asks for more is refused before anything is allocated.
pub(super) const MOST_PARAMETERS: usize = 1 << 31;
/// Most outputs.
pub(super) const MOST_OUTPUTS: usize = 1 << 20;

/// Declares networks: for each `file: Network(Configuration)`.
macro_rules! networks {
    ($($module:ident: $Network:ident($Config:ident),)+) => {
        $(mod $module;)+
        $(pub use $module::$Config;)+

        /// The networks there are, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum NetworkKind {
            $(#[doc = concat!("See [`", stringify!($Config), "`].")] $Network,)+
        }

        impl NetworkKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$Network,)+];

            /// What it is called in commands and files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Network => <$Config as Config>::NAME,)+
                }
            }

            /// What it is, in a line.
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$Network => <$Config as Config>::ABOUT,)+
                }
            }

            /// What it takes, in words.
            pub fn takes_in_words(self) -> &'static str {
                match self {
                    $(Self::$Network => <$Config as Config>::TAKES,)+
                }
            }

            /// Whether it takes samples of this form.
            pub fn takes(self, input: &InputSpec) -> bool {
                match self {
                    $(Self::$Network => <$Config as Config>::takes(input),)+
                }
            }

            fn suits(self, shape: &DataShape) -> bool {
                match self {
                    $(Self::$Network => <$Config as Config>::suits(shape),)+
                }
            }

            fn plan(self, shape: &DataShape, wishes: &Wishes) -> Result<Architecture, Refusal> {
                Ok(match self {
                    $(Self::$Network => Architecture::$Network(Config::plan(shape, wishes)?),)+
                })
            }
        }

        fn names() -> Vec<&'static str> {
            NetworkKind::ALL.iter().map(|kind| kind.name()).collect()
        }

        impl fmt::Display for NetworkKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for NetworkKind {
            type Err = UnknownNetwork;
            fn from_str(name: &str) -> Result<Self, UnknownNetwork> {
                let found = Self::ALL.iter().find(|kind| kind.name() == name);
                found.copied().ok_or_else(|| UnknownNetwork { name: name.to_owned() })
            }
        }

        impl Serialize for NetworkKind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for NetworkKind {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(D::Error::custom)
            }
        }

        /// What a network is made of. Written as its settings and `kind`, its name.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Architecture {
            $(#[doc = concat!("See [`", stringify!($Config), "`].")] $Network($Config),)+
        }

        impl Architecture {
            /// Which network it is.
            pub fn kind(&self) -> NetworkKind {
                match self {
                    $(Self::$Network(_) => NetworkKind::$Network,)+
                }
            }

            /// What it takes.
            pub fn input(&self) -> InputSpec {
                match self {
                    $(Self::$Network(config) => config.input(),)+
                }
            }

            /// Classes, or 1 for a value.
            pub fn outputs(&self) -> usize {
                match self {
                    $(Self::$Network(config) => config.outputs(),)+
                }
            }

            /// Whether outputs are probabilities rather than logits.
            pub fn probabilities(&self) -> bool {
                match self {
                    $(Self::$Network(config) => config.probabilities(),)+
                }
            }

            /// The wishes that would lead to it again.
            pub fn wishes(&self) -> Wishes {
                let wishes = match self {
                    $(Self::$Network(config) => config.wishes(),)+
                };
                Wishes { network: Some(self.kind()), ..wishes }
            }

            /// Every array of the network, in its order; nothing is allocated.
            pub(crate) fn arrays(&self) -> Result<Vec<ArraySpec>, ArchitectureError> {
                let network = self.kind().name();
                if !(1..=registry::MOST_OUTPUTS).contains(&self.outputs()) {
                    let expected = format!("1 to {} outputs", registry::MOST_OUTPUTS);
                    return Err(ArchitectureError::Settings { network, expected });
                }
                let arrays = match self {
                    $(Self::$Network(config) => config.check().map(|()| config.arrays()),)+
                };
                let arrays =
                    arrays.map_err(|expected| ArchitectureError::Settings { network, expected })?;
                let size = arrays.iter().map(ArraySpec::size).fold(0, usize::saturating_add);
                if arrays.iter().any(|array| array.size() == 0) {
                    let expected = "layers of at least one number".to_owned();
                    return Err(ArchitectureError::Settings { network, expected });
                }
                if size > registry::MOST_PARAMETERS {
                    return Err(ArchitectureError::TooLarge { network });
                }
                Ok(arrays)
            }

            /// What it does outside training as operators of ONNX.
            pub(crate) fn onnx(
                &self,
                to: &mut Drawing<'_>,
                input: &OnnxInput,
            ) -> Result<String, Inexpressible> {
                match self {
                    $(Self::$Network(config) => config.onnx(to, input),)+
                }
            }

            /// A network with parameters drawn from `seed`; `number` tells networks of one run apart.
            pub(crate) fn init(
                &self,
                seed: u64,
                number: u64,
                device: &Device,
            ) -> Result<Network, ArchitectureError> {
                self.arrays()?;
                let mut draws = Draws::of(seed, Purpose::Parameters, number, 0);
                Ok(match self {
                    $(Self::$Network(config) => Network::$Network(config.init(&mut draws, device)),)+
                })
            }
        }

        impl fmt::Display for Architecture {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&match self {
                    $(Self::$Network(config) => config.summary(),)+
                })
            }
        }

        impl Serialize for Architecture {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                #[derive(Serialize)]
                struct Named<'a, T> {
                    kind: &'static str,
                    #[serde(flatten)]
                    settings: &'a T,
                }
                let kind = self.kind().name();
                match self {
                    $(Self::$Network(settings) => Named { kind, settings }.serialize(serializer),)+
                }
            }
        }

        impl<'de> Deserialize<'de> for Architecture {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let mut settings = serde_json::Map::deserialize(from)?;
                let kind = settings.remove("kind").ok_or_else(|| D::Error::missing_field("kind"))?;
                let settings = serde_json::Value::Object(settings);
                Ok(match NetworkKind::deserialize(kind).map_err(D::Error::custom)? {
                    $(NetworkKind::$Network => {
                        Self::$Network(serde_json::from_value(settings).map_err(D::Error::custom)?)
                    })+
                })
            }
        }

        /// A network with its parameters.
        #[derive(Module, Debug)]
        pub(crate) enum Network {
            $($Network($module::$Network),)+
        }

        impl Forward for Network {
            fn forward(&self, input: &Input, training: Option<&mut Training>) -> Outputs {
                match self {
                    $(Self::$Network(network) => network.forward(input, training),)+
                }
            }

            fn project(&self, features: Tensor<2>) -> Option<Projection> {
                match self {
                    $(Self::$Network(network) => network.project(features),)+
                }
            }
        }
    };
}
pub(super) use networks;
