//! `--method` and the parameters of methods: flags made from the list of methods, so that the two cannot disagree.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lapwing_run::{Parameters, method_parameters};
use lapwing_train::{METHODS, MethodKind, Parameter, method_named};

/// Parses the name of a method; help lists all of them.
pub(crate) fn method_parser() -> impl TypedValueParser<Value = &'static dyn MethodKind> {
    let value = |kind: &&'static dyn MethodKind| PossibleValue::new(kind.name()).help(kind.about());
    PossibleValuesParser::new(METHODS.iter().map(value)).try_map(|name| method_named(&name))
}

/// The parameters of methods that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct MethodFlags(pub(crate) Parameters);

impl MethodFlags {
    /// One flag for each name; two methods may share it.
    fn flags() -> Vec<Arg> {
        let mut flags: Vec<Arg> = Vec::new();
        for parameter in method_parameters() {
            if !flags.iter().any(|flag| flag.get_id() == parameter.name) {
                flags.push(
                    Arg::new(parameter.name)
                        .long(parameter.name)
                        .value_name(parameter.value_name)
                        .value_parser(clap::value_parser!(f64))
                        // Out of range is for the method to say, which knows the range.
                        .allow_negative_numbers(true)
                        .help(help(parameter.name)),
                );
            }
        }
        flags
    }
}

/// What a flag does with each method that has it.
fn help(name: &str) -> String {
    let own = |kind: &&'static dyn MethodKind| {
        let parameter = kind.parameters().iter().find(|parameter| parameter.name == name)?;
        let Parameter { about, default, .. } = parameter;
        let default = default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
        Some(format!("With {}: {about}{default}", kind.name()))
    };
    METHODS.iter().filter_map(own).collect::<Vec<_>>().join("; ")
}

impl Args for MethodFlags {
    fn augment_args(command: Command) -> Command {
        command.args(Self::flags())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for MethodFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for parameter in method_parameters() {
            if let Some(&value) = matches.get_one::<f64>(parameter.name) {
                self.0.insert(parameter.name.to_owned(), value);
            }
        }
        Ok(())
    }
}
