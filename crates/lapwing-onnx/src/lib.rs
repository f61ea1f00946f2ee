//! Writes ONNX models: a graph of operators over named tensors.
//!
//! The format is protocol buffers, of which a model needs a dozen messages; they are written here by hand. Nothing is read,
//! and nothing is checked but by those who load the file.
//!
//! ```
//! use lapwing_onnx::{Element, Graph};
//!
//! let mut graph = Graph::new("twice");
//! let x = graph.input("x", Element::Float, &[Some(3)]);
//! let two = graph.floats(&[2.0], &[1]);
//! let twice = graph.node("Mul", &[&x, &two]);
//! graph.output(&twice, "y", Element::Float, &[Some(3)]);
//! let bytes = graph.encode("an example", "0.1");
//! assert!(bytes.windows(3).any(|part| part == b"Mul"));
//! ```

mod graph;
mod wire;

pub use graph::{Attribute, Element, Graph};
