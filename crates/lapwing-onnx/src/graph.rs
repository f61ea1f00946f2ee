//! A graph of operators, and the messages it becomes.

use crate::wire::Message;

/// The version of the messages, of the operators, and of those for classic models: what runtimes of 2022 and later read.
const FORMAT: i64 = 8;
const OPERATORS: i64 = 17;
const CLASSIC: &str = "ai.onnx.ml";
const CLASSIC_OPERATORS: i64 = 3;

/// Whether an operator is one of those for classic models.
fn is_classic(operator: &str) -> bool {
    matches!(operator, "LabelEncoder" | "TreeEnsembleRegressor")
}

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floats.
    Float,
    /// 64-bit integers.
    Int64,
    /// Texts.
    Text,
    /// 64-bit floats.
    Double,
    /// Bytes.
    Byte,
}

impl Element {
    /// Its number in the format, which [`Cast`](Graph::cast) takes.
    fn number(self) -> i64 {
        match self {
            Self::Float => 1,
            Self::Byte => 2,
            Self::Int64 => 7,
            Self::Text => 8,
            Self::Double => 11,
        }
    }
}

/// A setting of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// A number.
    Int(i64),
    /// A float.
    Float(f32),
    /// Numbers.
    Ints(&'a [i64]),
    /// Floats.
    Floats(&'a [f32]),
    /// Texts.
    Texts(&'a [String]),
}

impl Attribute<'_> {
    fn message(&self, name: &str) -> Message {
        let message = Message::default().text(1, name);
        match self {
            Self::Float(value) => message.float(2, *value).int(20, 1),
            Self::Int(value) => message.int(3, *value).int(20, 2),
            Self::Ints(values) => {
                values.iter().fold(message, |message, &value| message.int(8, value)).int(20, 7)
            }
            Self::Floats(values) => {
                values.iter().fold(message, |message, &value| message.float(7, value)).int(20, 6)
            }
            Self::Texts(texts) => {
                texts.iter().fold(message, |message, text| message.text(9, text)).int(20, 8)
            }
        }
    }
}

/// A graph that is being built. Tensors go by their names, which are made up but for inputs and outputs.
#[derive(Clone, Debug)]
pub struct Graph {
    message: Message,
    made: usize,
    classic: bool,
}

impl Graph {
    /// An empty one.
    pub fn new(name: &str) -> Self {
        Self { message: Message::default().text(2, name), made: 0, classic: false }
    }

    fn add(&mut self, field: u64, message: Message) {
        self.message = std::mem::take(&mut self.message).message(field, message);
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("lapwing.{}", self.made)
    }

    /// What is given: any number of rows, each of this shape, whose sides may be of any length.
    pub fn input(&mut self, name: &str, element: Element, row: &[Option<usize>]) -> String {
        self.add(11, value(name, element, row));
        name.to_owned()
    }

    /// What is asked for, under a name of its own.
    pub fn output(&mut self, tensor: &str, name: &str, element: Element, row: &[Option<usize>]) {
        self.append("Identity", &[tensor], name, &[]);
        self.add(12, value(name, element, row));
    }

    fn constant(&mut self, element: Element, shape: &[usize], data: Message) -> String {
        let name = self.name();
        let dims = shape.iter().fold(data, |message, &side| message.int(1, side as i64));
        self.add(5, dims.int(2, element.number()).text(8, &name));
        name
    }

    /// Constants.
    pub fn floats(&mut self, values: &[f32], shape: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(Element::Float, shape, Message::default().bytes(9, &bytes))
    }

    /// Constants.
    pub fn doubles(&mut self, values: &[f64], shape: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(Element::Double, shape, Message::default().bytes(9, &bytes))
    }

    /// Constants.
    pub fn ints(&mut self, values: &[i64], shape: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(Element::Int64, shape, Message::default().bytes(9, &bytes))
    }

    /// Constants.
    pub fn texts(&mut self, texts: &[String], shape: &[usize]) -> String {
        let data = texts.iter().fold(Message::default(), |message, text| message.text(6, text));
        self.constant(Element::Text, shape, data)
    }

    /// An operator with one output, whose name is returned.
    pub fn node(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.node_with(operator, inputs, &[])
    }

    /// The same with settings.
    pub fn node_with(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute<'_>)],
    ) -> String {
        let name = self.name();
        self.append(operator, inputs, &name, attributes);
        name
    }

    /// The same as elements of another kind.
    pub fn cast(&mut self, input: &str, element: Element) -> String {
        self.node_with("Cast", &[input], &[("to", Attribute::Int(element.number()))])
    }

    /// Numbers of texts, by their place in a list of pairs; others have another.
    pub fn numbers_of(
        &mut self,
        input: &str,
        texts: &[String],
        numbers: &[i64],
        otherwise: i64,
    ) -> String {
        self.looked_up(input, ("keys_strings", Attribute::Texts(texts)), numbers, otherwise)
    }

    /// The same of numbers.
    pub fn numbers_of_numbers(
        &mut self,
        input: &str,
        keys: &[i64],
        numbers: &[i64],
        otherwise: i64,
    ) -> String {
        self.looked_up(input, ("keys_int64s", Attribute::Ints(keys)), numbers, otherwise)
    }

    fn looked_up(
        &mut self,
        input: &str,
        keys: (&str, Attribute<'_>),
        numbers: &[i64],
        otherwise: i64,
    ) -> String {
        let attributes = [
            keys,
            ("values_int64s", Attribute::Ints(numbers)),
            ("default_int64", Attribute::Int(otherwise)),
        ];
        self.node_with("LabelEncoder", &[input], &attributes)
    }

    fn append(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute<'_>)],
    ) {
        let given = inputs.iter().fold(Message::default(), |message, name| message.text(1, name));
        let mut node = given.text(2, output).text(4, operator);
        for (name, attribute) in attributes {
            node = node.message(5, attribute.message(name));
        }
        if is_classic(operator) {
            self.classic = true;
            node = node.text(7, CLASSIC);
        }
        self.add(1, node);
    }

    /// The file.
    pub fn encode(self, producer: &str, version: &str) -> Vec<u8> {
        let operators = |domain: &str, version| Message::default().text(1, domain).int(2, version);
        let mut model = Message::default()
            .int(1, FORMAT)
            .text(2, producer)
            .text(3, version)
            .message(8, operators("", OPERATORS));
        if self.classic {
            model = model.message(8, operators(CLASSIC, CLASSIC_OPERATORS));
        }
        model.message(7, self.message).into_bytes()
    }
}

/// Name, kind and shape of an input or output; there may be any number of rows.
fn value(name: &str, element: Element, row: &[Option<usize>]) -> Message {
    let side = |message: Message| Message::default().message(1, message);
    let mut shape = side(Message::default().text(2, "rows")).into_bytes();
    for (axis, length) in row.iter().enumerate() {
        let length = match length {
            Some(length) => Message::default().int(1, *length as i64),
            None => Message::default().text(2, &format!("{name}.{axis}")),
        };
        shape.extend(side(length).into_bytes());
    }
    let tensor = Message::default().int(1, element.number()).bytes(2, &shape);
    Message::default().text(1, name).message(2, Message::default().message(1, tensor))
}
