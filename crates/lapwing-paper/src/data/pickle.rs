//! A dictionary of NumPy arrays of whole numbers out of a pickle, without running anything.
//!
//! A pickle is a program for a stack machine that may name any function and call it. This machine knows the few
//! instructions that a dictionary of arrays needs and five names, none of which it runs: they only say what the values
//! around them mean. Everything else is refused.

use std::rc::Rc;

/// Deepest nesting of tuples; arrays need four.
const DEEPEST: usize = 8;
/// Most instructions; the official file has about two hundred.
const MOST_INSTRUCTIONS: usize = 100_000;

/// A value on the stack.
#[derive(Clone, Debug)]
enum Value {
    Nothing,
    Flag,
    Number(i64),
    Text(Rc<str>),
    /// With the depth of its nesting, so that it can be kept shallow.
    Tuple(Rc<[Value]>, usize),
    Name(Name),
    /// What `latin1` text was turned back into.
    Bytes(Rc<[u8]>),
    /// An array or a type, by its place in the machine; those are changed after they are made.
    Object(usize),
    Dictionary,
}

/// The names that may occur.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Reconstruct,
    Array,
    Type,
    Encode,
}

/// What is made empty and filled later.
#[derive(Clone, Debug)]
enum Object {
    Array { numbers: Option<Vec<i64>> },
    Type { bytes: usize, known: bool },
}

/// Arrays by name.
pub(super) type Arrays = Vec<(String, Vec<i64>)>;

/// Reads the arrays of a dictionary.
pub(super) fn arrays(pickle: &[u8]) -> Result<Arrays, String> {
    Machine { input: pickle, at: 0, ..Machine::default() }.run()
}

#[derive(Default)]
struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memory: Vec<Option<Value>>,
    objects: Vec<Object>,
    dictionary: Option<Vec<(String, usize)>>,
}

impl Machine<'_> {
    fn run(mut self) -> Result<Arrays, String> {
        for _ in 0..MOST_INSTRUCTIONS {
            let at = self.at;
            let [instruction] = self.take()?;
            if instruction == b'.' {
                return self.result();
            }
            self.execute(instruction)
                .map_err(|problem| format!("{problem} (byte {at} of the pickle)"))?;
        }
        Err(format!("the pickle has more than {MOST_INSTRUCTIONS} instructions"))
    }

    fn execute(&mut self, instruction: u8) -> Result<(), String> {
        match instruction {
            0x80 => match self.take()? {
                [2..=5] => Ok(()),
                [version] => Err(format!("a pickle of protocol {version}, expected 2 to 5")),
            },
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'}' => match self.dictionary.replace(Vec::new()) {
                None => self.push(Value::Dictionary),
                Some(_) => Err("more than one dictionary".to_owned()),
            },
            b'N' => self.push(Value::Nothing),
            0x88 | 0x89 => self.push(Value::Flag),
            b'K' => {
                let [byte] = self.take()?;
                self.push(Value::Number(i64::from(byte)))
            }
            b'M' => {
                let number = u16::from_le_bytes(self.take()?);
                self.push(Value::Number(i64::from(number)))
            }
            b'J' => {
                let number = i32::from_le_bytes(self.take()?);
                self.push(Value::Number(i64::from(number)))
            }
            b'X' => {
                let length = u32::from_le_bytes(self.take()?) as usize;
                let bytes = self.slice(length)?;
                let text = std::str::from_utf8(bytes).map_err(|_| "text that is no UTF-8")?.into();
                self.push(Value::Text(text))
            }
            b'c' => self.name(),
            b'q' => {
                let [place] = self.take()?;
                self.remember(place)
            }
            b'h' => {
                let [place] = self.take()?;
                let value = self.memory.get(usize::from(place)).cloned().flatten();
                self.push(value.ok_or("a value that was never remembered")?)
            }
            b')' => self.tuple(0),
            0x85 => self.tuple(1),
            0x86 => self.tuple(2),
            0x87 => self.tuple(3),
            b't' => {
                let items = self.since_mark()?;
                self.tuple(items)
            }
            b'R' => self.call(),
            b'b' => self.fill(),
            b's' => self.entries(2),
            b'u' => {
                let items = self.since_mark()?;
                self.entries(items)
            }
            other => Err(format!("the instruction {other:#04x}, which arrays do not need")),
        }
    }

    fn slice(&mut self, length: usize) -> Result<&[u8], String> {
        let bytes = self.at.checked_add(length).and_then(|end| self.input.get(self.at..end));
        self.at += length;
        bytes.ok_or_else(|| "the pickle breaks off".to_owned())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(N)?);
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String, String> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let end = rest.iter().take(100).position(|&byte| byte == b'\n').ok_or("an endless name")?;
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        self.at += end + 1;
        Ok(line)
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, String> {
        if self.marks.last() == Some(&self.stack.len()) {
            return Err("a mark where a value is expected".to_owned());
        }
        self.stack.pop().ok_or_else(|| "an empty stack".to_owned())
    }

    /// How many values were pushed since the last mark, which is taken away.
    fn since_mark(&mut self) -> Result<usize, String> {
        let mark = self.marks.pop().ok_or("no mark")?;
        self.stack.len().checked_sub(mark).ok_or_else(|| "a mark above the stack".to_owned())
    }

    fn remember(&mut self, place: u8) -> Result<(), String> {
        let value = self.stack.last().cloned().ok_or("an empty stack")?;
        let place = usize::from(place);
        if self.memory.len() <= place {
            self.memory.resize(place + 1, None);
        }
        self.memory[place] = Some(value);
        Ok(())
    }

    fn tuple(&mut self, items: usize) -> Result<(), String> {
        let start = self.stack.len().checked_sub(items).ok_or("an empty stack")?;
        if self.marks.last().is_some_and(|&mark| mark > start) {
            return Err("a mark where a value is expected".to_owned());
        }
        let items: Rc<[Value]> = self.stack.drain(start..).collect();
        let depth = |value: &Value| if let Value::Tuple(_, depth) = value { *depth } else { 0 };
        let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
        if depth > DEEPEST {
            return Err(format!("tuples nested more than {DEEPEST} deep"));
        }
        self.push(Value::Tuple(items, depth))
    }

    fn name(&mut self) -> Result<(), String> {
        let (module, name) = (self.line()?, self.line()?);
        let name = match (module.as_str(), name.as_str()) {
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => {
                Name::Reconstruct
            }
            ("numpy", "ndarray") => Name::Array,
            ("numpy", "dtype") => Name::Type,
            ("_codecs", "encode") => Name::Encode,
            _ => {
                return Err(format!("the name {name:?} of {module:?}, which arrays do not need"));
            }
        };
        self.push(Value::Name(name))
    }

    /// What a call would give, for the three calls that arrays consist of.
    fn call(&mut self) -> Result<(), String> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let Value::Tuple(arguments, _) = arguments else { return Err("a strange call".to_owned()) };
        let object = match (function, &*arguments) {
            (
                Value::Name(Name::Reconstruct),
                [Value::Name(Name::Array), Value::Tuple(..), Value::Bytes(_)],
            ) => Object::Array { numbers: None },
            (Value::Name(Name::Type), [Value::Text(kind), ..]) => {
                let bytes = match &**kind {
                    "i8" => 8,
                    "i4" => 4,
                    "u1" | "i1" => 1,
                    _ => return Err(format!("an array of type {kind:?}, expected whole numbers")),
                };
                Object::Type { bytes, known: bytes == 1 }
            }
            (Value::Name(Name::Encode), [Value::Text(text), Value::Text(code)])
                if &**code == "latin1" =>
            {
                let byte = |c: char| u8::try_from(u32::from(c));
                let bytes: Result<Rc<[u8]>, _> = text.chars().map(byte).collect();
                let bytes = bytes.map_err(|_| "text that is not Latin-1")?;
                return self.push(Value::Bytes(bytes));
            }
            _ => return Err("a call that arrays do not need".to_owned()),
        };
        self.objects.push(object);
        self.push(Value::Object(self.objects.len() - 1))
    }

    /// Gives an array its numbers, or a type its order of bytes.
    fn fill(&mut self) -> Result<(), String> {
        let (state, target) = (self.pop()?, self.pop()?);
        let (Value::Object(place), Value::Tuple(state, _)) = (target, state) else {
            return Err("a state for what has none".to_owned());
        };
        let filled = match (&self.objects[place], &*state) {
            (Object::Type { bytes, .. }, [Value::Number(_), Value::Text(order), ..]) => {
                if !matches!(&**order, "<" | "|") {
                    return Err(format!("numbers in the byte order {order:?}, expected \"<\""));
                }
                Object::Type { bytes: *bytes, known: true }
            }
            (
                Object::Array { .. },
                [
                    Value::Number(_),
                    Value::Tuple(shape, _),
                    Value::Object(kind),
                    Value::Flag,
                    Value::Bytes(bytes),
                ],
            ) => {
                let Object::Type { bytes: each, known: true } = self.objects[*kind] else {
                    return Err("an array without a type".to_owned());
                };
                let [Value::Number(length)] = **shape else {
                    return Err("an array of more than one axis".to_owned());
                };
                if usize::try_from(length).ok().and_then(|n| n.checked_mul(each))
                    != Some(bytes.len())
                {
                    return Err(format!("an array of {length} numbers in {} bytes", bytes.len()));
                }
                Object::Array { numbers: Some(bytes.chunks_exact(each).map(number).collect()) }
            }
            _ => return Err("a state that arrays do not have".to_owned()),
        };
        self.objects[place] = filled;
        self.push(Value::Object(place))
    }

    /// Puts pairs of name and array into the dictionary.
    fn entries(&mut self, items: usize) -> Result<(), String> {
        let start = self.stack.len().checked_sub(items).ok_or("an empty stack")?;
        let pairs: Vec<Value> = self.stack.drain(start..).collect();
        let (Some(Value::Dictionary), Some(dictionary)) = (self.stack.last(), &mut self.dictionary)
        else {
            return Err("entries for what is no dictionary".to_owned());
        };
        for pair in pairs.chunks(2) {
            let [Value::Text(name), Value::Object(place)] = pair else {
                return Err("an entry that is not a name and an array".to_owned());
            };
            dictionary.push((name.to_string(), *place));
        }
        Ok(())
    }

    fn result(self) -> Result<Arrays, String> {
        let ([Value::Dictionary], Some(entries)) = (&self.stack[..], self.dictionary) else {
            return Err("the pickle is not one dictionary".to_owned());
        };
        let array = |(name, place): (String, usize)| match &self.objects[place] {
            Object::Array { numbers: Some(numbers) } => Ok((name, numbers.clone())),
            _ => Err(format!("the entry {name:?} is no array")),
        };
        // Every array is made in the pickle, so that copies of one under many names are many entries of a small file.
        if entries.len() > self.objects.len() {
            return Err("one array under many names".to_owned());
        }
        entries.into_iter().map(array).collect()
    }
}

/// A little-endian number of 1, 4 or 8 bytes. Single bytes are taken as not negative.
fn number(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from(bytes[0]),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What `pickle.dumps({name: numpy.array(numbers, dtype='i8'), …}, protocol=2)` gives.
    pub(crate) fn dictionary(arrays: &[(&str, &[i64])]) -> Vec<u8> {
        let text =
            |text: &str| [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
        let mut bytes = b"\x80\x02}(".to_vec();
        for (name, numbers) in arrays {
            bytes.extend(text(name));
            bytes.extend(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85");
            bytes.extend(b"c_codecs\nencode\n");
            bytes.extend([text("b"), text("latin1"), b"\x86R\x87R(K\x01".to_vec()].concat());
            bytes.extend([&b"J"[..], &(numbers.len() as i32).to_le_bytes(), b"\x85"].concat());
            bytes.extend(
                [b"cnumpy\ndtype\n".to_vec(), text("i8"), b"\x89\x88\x87R".to_vec()].concat(),
            );
            bytes.extend(
                [b"(K\x03".to_vec(), text("<"), b"NNNJ\xff\xff\xff\xffK\x00tb\x89".to_vec()]
                    .concat(),
            );
            let raw: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            let latin: String = raw.iter().map(|&byte| char::from(byte)).collect();
            bytes.extend([b"c_codecs\nencode\n".to_vec(), text(&latin), text("latin1")].concat());
            bytes.extend(b"\x86Rtb");
        }
        bytes.extend(b"u.");
        bytes
    }

    #[test]
    fn a_dictionary_of_arrays_is_read() {
        let pickle = dictionary(&[("clean", &[1, 2, 300]), ("worse", &[-1])]);
        let expected = vec![("clean".to_owned(), vec![1, 2, 300]), ("worse".to_owned(), vec![-1])];
        assert_eq!(arrays(&pickle), Ok(expected));
    }

    #[test]
    fn names_that_could_be_called_are_refused() {
        for pickle in [
            &b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00ls /\x85R."[..],
            b"cbuiltins\neval\n.",
            b"c__builtin__\nexec\n.",
            b"cnumpy\nload\n.",
            b"\x8c\x02os\x8c\x06system\x93.",
            b"(S'ls'\nios\nsystem\n.",
            b"\x80\x02Pmodule\n.",
        ] {
            let refused = arrays(pickle).unwrap_err();
            assert!(refused.contains("which arrays do not need"), "{refused}");
        }
    }

    #[test]
    fn damaged_and_hostile_pickles_are_errors() {
        let whole = dictionary(&[("a", &[7, 8])]);
        for length in 0..whole.len() {
            assert!(arrays(&whole[..length]).is_err(), "{length} bytes");
        }
        for at in 0..whole.len() {
            for byte in [0, b'(', b't', b'R', b'b', b'.', 0x85, 0xff] {
                let mut changed = whole.clone();
                changed[at] = byte;
                let _ = arrays(&changed);
            }
        }
        // Lengths beyond the file, nesting without end, instructions without end.
        assert!(arrays(b"\x80\x02X\xff\xff\xff\xff").unwrap_err().contains("breaks off"));
        let deep = [b"\x80\x02)".to_vec(), vec![0x85; 50_000], b".".to_vec()].concat();
        assert!(arrays(&deep).unwrap_err().contains("deep"));
        let long = [b"\x80\x02".to_vec(), vec![b'N'; 200_000], b".".to_vec()].concat();
        assert!(arrays(&long).unwrap_err().contains("instructions"));
        // Marks and stacks that do not fit.
        for pickle in [
            &b"."[..],
            b"N.",
            b"t.",
            b"u.",
            b"b.",
            b"R.",
            b"h\x05.",
            b"q\x05.",
            b"}}.",
            b"}N.",
            b"(}t(",
        ] {
            assert!(arrays(pickle).is_err(), "{pickle:?}");
        }
        assert!(arrays(b"}NNu.").is_err());
        assert_eq!(arrays(b"}."), Ok(vec![]));
    }
}
