//! Which method, with everything it must be told.

use std::collections::BTreeMap;

use lapwing_core::LapConfig;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::judged::Judged;
use super::{Guards, Method, MethodError, MethodKind, Parameter, Start, method_named, owners};
use crate::config::TrainConfig;
use crate::error::TrainError;
use crate::learner::Learner;

/// Which method, with its parameters, the rule that judges sources, and the user's guards.
///
/// ```
/// use lapwing_train::MethodConfig;
/// let method = MethodConfig::named("co-teaching")?.with("forget-rate", 0.3)?;
/// assert_eq!(method.kind().name(), "co-teaching");
/// let said = MethodConfig::named("lap")?.with("forget-rate", 0.3).unwrap_err().to_string();
/// assert_eq!(said, "forget-rate is a parameter of co-teaching, and the method is lap");
/// # Ok::<(), lapwing_train::MethodError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MethodConfig {
    kind: &'static dyn MethodKind,
    /// By name; those that are neither given nor have a default are missing.
    values: BTreeMap<&'static str, f64>,
    rule: Option<LapConfig>,
    guards: Guards,
    /// Per source, or nothing; not a number where it is not known.
    noise_rates: Vec<f64>,
}

impl MethodConfig {
    /// A method with its defaults, without guards. The kind need not be one of [`METHODS`](super::METHODS).
    pub fn new(kind: &'static dyn MethodKind) -> Self {
        let default = |parameter: &Parameter| Some((parameter.name, parameter.default?));
        let values = kind.parameters().iter().filter_map(default).collect();
        Self { kind, values, rule: None, guards: Guards::default(), noise_rates: Vec::new() }
    }

    /// The method of a name, with its defaults.
    ///
    /// # Errors
    /// Where no method has this name.
    pub fn named(name: &str) -> Result<Self, MethodError> {
        Ok(Self::new(method_named(name)?))
    }

    /// The same with another value of a parameter.
    ///
    /// # Errors
    /// Where the parameter is not one of this method, or the value is out of range.
    pub fn with(mut self, name: &str, value: f64) -> Result<Self, MethodError> {
        let own = self.kind.parameters().iter().find(|parameter| parameter.name == name);
        let Some(parameter) = own else {
            return Err(MethodError::NotItsParameter {
                parameter: name.to_owned(),
                owners: owners(name).collect(),
                method: self.kind.name(),
            });
        };
        parameter.check(value)?;
        self.values.insert(parameter.name, value);
        Ok(self)
    }

    /// The same with the rule of LAP: for LAP itself the rule it weighs by; with any other method it looks on, so that
    /// sources are judged, and has no say. Without, LAP has its defaults and the others do not judge.
    #[must_use]
    pub fn judged_by(mut self, rule: LapConfig) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The same within guards.
    #[must_use]
    pub fn within(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// The same where the noise rates of sources are known before training, source by source (not a number: unknown).
    /// The method of noise rates holds on to them, where it would find them out otherwise; others know none.
    #[must_use]
    pub fn knowing(mut self, noise_rates: Vec<f64>) -> Self {
        self.noise_rates = noise_rates;
        self
    }

    /// Noise rates that are known before training.
    pub fn noise_rates(&self) -> &[f64] {
        &self.noise_rates
    }

    /// Which method.
    pub fn kind(&self) -> &'static dyn MethodKind {
        self.kind
    }

    /// The value of a parameter; `None` where it was not given and has no default.
    pub fn value(&self, parameter: &Parameter) -> Option<f64> {
        self.values.get(parameter.name).copied()
    }

    /// The value of a parameter that has a default.
    pub fn number(&self, parameter: &Parameter) -> f64 {
        self.value(parameter).or(parameter.default).unwrap_or_default()
    }

    /// The rule.
    pub fn rule(&self) -> LapConfig {
        self.rule.unwrap_or_default()
    }

    /// f(C) by the rule, whether or not it has a say.
    pub fn rule_weight(&self, unreliability: u64) -> f64 {
        let rule = self.rule();
        let depression = lapwing_core::DISCRETE_AMOUNT * rule.depression_strength;
        rule.weighting.weight(depression * unreliability as f64)
    }

    /// The guards.
    pub fn guards(&self) -> &Guards {
        &self.guards
    }

    /// What the method is about to do, after "method NAME: ".
    pub fn sentence(&self) -> String {
        self.kind.sentence(self)
    }

    /// Whether rows of a source are trained on.
    pub(crate) fn trains_on(&self, source: u32) -> bool {
        self.kind.keeps_blocked_rows() || self.guards.admits(source)
    }

    /// The method, at its first step.
    pub(crate) fn start<'a>(
        &self,
        config: &TrainConfig,
        learner: &Learner<'a>,
    ) -> Result<Box<dyn Method + 'a>, TrainError> {
        let kind = self.kind;
        kind.check(learner.task(), learner.data.samples.spec())?;
        let found = config.architecture.kind();
        if let Some(expected) = kind.network().filter(|expected| *expected != found) {
            let (method, expected, found) = (kind.name(), expected.name(), found.name());
            return Err(MethodError::Network { method, expected, found }.into());
        }
        if !learner.workers.is_one() && !kind.runs_in_shards() {
            return Err(MethodError::Shards(kind.name()).into());
        }
        self.guards.check(kind)?;
        let method = kind.start(Start { method: self, config, learner })?;
        Ok(match self.rule {
            Some(rule) if !kind.runs_rule() => Box::new(Judged::new(method, rule)?),
            _ => method,
        })
    }
}

/// As it stands in fingerprints and records: `kind`, the parameters, `rule` and `guards`. Noise rates are found anew wherever a
/// run goes on.
impl Serialize for MethodConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.name())?;
        for parameter in self.kind.parameters() {
            if let Some(value) = self.value(parameter) {
                map.serialize_entry(&parameter.identifier(), &parameter.json(value))?;
            }
        }
        if let Some(rule) = &self.rule {
            map.serialize_entry("rule", rule)?;
        }
        map.serialize_entry("guards", &self.guards)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_with_whole_numbers_and_switches_as_such() {
        let method = MethodConfig::named("co-teaching")
            .and_then(|method| method.with("divide-twice", 1.0)?.with("ramp-epochs", 3.0))
            .unwrap();
        assert_eq!(
            serde_json::to_value(&method).unwrap(),
            serde_json::json!({
                "kind": "co-teaching", "forget_rate": 0.2, "ramp_epochs": 3, "divide_twice": true,
                "guards": {"floor": 0.0, "trusted": [], "blocked": []},
            })
        );
    }

    #[test]
    fn parameters_of_others_unknown_ones_and_values_out_of_range_are_refused_with_a_sentence() {
        let said = |method: &str, name, value| {
            MethodConfig::named(method).unwrap().with(name, value).unwrap_err().to_string()
        };
        assert_eq!(
            said("cdr", "noise-rate", 1.0),
            "noise-rate is 1, but must be from 0 to below 1"
        );
        assert_eq!(
            said("standard", "smoothing", 0.1),
            "smoothing is a parameter of label-smoothing, and the method is standard"
        );
        assert_eq!(said("standard", "warp", 0.1), "no method has a parameter called \"warp\"");
        let said = MethodConfig::named("magic").unwrap_err().to_string();
        assert!(said.contains("\"magic\"") && said.contains("lap, standard"), "{said}");
    }
}
