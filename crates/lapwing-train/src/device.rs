//! Where tensors live, chosen when the program runs.

use std::str::FromStr;

use burn::tensor::Device;
use thiserror::Error;

/// A device that can be asked for by name: `cpu`, `wgpu`, `cuda` or `cuda:1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceName {
    /// The processor, in pure Rust.
    #[default]
    Cpu,
    /// The default graphics device, by Vulkan, Metal or DirectX (cargo feature `wgpu`).
    Wgpu,
    /// An Nvidia device by its number (cargo feature `cuda`).
    Cuda(usize),
}

/// A device that is not to be had.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DeviceError {
    /// Not the name of a device.
    #[error("no device is called `{0}`: expected cpu, wgpu, cuda or cuda:N")]
    Name(String),
    /// Built without it.
    #[error("this build has no {0} device: build with `--features {0}`")]
    NotBuilt(&'static str),
}

/// What a CPU computes with, in a word. Another word means other roundings: the same bits are only promised where it is
/// the same. The matrix products choose for themselves by what the machine has, so that belongs to it.
pub fn kernels() -> &'static str {
    use lapwing_ops::Level;
    let (current, best) = (Level::current(), Level::available()[0]);
    match (current, best) {
        (Level::Avx2, Level::Avx512) => "avx2 on avx512",
        (Level::Portable, Level::Avx512) => "portable on avx512",
        (Level::Portable, Level::Avx2) => "portable on avx2",
        (Level::Portable, Level::Neon) => "portable on neon",
        (level, _) => level.name(),
    }
}

impl FromStr for DeviceName {
    type Err = DeviceError;
    fn from_str(name: &str) -> Result<Self, DeviceError> {
        match name {
            "cpu" => Ok(DeviceName::Cpu),
            "wgpu" => Ok(DeviceName::Wgpu),
            "cuda" => Ok(DeviceName::Cuda(0)),
            _ => match name.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(number)) => Ok(DeviceName::Cuda(number)),
                _ => Err(DeviceError::Name(name.to_owned())),
            },
        }
    }
}

impl DeviceName {
    /// The device, without gradients.
    pub(crate) fn open(self) -> Result<Device, DeviceError> {
        match self {
            DeviceName::Cpu => Ok(Device::flex()),
            #[cfg(feature = "wgpu")]
            DeviceName::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(not(feature = "wgpu"))]
            DeviceName::Wgpu => Err(DeviceError::NotBuilt("wgpu")),
            #[cfg(feature = "cuda")]
            DeviceName::Cuda(number) => Ok(Device::cuda(number)),
            #[cfg(not(feature = "cuda"))]
            DeviceName::Cuda(_) => Err(DeviceError::NotBuilt("cuda")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names_and_others_are_refused() {
        assert_eq!("cpu".parse(), Ok(DeviceName::Cpu));
        assert_eq!("cuda:2".parse(), Ok(DeviceName::Cuda(2)));
        for name in ["", "gpu", "cuda:", "cuda:x", "CPU"] {
            assert_eq!(name.parse::<DeviceName>(), Err(DeviceError::Name(name.to_owned())));
        }
    }
}
