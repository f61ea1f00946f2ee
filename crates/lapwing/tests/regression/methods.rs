//! Methods, their parameters and the user's guards.

use lapwing_train::{Audience, METHODS, Weighs};

use crate::tables::{Place, WARDS, wards};

const TRAIN: &str = "train wards.csv --target ill --source ward --epochs 2 -q";

fn place() -> Place {
    let place = Place::new();
    place.write("wards.csv", &wards(300, &WARDS, 1));
    place
}

/// `--method lap --forget-rate 0.9` trained, and nothing was forgotten.
#[test]
fn a_flag_of_another_method_was_ignored() {
    let place = place();
    place.refuses(
        &format!("{TRAIN} --method lap --forget-rate 0.9 --out run"),
        &["forget-rate is a parameter of co-teaching, and the method is lap"],
    );
    for kind in METHODS {
        for owner in METHODS.iter().filter(|owner| owner.name() != kind.name()) {
            let own = |name| kind.parameters().iter().any(|parameter| parameter.name == name);
            for parameter in owner.parameters() {
                if parameter.audience == Audience::Everybody && !own(parameter.name) {
                    let (method, flag) = (kind.name(), parameter.name);
                    let words = format!("{TRAIN} --method {method} --{flag} 0.5 --out run");
                    place.refuses(&words, &[flag, owner.name(), method]);
                }
            }
        }
    }
}

/// `--momentum 5` with Adam trained, without any momentum.
#[test]
fn a_momentum_for_adam_was_ignored() {
    let place = place();
    let said = ["momentum is a parameter of sgd, and the optimiser is adam"];
    place.refuses(&format!("{TRAIN} --momentum 0.5 --out run"), &said);
    place.refuses(&format!("{TRAIN} --optimiser adam --momentum 5 --out run"), &said);
}

/// The parameters in the configuration of a run are those of its method, and stay behind when another is chosen.
#[test]
fn another_method_can_be_chosen_for_the_configuration_of_a_run() {
    let place = place();
    place.lapwing(&format!("{TRAIN} --method co-teaching --out first")).assert().success();
    assert!(place.text("first/config.toml").contains("\nforget-rate = 0.2\n"));
    let again = "train --config first/config.toml --method standard --out second -q";
    place.lapwing(again).assert().success();
    assert!(!place.text("second/config.toml").contains("forget-rate"));
    // Nor does it keep methods from being compared that do not have it.
    let compare =
        "compare wards.csv --target ill --source ward --config first/config.toml --repeats 1 -q";
    place.lapwing(compare).assert().success();
}

/// `--floor 0.5` was reported as kept with every method, and only LAP knew of it.
#[test]
fn a_floor_was_promised_by_methods_without_weights() {
    let place = place();
    for kind in METHODS.iter().filter(|kind| kind.views() == 1) {
        let method = kind.name();
        let words = format!("{TRAIN} --method {method} --floor 0.5 --out {method}");
        if kind.weighs() == Weighs::Sources {
            place.lapwing(&words).assert().success();
        } else {
            place.refuses(&words, &[method, "no weights", "floor"]);
        }
    }
}

/// Blocked rows were left out of training, but their validation rows still chose the best epoch.
#[test]
fn blocked_sources_chose_the_best_epoch_of_other_methods() {
    // All rows that validate are of the blocked ward, but for a few: the score is of these alone.
    let place = place();
    for kind in METHODS.iter().filter(|kind| kind.views() == 1) {
        let method = kind.name();
        let words = format!("{TRAIN} --method {method} --block attic --out {method}");
        place.lapwing(&words).assert().success();
        let scores = |text: String, split: &str| -> Vec<f64> {
            let lines = text.lines().filter(|line| line.contains(split)).map(str::to_owned);
            lines.map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
        };
        let metrics = place.text(&format!("{method}/metrics.csv"));
        let weighted = scores(metrics.clone(), ",validation,loss,");
        let all = scores(metrics, ",validation,loss_unweighted,");
        assert!(!weighted.is_empty() && weighted != all, "{method}");
    }
}

/// A flag that is in the list of methods and not in help cannot be found.
#[test]
fn every_method_and_parameter_is_in_help() {
    let place = Place::new();
    let output = place.lapwing("train --help").assert().success().get_output().stdout.clone();
    let help = String::from_utf8(output).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for kind in METHODS {
        assert!(help.contains(&format!("- {}: {}", kind.name(), kind.about())), "{help}");
        for parameter in kind.parameters() {
            let told = parameter.audience == Audience::Everybody;
            assert_eq!(help.contains(&format!("--{} <", parameter.name)), told, "{help}");
            assert_eq!(help.contains(parameter.about), told, "{}", parameter.about);
        }
    }
    let output = place.lapwing("compare --help").assert().success().get_output().stdout.clone();
    let help = String::from_utf8(output).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(METHODS.iter().all(|kind| help.contains(kind.about())), "{help}");
}
