//! What random numbers are for.

/// What numbers are for; each purpose has streams of its own, so that no two kinds of noise share their draws.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Level = 1,
    ChunkShuffle = 2,
    RandomLabel = 3,
    RandomLabelPerSample = 4,
    BatchLabelShuffle = 5,
    BatchLabelFlip = 6,
    ChunkLabelShuffle = 7,
    ChunkLabelFlip = 8,
    AddedNoise = 9,
    ReplaceWithNoise = 10,
    ExactFlip = 11,
    UniformTarget = 12,
    HumanLabels = 13,
    ClassSwap = 15,
    TokenPermutation = 18,
    TokenReplacement = 19,
    PixelNoise = 20,
    SignalNoise = 21,
}

impl From<Purpose> for u64 {
    fn from(purpose: Purpose) -> Self {
        purpose as Self
    }
}
