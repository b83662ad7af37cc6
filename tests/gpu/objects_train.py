#!/usr/bin/env python3
"""A small model of PyTorch that is trained, with names for some of its tensors, a copy of a transposed matrix and a
gather beside: to be watched by `pastaprof run --tool access` and others, whose report is then read."""
import torch
import torch.nn.functional as F
from torch import nn

import pastaprof as pasta


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.attn, self.out, self.norm = nn.Linear(n, 3 * n), nn.Linear(n, n), nn.LayerNorm(n)
        self.mlp = nn.Sequential(nn.Linear(n, 4 * n), nn.GELU(), nn.Linear(4 * n, n))

    def forward(self, x):
        q, k, v = self.attn(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, n=256, vocabulary=8192):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, n), nn.Linear(n, vocabulary)
        self.blocks = nn.ModuleList(Block(n) for _ in range(2))

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
net = Net().cuda()
buffer = torch.zeros(64 << 20, device="cuda", dtype=torch.uint8)
pasta.tag(buffer, "replay buffer")
pasta.tag(net.head.weight, "head.weight")
pasta.tag(net.embed.weight, "embed.weight")
optimizer = torch.optim.Adam(net.parameters())
ids = torch.randint(8192, (8, 128), device="cuda")
matrix = torch.randn(2048, 2048, device="cuda")
pasta.tag(matrix, "matrix")
for _ in range(6):
    pasta.step()
    loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    matrix.t().contiguous()
    torch.bincount(ids.flatten() % 16)
    buffer.view(torch.float32)[:1 << 20][torch.randperm(1 << 20, device="cuda")[:65536]].sum()
torch.cuda.synchronize()
pasta.step()
print("loss", bool(loss.detach() > 0))
