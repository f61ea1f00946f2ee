//! Records of signals in WFDB's format 16: a header of text, and samples as pairs of bytes.

/// How a signal is to be read.
#[derive(Debug, PartialEq)]
struct Signal {
    /// Units of the converter per millivolt.
    gain: f64,
    /// What the converter shows at zero.
    baseline: f64,
    /// The sum of the samples, in 16 bits.
    sum: Option<i16>,
}

/// The signals of a record in physical units, moment by moment: `header` is the `.hea` file, `data` the `.dat` file. All of
/// `channels` signals must have `moments` samples at `hertz`.
pub(super) fn signals(
    header: &str,
    data: &[u8],
    [channels, hertz, moments]: [usize; 3],
) -> Result<Vec<f32>, String> {
    let mut lines =
        header.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let record: Vec<&str> = lines.next().ok_or("its header is empty")?.split_whitespace().collect();
    let field = |at: usize| record.get(at).copied().unwrap_or_default();
    // A rate may be followed by a counter, and a number of signals stands for segments with a slash.
    let rate: f64 =
        field(2).split(['/', '(']).next().and_then(|rate| rate.parse().ok()).unwrap_or(0.0);
    let found = (field(1).parse(), rate, field(3).parse());
    if found != (Ok(channels), hertz as f64, Ok(moments)) {
        return Err(format!(
            "its header says {} signals of {} samples at {} Hz, expected {channels} of {moments} at {hertz}",
            field(1),
            field(3),
            field(2)
        ));
    }
    let signals: Vec<Signal> = lines.take(channels).map(signal).collect::<Result<_, _>>()?;
    if signals.len() != channels {
        return Err(format!("its header describes {} of {channels} signals", signals.len()));
    }
    if data.len() != 2 * channels * moments {
        return Err(format!(
            "{} bytes of samples, expected {}",
            data.len(),
            2 * channels * moments
        ));
    }
    let samples: Vec<i16> =
        data.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    for (at, signal) in signals.iter().enumerate() {
        let own = samples.iter().skip(at).step_by(channels);
        let sum = own.fold(0_i16, |sum, &sample| sum.wrapping_add(sample));
        if signal.sum.is_some_and(|expected| expected != sum) {
            return Err(format!("the checksum of signal {} is wrong", at + 1));
        }
    }
    let physical = |(at, &sample): (usize, &i16)| {
        let Signal { gain, baseline, .. } = signals[at % channels];
        ((f64::from(sample) - baseline) / gain) as f32
    };
    Ok(samples.iter().enumerate().map(physical).collect())
}

/// `FILE 16 GAIN(BASELINE)/mV BITS ZERO FIRST CHECKSUM BLOCK NAME`, of which all but the first two may be missing.
fn signal(line: &str) -> Result<Signal, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or_default();
    if field(1) != "16" {
        return Err(format!("a signal of format {:?}, expected 16", field(1)));
    }
    let (gain, unit) = field(2).split_once('/').unwrap_or((field(2), "mV"));
    if unit != "mV" {
        return Err(format!("a signal in {unit}, expected mV"));
    }
    let (gain, baseline) = match gain.split_once('(') {
        Some((gain, baseline)) => (gain, baseline.trim_end_matches(')')),
        // The zero of the converter, where nothing else is said.
        None => (gain, field(4)),
    };
    // No gain, or one of 0, stands for 200.
    let number = |text: &str, missing: f64| match text {
        "" => Ok(missing),
        text => text.parse::<f64>().map_err(|_| format!("{text:?} is no number")),
    };
    let gain = match number(gain, 0.0)? {
        0.0 => 200.0,
        gain if gain.is_finite() && gain > 0.0 => gain,
        gain => return Err(format!("a gain of {gain}")),
    };
    let sum = match field(6) {
        "" => None,
        // Sums stand there with or without their sign.
        text => match text.parse::<i32>() {
            Ok(sum) => Some(sum as i16),
            Err(_) => return Err(format!("the checksum {text:?} is no number")),
        },
    };
    Ok(Signal { gain, baseline: number(baseline, 0.0)?, sum })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Header and samples of a record, as WFDB's own programs write them.
    pub(in crate::data) fn written(
        name: &str,
        hertz: usize,
        channels: usize,
        samples: &[i16],
    ) -> (String, Vec<u8>) {
        let moments = samples.len() / channels;
        let mut header = format!("{name} {channels} {hertz} {moments}\n");
        for channel in 0..channels {
            let own = samples.iter().skip(channel).step_by(channels);
            let sum = own.fold(0_i16, |sum, &sample| sum.wrapping_add(sample));
            header += &format!(
                "{name}.dat 16 1000.0(0)/mV 16 0 {} {sum} 0 V{channel}\n",
                samples[channel]
            );
        }
        (header, samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }

    #[test]
    fn samples_are_millivolts_and_what_does_not_fit_is_refused() {
        let samples = [-119, 7, 32_000, -32_000, 32_000, 5];
        let (header, data) = written("r", 100, 2, &samples);
        let read = |header: &str, data: &[u8]| signals(header, data, [2, 100, 3]);
        let expected: Vec<f32> = samples.iter().map(|&sample| f32::from(sample) / 1000.0).collect();
        assert_eq!(read(&header, &data).unwrap(), expected);
        let other = header.replace("1000.0(0)/mV", "500(20)");
        assert_eq!(read(&other, &data).unwrap()[1], -0.026);
        for (from, to) in [
            (" 16 ", " 212 "),
            ("/mV", "/mmHg"),
            ("r 2 100 3", "r 2 500 3"),
            ("r 2 100 3", "r 3 100 2"),
            ("1000.0", "-5"),
            (" 0 V1", ""),
            ("V1", "V1\n# note"),
        ] {
            let changed = header.replacen(from, to, 9);
            assert_eq!(read(&changed, &data).is_ok(), from == "V1" || from == " 0 V1", "{to}");
        }
        assert!(read(&header, &data[..10]).unwrap_err().contains("10 bytes"));
        let mut wrong = data.clone();
        wrong[2] ^= 1;
        assert!(read(&header, &wrong).unwrap_err().contains("checksum of signal 2"));
        assert!(read("", &data).is_err());
    }
}
