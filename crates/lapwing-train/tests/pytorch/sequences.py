"""Writes sequences.json: what PyTorch's networks for series and texts put out, and their gradients.

    pip install torch numpy && python sequences.py

Parameters are sines of the place of the array and of the number in it, in the layout of our arrays; dropout is 0. Of every
gradient the norm and the first numbers are kept. Classes are 1 and 0, the loss is the mean cross-entropy.
"""

import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
FIRST = 3


def numbers(place, shape, ones=False):
    sine = np.sin(0.7 * np.arange(int(np.prod(shape)), dtype=np.float64) + place)
    if len(shape) == 1:
        values = float(ones) + 0.1 * sine
    else:
        values = sine * 2 / np.sqrt(np.prod(shape[:-1]))
    return torch.tensor(values.astype(np.float32)).reshape(shape)


class Arrays:
    """Hands out arrays in our order; remembers to which parameter each went, and how it is turned there."""

    def __init__(self):
        self.place, self.learnt = -1, []

    def fill(self, name, parameter, shape, turned=lambda array: array, back=None, ones=False, part=None):
        self.place += 1
        array = turned(numbers(self.place, shape, ones))
        with torch.no_grad():
            parameter.copy_(array)
        if back is not False:
            self.learnt.append((name, parameter, back or turned))

    def gradients(self):
        found = {}
        for name, parameter, back in self.learnt:
            flat = back(parameter.grad).flatten()
            found[name] = [float(flat.norm())] + flat[:FIRST].tolist()
        return found


def transpose(array):
    return array.t()


def conv(array):
    return array.permute(2, 1, 0)


def waves(shape):
    i = np.arange(int(np.prod(shape)), dtype=np.float64)
    return torch.tensor((0.5 + 0.5 * np.sin(0.11 * i + 0.0007 * i * i % 6.0)).astype(np.float32)).reshape(shape)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride, padding):
        super().__init__()
        self.shortcut = nn.Conv1d(inputs, outputs, 15, padding="same", bias=False)
        self.first = nn.Conv1d(inputs, outputs, 15, padding="same", bias=False)
        self.norm1 = nn.BatchNorm1d(outputs, affine=False)
        self.second = nn.Conv1d(outputs, outputs, 15, stride=stride, padding=padding, bias=False)
        self.norm2 = nn.BatchNorm1d(outputs, affine=False)
        self.pool = nn.MaxPool1d(stride)

    def forward(self, x, y):
        y = self.shortcut(self.pool(y))
        x = self.second(torch.relu(self.norm1(self.first(x))))
        return torch.relu(self.norm2(x + y)), x


class ResNet1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(12, 12, 15, padding="same", bias=False)
        self.norm = nn.BatchNorm1d(12, affine=False)
        strides, paddings = (4, 4, 4, 5), (6, 5, 5, 5)
        self.blocks = nn.ModuleList(
            Block(12 * (at + 1), 12 * (at + 2), stride, padding)
            for at, (stride, padding) in enumerate(zip(strides, paddings))
        )
        self.linear = nn.Linear(180, 2)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        y = x
        for block in self.blocks:
            x, y = block(x, y)
        return self.linear(x.flatten(1))


def resnet1d():
    network, arrays = ResNet1d(), Arrays()

    def norm(layer):
        arrays.fill("", layer.running_mean, layer.running_mean.shape, back=False)
        arrays.fill("", layer.running_var, layer.running_var.shape, back=False, ones=True)

    arrays.fill("stem.weight", network.stem.weight, (15, 12, 12), conv)
    norm(network.norm)
    for at, block in enumerate(network.blocks):
        before, behind = 12 * (at + 1), 12 * (at + 2)
        arrays.fill(f"blocks.{at}.shortcut.weight", block.shortcut.weight, (15, before, behind), conv)
        arrays.fill(f"blocks.{at}.first.weight", block.first.weight, (15, before, behind), conv)
        norm(block.norm1)
        arrays.fill(f"blocks.{at}.second.weight", block.second.weight, (15, behind, behind), conv)
        norm(block.norm2)
    arrays.fill("linear.weight", network.linear.weight, (180, 2), transpose)
    arrays.fill("linear.bias", network.linear.bias, (2,))
    x = waves((2, 1000, 12)).transpose(1, 2).contiguous()
    network.eval()
    evaluated = network(x).flatten().tolist()
    network.train()
    out = network(x)
    nn.functional.cross_entropy(out, torch.tensor([1, 0])).backward()
    return {"evaluated": evaluated, "outputs": out.flatten().tolist(), "gradients": arrays.gradients()}


LONGEST, WORDS = 5, 11
LENGTHS = [5, 3]
TOKENS = torch.tensor([(3 * i + 1) % WORDS for i in range(2 * LONGEST)]).reshape(2, LONGEST)


def linear(arrays, name, layer):
    outputs, inputs = layer.weight.shape
    arrays.fill(f"{name}.weight", layer.weight, (inputs, outputs), transpose)
    arrays.fill(f"{name}.bias", layer.bias, (outputs,))


def lstm(padding):
    words, memory, last = nn.Embedding(WORDS, 6), nn.LSTM(6, 8, 2, batch_first=True), nn.Linear(8, 3)
    arrays = Arrays()
    arrays.fill("entry.words.table", words.weight, (WORDS, 6))
    for at, inputs in enumerate((6, 8)):
        arrays.fill(f"layers.{at}.inputs", getattr(memory, f"weight_ih_l{at}"), (inputs, 32), transpose)
        arrays.fill(f"layers.{at}.memory", getattr(memory, f"weight_hh_l{at}"), (8, 32), transpose)
        arrays.fill(f"layers.{at}.input_bias", getattr(memory, f"bias_ih_l{at}"), (32,))
        arrays.fill(f"layers.{at}.memory_bias", getattr(memory, f"bias_hh_l{at}"), (32,))
    linear(arrays, "linear", last)
    hidden, _ = memory(words(TOKENS))
    place = [LONGEST - 1] * 2 if padding else [length - 1 for length in LENGTHS]
    out = last(hidden[range(2), place])
    nn.functional.cross_entropy(out, torch.tensor([1, 0])).backward()
    return {"outputs": out.flatten().tolist(), "gradients": arrays.gradients()}


def transformer(padding):
    width, units = 8, 16
    words, last = nn.Embedding(WORDS, width), nn.Linear(width, 3)
    layers = [nn.TransformerEncoderLayer(width, 2, units, dropout=0.0, batch_first=True) for _ in range(2)]
    arrays = Arrays()
    arrays.fill("entry.words.table", words.weight, (WORDS, width))
    for at, layer in enumerate(layers):
        name = f"layers.{at}"
        arrays.fill(f"{name}.attention.weight", layer.self_attn.in_proj_weight, (width, 3 * width), transpose)
        arrays.fill(f"{name}.attention.bias", layer.self_attn.in_proj_bias, (3 * width,))
        linear(arrays, f"{name}.projection", layer.self_attn.out_proj)
        arrays.fill(f"{name}.norm1.gamma", layer.norm1.weight, (width,), ones=True)
        arrays.fill(f"{name}.norm1.beta", layer.norm1.bias, (width,))
        linear(arrays, f"{name}.first", layer.linear1)
        linear(arrays, f"{name}.second", layer.linear2)
        arrays.fill(f"{name}.norm2.gamma", layer.norm2.weight, (width,), ones=True)
        arrays.fill(f"{name}.norm2.beta", layer.norm2.bias, (width,))
    linear(arrays, "linear", last)
    place = torch.arange(LONGEST)[:, None]
    wave = torch.exp(torch.arange(0, width, 2) * (-np.log(10000.0) / width))
    positions = torch.zeros(LONGEST, width)
    positions[:, 0::2], positions[:, 1::2] = torch.sin(place * wave), torch.cos(place * wave)
    x = words(TOKENS) + positions
    hidden = torch.arange(LONGEST)[None] >= torch.tensor(LENGTHS)[:, None]
    for layer in layers:
        x = layer(x, src_key_padding_mask=None if padding else hidden)
    if padding:
        x = x.mean(1)
    else:
        x = (x * ~hidden[..., None]).sum(1) / torch.tensor(LENGTHS)[:, None]
    out = last(x)
    nn.functional.cross_entropy(out, torch.tensor([1, 0])).backward()
    return {"outputs": out.flatten().tolist(), "gradients": arrays.gradients()}


found = {
    "resnet1d": resnet1d(),
    "lstm": lstm(False),
    "lstm-padding": lstm(True),
    "transformer": transformer(False),
    "transformer-padding": transformer(True),
}


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(value) for name, value in value.items()}
    return [float(f"{number:.8g}") for number in value]


Path(__file__).with_suffix(".json").write_text(json.dumps(rounded(found), indent=1) + "\n")
