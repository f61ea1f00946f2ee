//! A method that lives outside the crate: everything it needs is public.

#![allow(clippy::unwrap_used, reason = "tests")]

mod moons;

use std::ops::ControlFlow;
use std::time::Duration;

use lapwing_core::LapConfig;
use lapwing_train::{
    Audience, CheckpointDir, DeviceName, Method, MethodConfig, MethodError, MethodKind, Observed,
    Observer, Parameter, Range, Resumed, Saved, Start, Step, TrainError, Trainer, Weighs,
};
use moons::{config, moons};

const DOUBT: Parameter = Parameter {
    name: "doubt",
    value_name: "TIMES",
    about: "how often a row may be the worst of its batch before it counts for nothing",
    default: Some(3.0),
    range: Range::Whole(1),
    audience: Audience::Everybody,
};

/// Rows that were too often the worst of their batch count for nothing.
#[derive(Debug)]
struct Kind;

impl MethodKind for Kind {
    fn name(&self) -> &'static str {
        "patience"
    }
    fn about(&self) -> &'static str {
        "Rows that are the worst of their batch again and again count for nothing"
    }
    fn sentence(&self, method: &MethodConfig) -> String {
        format!("rows that were the worst {} times count for nothing", method.number(&DOUBT))
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[DOUBT]
    }
    fn weighs(&self) -> Weighs {
        Weighs::Rows
    }
    fn start<'a>(&self, start: Start<'_, 'a>) -> Result<Box<dyn Method + 'a>, TrainError> {
        let worst = vec![0; start.learner.sources().len()];
        Ok(Box::new(Patience { most: start.method.number(&DOUBT) as u32, worst }))
    }
}

struct Patience {
    most: u32,
    worst: Vec<u32>,
}

impl Method for Patience {
    fn weigh(&mut self, observed: &Observed<'_>) -> Result<Vec<f64>, MethodError> {
        let finite = (0..observed.len()).filter(|&row| observed.losses[row].is_finite());
        let worst = finite.max_by(|&a, &b| observed.losses[a].total_cmp(&observed.losses[b]));
        if let Some(worst) = worst {
            self.worst[observed.rows[worst] as usize] += 1;
        }
        let weight = |&row: &u32| f64::from(self.worst[row as usize] < self.most);
        Ok(observed.rows.iter().map(weight).collect())
    }
    fn save(&self) -> Result<Saved, MethodError> {
        Ok(Saved::of(serde_json::to_value(&self.worst)?))
    }
    fn load(&mut self, saved: &Saved) -> Result<(), TrainError> {
        self.worst = serde_json::from_value(saved.state().clone()).map_err(MethodError::from)?;
        Ok(())
    }
}

struct Until(u64);

impl Observer for Until {
    fn on_step(&mut self, step: &Step<'_>) -> ControlFlow<()> {
        if step.step + 1 == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_method_from_elsewhere_trains_is_judged_and_resumes_to_the_same_bytes() {
    let data = moons(60, &[0.0, 0.3, 0.0], 1);
    let method = MethodConfig::new(&Kind).with("doubt", 2.0).unwrap();
    let method = method.judged_by(LapConfig::default());
    let trainer = || Trainer::new(config(1), &method, data.data(), DeviceName::Cpu).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let bytes = |trainer: &Trainer<'_>| {
        trainer.model().unwrap().save(&dir.path().join("m")).unwrap();
        std::fs::read(dir.path().join("m")).unwrap()
    };
    let mut whole = trainer();
    whole.run(&mut (), None).unwrap();
    assert!(whole.method().lap().is_some());

    let place = CheckpointDir::new(dir.path().join("checkpoint"));
    let interval = Duration::from_secs(3600);
    trainer().run(&mut Until(17), Some((&place, interval))).unwrap();
    let mut resumed = trainer();
    let found = resumed.resume(&place, &mut ()).unwrap();
    assert!(matches!(found, Resumed::At { step: 17 }), "{found:?}");
    resumed.run(&mut (), None).unwrap();
    assert_eq!(bytes(&resumed), bytes(&whole));

    assert!(MethodConfig::new(&Kind).with("doubt", 0.0).is_err());
    assert!(MethodConfig::new(&Kind).with("forget-rate", 0.1).is_err());
}
