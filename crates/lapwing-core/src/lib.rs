//! The weighting rule.
