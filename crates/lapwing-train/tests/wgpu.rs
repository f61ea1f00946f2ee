//! A few steps on a graphics device, beside the CPU. `cargo test -p lapwing-train --features wgpu --test wgpu`; Debian's
//! `mesa-vulkan-drivers` will do where there is no graphics card.

#![cfg(feature = "wgpu")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod moons;

use lapwing_train::{DeviceName, MethodConfig, Predictions, TrainConfig, Trainer};
use moons::{config, moons};

/// Whether Vulkan has a driver here. Elsewhere than on Linux there is Metal or DirectX.
fn vulkan() -> bool {
    let drivers = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let found = |path| std::fs::read_dir(path).is_ok_and(|mut files| files.next().is_some());
    cfg!(not(target_os = "linux")) || drivers.into_iter().any(found)
}

#[test]
fn a_graphics_device_learns_what_the_cpu_learns() {
    if !vulkan() {
        eprintln!("skipped: there is no Vulkan driver (mesa-vulkan-drivers has one in software)");
        return;
    }
    let data = moons(60, &[0.0, 0.0, 1.0], 3);
    let predictions = |device| {
        let settings = TrainConfig { epochs: 4, ..config(0) };
        let method = MethodConfig::named("lap").unwrap();
        let mut run = Trainer::new(settings, &method, data.data(), device).unwrap();
        run.run(&mut (), None).unwrap();
        let model = run.model().unwrap();
        let Predictions::Classes { probabilities, .. } =
            model.predict(data.data().samples, &data.valid).unwrap()
        else {
            panic!("classes")
        };
        probabilities
    };
    let (cpu, graphics) = (predictions(DeviceName::Cpu), predictions(DeviceName::Wgpu));
    assert_eq!(cpu.len(), graphics.len());
    for (cpu, graphics) in cpu.iter().zip(&graphics) {
        assert!((cpu - graphics).abs() < 1e-3, "{cpu} on the CPU, {graphics} on the other");
    }
}
