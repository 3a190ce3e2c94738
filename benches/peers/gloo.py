"""Times a collective of Gloo, as PyTorch has it, as peer.c does for MPI:

    gloo.py COLLECTIVE WARM_UP ITERATIONS BYTES...
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK, RANKS = dist.get_rank(), dist.get_world_size()


def values(rank, count):
    index = torch.arange(count, dtype=torch.int64)
    return ((index * 7 + rank * 13) % 101 - 50).to(torch.float32)


def total(count):
    return sum(values(rank, count) for rank in range(RANKS))


class Case:
    """One rank's buffers, and what must be in `into` once the collective has run."""

    def __init__(self, collective, count):
        self.run, self.count, self.block = getattr(self, collective), count, count // RANKS
        self.into, self.origin = torch.empty(count), values(RANK, count)
        self.mine = self.own(self.into)
        self.reset()

    def own(self, data):
        return data[RANK * self.block : (RANK + 1) * self.block]

    def reset(self):
        self.into.copy_(self.origin)
        if self.run == self.all_to_all:
            self.into.fill_(-1000)

    def all_reduce(self):
        dist.all_reduce(self.into)
        return lambda: (self.into, total(self.count))

    def reduce(self):
        dist.reduce(self.into, 0)
        return lambda: (self.into, total(self.count)) if RANK == 0 else (self.into, self.into)

    def broadcast(self):
        dist.broadcast(self.into, 0)
        return lambda: (self.into, values(0, self.count))

    def all_gather(self):
        dist.all_gather_into_tensor(self.into, self.mine)
        return lambda: (self.into, torch.cat([self.own_of(rank) for rank in range(RANKS)]))

    def own_of(self, rank):
        return values(rank, self.count)[rank * self.block : (rank + 1) * self.block]

    def reduce_scatter(self):
        dist.reduce_scatter_tensor(self.mine, self.into)
        return lambda: (self.mine, self.own(total(self.count)))

    def all_to_all(self):
        dist.all_to_all_single(self.into, self.origin)
        return lambda: (self.into, torch.cat([self.own(values(rank, self.count)) for rank in range(RANKS)]))

    def barrier(self):
        dist.barrier()
        return lambda: (self.into, self.into)


def measure(collective, warm_up, iterations, size):
    case, spans = Case(collective, size // 4), []
    for _ in range(warm_up + iterations):
        dist.barrier()
        enter = time.monotonic_ns()
        case.run()
        leave = time.monotonic_ns()
        spans.append((enter, leave))
    enters, leaves = torch.tensor(spans[warm_up:]).T.contiguous()
    slowest = leaves - enters
    dist.all_reduce(slowest, dist.ReduceOp.MAX)

    case.reset()
    found, expected = case.run()()
    wrong = (found != expected).sum().reshape(1)
    if collective == "barrier":
        # A rank must not have left before the last had entered.
        dist.all_reduce(enters, dist.ReduceOp.MAX)
        dist.all_reduce(leaves, dist.ReduceOp.MIN)
        wrong = (leaves < enters).sum().reshape(1)
    dist.all_reduce(wrong)
    if RANK == 0:
        times = slowest.to(torch.float64) / 1e3
        median, least = times.quantile(0.5).item(), times.min().item()
        figures = {"bytes": size, "median_us": median, "min_us": least, "wrong": wrong.item()}
        print(json.dumps(figures), flush=True)


def main():
    collective, warm_up, iterations, *sizes = sys.argv[1:]
    if RANK == 0:
        print(json.dumps({"library": f"Gloo of PyTorch {torch.__version__}"}), flush=True)
    for size in sizes:
        measure(collective, int(warm_up), int(iterations), int(size))
    dist.destroy_process_group()


main()
