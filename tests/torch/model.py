"""Small models that tests/torch/torch_test.py watches: one call is one training step or more."""
import sys

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return scores.softmax(-1) @ self.value(x)  # line: attention


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = Attention(width)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        return self.output(self.norm(x + self.attention(x)))  # line: layer


class Bert(nn.Module):
    def __init__(self, width=16, layers=2):
        super().__init__()
        self.embeddings = nn.Embedding(32, width)
        self.encoder = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, 4)

    def forward(self, tokens):
        x = self.embeddings(tokens)
        for layer in self.encoder:
            x = layer(x)
        return self.head(x[:, 0])


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.head = nn.Linear(4, 4)

    def forward(self, images):
        return self.head(self.features(images).mean((2, 3)))  # line: mean


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 8)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


MODELS = {
    "bert": (Bert, lambda: torch.zeros(2, 6, dtype=torch.long)),
    "convolutional": (Convolutional, lambda: torch.zeros(2, 3, 8, 8)),
    "recurrent": (Recurrent, lambda: torch.zeros(5, 2, 8)),
}


def step(model, optimiser, inputs):
    loss = model(inputs).sum()  # line: loss
    loss.backward()  # line: backward
    optimiser.step()
    optimiser.zero_grad()


def steps(model, optimiser, inputs):
    with torch.profiler.record_function("window"):  # line: window
        for _ in range(2):
            step(model, optimiser, inputs)


def recorded(work):
    """What PyTorch's own profiler records of work(): (name, shapes, sequence, forward thread) as they begin."""
    from torch.autograd import profiler_legacy
    kept = []
    parse = profiler_legacy._parse_legacy_records

    def keep(threads):
        kept.extend(record for thread in threads for record in thread)
        return parse(threads)

    profiler_legacy._parse_legacy_records = keep
    with profiler_legacy.profile(record_shapes=True):
        work()
    return [(record.name(), record.shapes(), record.sequence_nr(), record.fwd_thread_id())
            for record in kept if record.kind() == "push"]


def main(name, records=None):
    kind, inputs = MODELS[name]
    model = kind()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    given = inputs()
    step(model, optimiser, given)
    if records is None:
        steps(model, optimiser, given)
        return
    import json
    with open(records, "w") as file:
        json.dump(recorded(lambda: steps(model, optimiser, given)), file)


if __name__ == "__main__":
    main(*sys.argv[1:3])
